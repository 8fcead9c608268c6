package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func running(isReady bool) corev1.ContainerStatus {
	return corev1.ContainerStatus{Ready: isReady, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func exited(code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Ready: code == 0, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}},
	}
}

func idle() corev1.ContainerStatus {
	return corev1.ContainerStatus{State: waiting(reasonCreating, "")}
}

func inBackOff() corev1.ContainerStatus {
	return corev1.ContainerStatus{State: waiting(reasonBackOff, ""), LastTerminationState: exited(1).State}
}

func TestPodPhases(t *testing.T) {
	list := func(statuses ...corev1.ContainerStatus) []corev1.ContainerStatus { return statuses }
	for name, example := range map[string]struct {
		facts podFacts
		want  corev1.PodPhase
	}{
		"not started":              {podFacts{containers: list(idle())}, corev1.PodPending},
		"init containers run":      {podFacts{initContainers: list(running(false)), containers: list(idle())}, corev1.PodPending},
		"one of two runs":          {podFacts{containers: list(running(true), idle())}, corev1.PodRunning},
		"waiting between restarts": {podFacts{containers: list(inBackOff())}, corev1.PodRunning},
		"one has ended, one runs":  {podFacts{containers: list(exited(1), running(true))}, corev1.PodRunning},
		"all ended well":           {podFacts{isOver: true, containers: list(exited(0), exited(0))}, corev1.PodSucceeded},
		"one ended badly":          {podFacts{isOver: true, containers: list(exited(0), exited(75))}, corev1.PodFailed},
		"an init container failed": {podFacts{isOver: true, initContainers: list(exited(1)), containers: list(idle())}, corev1.PodFailed},
	} {
		example.facts.pod = &corev1.Pod{}
		if got := podStatus(example.facts).Phase; got != example.want {
			t.Errorf("%s: got %s, want %s", name, got, example.want)
		}
	}
}

func TestAPodIsReadyWhenAllItsContainersAre(t *testing.T) {
	for _, example := range []struct {
		statuses []corev1.ContainerStatus
		want     corev1.ConditionStatus
	}{
		{[]corev1.ContainerStatus{running(true), running(true)}, corev1.ConditionTrue},
		{[]corev1.ContainerStatus{running(true), running(false)}, corev1.ConditionFalse},
	} {
		status := podStatus(podFacts{pod: &corev1.Pod{}, containers: example.statuses})
		if got := conditionOf(status, corev1.PodReady).Status; got != example.want {
			t.Errorf("%v: got %s", example.statuses, got)
		}
	}
}

func TestAConditionKeepsItsTransitionTimeUntilItChanges(t *testing.T) {
	early, late := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(200, 0))
	first := podStatus(podFacts{pod: &corev1.Pod{}, containers: []corev1.ContainerStatus{running(false)}, now: early})
	second := podStatus(podFacts{
		pod: &corev1.Pod{}, containers: []corev1.ContainerStatus{running(true)}, previous: first.Conditions, now: late,
	})
	if at := conditionOf(second, corev1.PodReady).LastTransitionTime; at != late {
		t.Errorf("Ready changed at %v, want %v", at, late)
	}
	if at := conditionOf(second, corev1.PodInitialized).LastTransitionTime; at != early {
		t.Errorf("Initialized did not change, yet its time is %v", at)
	}
}

func conditionOf(status corev1.PodStatus, kind corev1.PodConditionType) corev1.PodCondition {
	for _, found := range status.Conditions {
		if found.Type == kind {
			return found
		}
	}
	return corev1.PodCondition{}
}
