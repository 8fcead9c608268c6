package node

import (
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func (s *stage) setFaults(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(s.host.faultsFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAPodThatNeverStartsStartsWhenTheFaultIsLifted(t *testing.T) {
	s := newStage(t)
	s.setFaults(t, `{"never_start": ["default/p*"]}`)
	w := s.run(t, shellPod(corev1.RestartPolicyNever, "exit 0"))
	eventually(t, "the container is held", w.waitsFor(reasonCreating))
	s.setFaults(t, `{}`)
	waitUntilOver(t, w)
}

func TestAPodThatIgnoresSIGTERMIsKilledAtItsDeadline(t *testing.T) {
	s := newStage(t)
	s.setFaults(t, `{"ignore_sigterm": ["default/*"]}`)
	w := s.run(t, shellPod(corev1.RestartPolicyNever, untilSIGTERM))
	eventually(t, "the container runs", writes(w.logOf("c0"), "up"))
	w.terminate(time.Now().Add(100*time.Millisecond), "", "")
	if end := terminatedState(t, waitUntilOver(t, w)); end.ExitCode != exitKilled {
		t.Fatalf("got %+v", end)
	}
}

func TestASlowExitDelaysSIGTERM(t *testing.T) {
	s := newStage(t)
	s.setFaults(t, `{"slow_exit": [{"pod": "default/*", "delay_s": 0.3}]}`)
	w := s.run(t, shellPod(corev1.RestartPolicyNever, untilSIGTERM))
	eventually(t, "the container runs", writes(w.logOf("c0"), "up"))
	asked := time.Now()
	w.terminate(asked.Add(time.Minute), "", "")
	if end := terminatedState(t, waitUntilOver(t, w)); end.ExitCode != 75 || time.Since(asked) < 300*time.Millisecond {
		t.Fatalf("got %+v after %s", end, time.Since(asked))
	}
}

func TestALostHeartbeatFailsThePing(t *testing.T) {
	s := newStage(t)
	beat := heartbeat{faultsFile: s.host.faultsFile}
	if err := beat.Ping(t.Context()); err != nil {
		t.Fatalf("without a faults file: %v", err)
	}
	s.setFaults(t, `{"lost_heartbeat": true}`)
	if err := beat.Ping(t.Context()); err == nil {
		t.Fatal("the heartbeat was sent")
	}
}
