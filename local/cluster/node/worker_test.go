package node

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestInitContainersRunOneAfterAnotherBeforeTheOthers(t *testing.T) {
	pod := shellPod(corev1.RestartPolicyNever, "echo main >>/shared/order")
	pod.Spec.Volumes = []corev1.Volume{{Name: "shared", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	for _, name := range []string{"first", "second"} {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{
			Name: name, Image: "shell", Args: []string{"sleep 0.05; echo " + name + " >>/shared/order"},
		})
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for index := range list {
			list[index].VolumeMounts = []corev1.VolumeMount{{Name: "shared", MountPath: "/shared"}}
		}
	}
	s := newStage(t)
	if got := waitUntilOver(t, s.run(t, pod)).Phase; got != corev1.PodSucceeded {
		t.Fatalf("phase %s", got)
	}
	if got := contents(t, filepath.Join(s.dir, "volumes", "shared", "order")); got != "first\nsecond\nmain\n" {
		t.Fatalf("order was %q", got)
	}
}

func TestADeletedPodEndsByItsOwnExitCodeAndFreesItsGPUsFirst(t *testing.T) {
	s := newStage(t)
	w := s.run(t, shellPod(corev1.RestartPolicyAlways, untilSIGTERM))
	eventually(t, "the container runs", writes(w.logOf("c0"), "up"))
	w.terminate(time.Now().Add(time.Minute), "", "")
	status := waitUntilOver(t, w)
	if end := terminatedState(t, status); status.Phase != corev1.PodFailed || end.ExitCode != 75 || end.Reason != reasonError {
		t.Fatalf("got %s with %+v", status.Phase, end)
	}
	if got := s.history(); !slices.Equal(got[len(got)-2:], []string{"released", "Failed"}) {
		t.Fatalf("the last steps were %v", got)
	}
}

func TestAShortenedGraceIsHonoured(t *testing.T) {
	s := newStage(t)
	w := s.run(t, shellPod(corev1.RestartPolicyNever, "trap '' TERM; echo up; while :; do sleep 0.01; done"))
	eventually(t, "the container runs", writes(w.logOf("c0"), "up"))
	w.terminate(time.Now().Add(time.Hour), "", "")
	w.terminate(time.Now().Add(50*time.Millisecond), "", "")
	if end := terminatedState(t, waitUntilOver(t, w)); end.ExitCode != exitKilled {
		t.Fatalf("got %+v", end)
	}
}

func TestThePreStopHookRunsBeforeSIGTERM(t *testing.T) {
	pod := shellPod(corev1.RestartPolicyNever, "trap 'cat hook; exit 0' TERM; echo up; while :; do sleep 0.01; done")
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
		Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "echo from the hook >hook"}},
	}}
	w := newStage(t).run(t, pod)
	eventually(t, "the container runs", writes(w.logOf("c0"), "up"))
	w.terminate(time.Now().Add(time.Minute), "", "")
	waitUntilOver(t, w)
	if got := contents(t, w.logOf("c0")); !strings.HasSuffix(got, "from the hook\n") {
		t.Fatalf("log is %q", got)
	}
}

func TestAFailedContainerRestartsAndKeepsItsLastEnd(t *testing.T) {
	pod := shellPod(corev1.RestartPolicyOnFailure, "test -e again || { touch again; exit 3; }")
	status := waitUntilOver(t, newStage(t).run(t, pod))
	found := status.ContainerStatuses[0]
	if status.Phase != corev1.PodSucceeded || found.RestartCount != 1 || found.LastTerminationState.Terminated.ExitCode != 3 {
		t.Fatalf("got %s with %+v", status.Phase, found)
	}
}

func TestAnEndedContainerWaitsOutItsBackOff(t *testing.T) {
	w := newStage(t).run(t, shellPod(corev1.RestartPolicyAlways, "exit 3"))
	eventually(t, "the container is in back-off", w.waitsFor(reasonBackOff))
	if found := w.only(); found.RestartCount != 1 || found.LastTerminationState.Terminated.ExitCode != 3 {
		t.Fatalf("got %+v", found)
	}
}

func TestAnUnknownImageIsWaitedFor(t *testing.T) {
	s := newStage(t)
	s.host.imagesFile = imageTable(t, table)
	w := s.run(t, shellPod(corev1.RestartPolicyNever, "exit 0"))
	eventually(t, "the image is missing", w.waitsFor(reasonImage))
	if err := os.WriteFile(s.host.imagesFile, []byte(shellTable), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := waitUntilOver(t, w).Phase; got != corev1.PodSucceeded {
		t.Fatalf("phase %s", got)
	}
}

func TestAMissingCommandEndsTheContainerWithAReason(t *testing.T) {
	pod := shellPod(corev1.RestartPolicyNever, "")
	pod.Spec.Containers[0].Command = []string{"no-such-command"}
	if end := terminatedState(t, waitUntilOver(t, newStage(t).run(t, pod))); end.ExitCode != exitStartFailed || end.Reason != reasonStart {
		t.Fatalf("got %+v", end)
	}
}

func TestATerminationMessageIsReadFromEitherOfItsNames(t *testing.T) {
	for _, script := range []string{"echo last words >$TERMINATION_LOG", "echo last words >/dev/termination-log"} {
		status := waitUntilOver(t, newStage(t).run(t, shellPod(corev1.RestartPolicyNever, script)))
		if got := terminatedState(t, status).Message; got != "last words\n" {
			t.Errorf("%s: message %q", script, got)
		}
	}
}
