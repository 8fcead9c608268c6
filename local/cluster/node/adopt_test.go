package node

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAPodOutlivesItsNodeAndIsTakenOver(t *testing.T) {
	s := newStage(t)
	first := newWorker(s.host, podRecord{
		Pod: shellPod(corev1.RestartPolicyNever, untilSIGTERM), Address: "127.0.0.1", StartedAt: metav1.Now(),
	}, s.dir)
	life, die := context.WithCancel(context.Background())
	go first.run(life)
	eventually(t, "the container runs", writes(first.logOf("c0"), "up"))
	eventually(t, "the run is recorded", writes(filepath.Join(s.dir, recordFile), "startTicks"))
	die()
	<-first.over

	records, err := readRecords(filepath.Dir(s.dir))
	if err != nil || len(records) != 1 {
		t.Fatalf("got %v, %v", records, err)
	}
	second := newWorker(s.host, records[0], s.dir)
	second.adopt(t.Context(), records[0], time.Now())
	s.launch(t, second)
	if state := second.only(); state.State.Running == nil || state.RestartCount != 0 {
		t.Fatalf("the container was not taken over: %+v", state)
	}
	second.terminate(time.Now().Add(time.Minute), "", "")
	if end := terminatedState(t, waitUntilOver(t, second)); end.ExitCode != 75 {
		t.Fatalf("got %+v", end)
	}
}

func TestAContainerThatTheNodeHasNoRecordOfIsLost(t *testing.T) {
	pod := shellPod(corev1.RestartPolicyNever, untilSIGTERM)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "c0", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}
	s := newStage(t)
	w := newWorker(s.host, podRecord{Pod: pod, Address: "127.0.0.1", StartedAt: metav1.Now()}, s.dir)
	w.mourn(pod.Status, time.Now())
	if end := terminatedState(t, waitUntilOver(t, s.launch(t, w))); end.Reason != reasonStatusUnknown {
		t.Fatalf("got %+v", end)
	}
}
