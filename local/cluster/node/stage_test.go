package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
)

// stage runs one pod on a host without an API server and remembers what was announced.
type stage struct {
	host *host
	dir  string
	work context.CancelFunc

	mutex     sync.Mutex
	announced []corev1.PodStatus
	log       []string
}

const shellTable = "images: {shell: {command: [/bin/sh, -c]}}"

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{dir: filepath.Join(t.TempDir(), "uid")}
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s.host = &host{
		address:    "127.0.0.1",
		imagesFile: imageTable(t, shellTable),
		faultsFile: filepath.Join(t.TempDir(), faultsFile),
		events:     &record.FakeRecorder{},
		publish: func(pod *corev1.Pod) {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			s.announced = append(s.announced, pod.Status)
			s.log = append(s.log, string(pod.Status.Phase))
		},
		release: func(*corev1.Pod) {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			s.log = append(s.log, "released")
		},
		changed: func() {},
	}
	return s
}

// run starts a worker for the pod; whatever it leaves running is killed at the end of the test.
func (s *stage) run(t *testing.T, pod *corev1.Pod) *worker {
	t.Helper()
	w := newWorker(s.host, podRecord{Pod: pod, Address: "127.0.0.1", StartedAt: metav1.Now()}, s.dir)
	return s.launch(t, w)
}

func (s *stage) launch(t *testing.T, w *worker) *worker {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.work = cancel
	go w.run(ctx)
	t.Cleanup(func() {
		w.terminate(time.Now(), "", "")
		<-w.over
		cancel()
	})
	return w
}

func (s *stage) history() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Compact(slices.Clone(s.log))
}

// shellPod is a pod whose containers run shell scripts and which wants no token.
func shellPod(policy corev1.RestartPolicy, scripts ...string) *corev1.Pod {
	noToken := false
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod", UID: "uid"},
		Spec:       corev1.PodSpec{RestartPolicy: policy, AutomountServiceAccountToken: &noToken},
	}
	for index, script := range scripts {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: fmt.Sprintf("c%d", index), Image: "shell:1", Args: []string{script},
			TerminationMessagePath: corev1.TerminationMessagePathDefault,
		})
	}
	return pod
}

const untilSIGTERM = "trap 'exit 75' TERM; echo up; while :; do sleep 0.01; done"

func (w *worker) status() corev1.PodStatus { return w.snapshot.Load().Status }

// only returns the status of the pod's only container, as far as it is known yet.
func (w *worker) only() corev1.ContainerStatus {
	if statuses := w.status().ContainerStatuses; len(statuses) > 0 {
		return statuses[0]
	}
	return corev1.ContainerStatus{}
}

func (w *worker) waitsFor(reason string) func() bool {
	return func() bool {
		state := w.only().State.Waiting
		return state != nil && state.Reason == reason
	}
}

func (w *worker) logOf(name string) string {
	return runFile(containerDir(w.dir, name), 0, "log")
}

func waitUntilOver(t *testing.T, w *worker) corev1.PodStatus {
	t.Helper()
	eventually(t, "the pod is over", w.hasFinished)
	return w.status()
}

func terminatedState(t *testing.T, status corev1.PodStatus) *corev1.ContainerStateTerminated {
	t.Helper()
	end := status.ContainerStatuses[0].State.Terminated
	if end == nil {
		t.Fatalf("the container has not ended: %+v", status.ContainerStatuses[0].State)
	}
	return end
}
