package node

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podFacts is everything that a pod's status is made of.
type podFacts struct {
	pod            *corev1.Pod
	address        string
	hostAddress    string
	startedAt      metav1.Time
	initContainers []corev1.ContainerStatus
	containers     []corev1.ContainerStatus
	// isOver says that nothing of the pod runs and nothing will.
	isOver bool
	// previous conditions keep their transition times where nothing changed.
	previous []corev1.PodCondition
	now      metav1.Time
}

// podStatus returns the status of a pod, without what others write into it, such as the scheduler's conditions.
func podStatus(facts podFacts) corev1.PodStatus {
	phase := podPhase(facts)
	return corev1.PodStatus{
		Phase:                 phase,
		Conditions:            podConditions(facts, phase),
		HostIP:                facts.hostAddress,
		HostIPs:               []corev1.HostIP{{IP: facts.hostAddress}},
		PodIP:                 facts.address,
		PodIPs:                []corev1.PodIP{{IP: facts.address}},
		StartTime:             &facts.startedAt,
		InitContainerStatuses: facts.initContainers,
		ContainerStatuses:     facts.containers,
		QOSClass:              facts.pod.Status.QOSClass,
	}
}

// rejectedStatus is the status of a pod that the node refuses to run.
func rejectedStatus(pod *corev1.Pod, reason, message string, now metav1.Time) corev1.PodStatus {
	return corev1.PodStatus{
		Phase:     corev1.PodFailed,
		Reason:    reason,
		Message:   message,
		StartTime: &now,
		QOSClass:  pod.Status.QOSClass,
	}
}

func podPhase(facts podFacts) corev1.PodPhase {
	all := slices.Concat(facts.initContainers, facts.containers)
	if facts.isOver {
		if slices.ContainsFunc(all, endedBadly) {
			return corev1.PodFailed
		}
		return corev1.PodSucceeded
	}
	// Running from the first start of an ordinary container on, through waits between restarts.
	hasStarted := func(status corev1.ContainerStatus) bool {
		return status.State.Running != nil || status.State.Terminated != nil || status.LastTerminationState.Terminated != nil
	}
	if slices.ContainsFunc(facts.containers, hasStarted) {
		return corev1.PodRunning
	}
	return corev1.PodPending
}

func endedBadly(status corev1.ContainerStatus) bool {
	return status.State.Terminated != nil && status.State.Terminated.ExitCode != 0
}

func podConditions(facts podFacts, phase corev1.PodPhase) []corev1.PodCondition {
	initialized := allOf(facts.initContainers, func(status corev1.ContainerStatus) bool {
		return status.State.Terminated != nil && status.State.Terminated.ExitCode == 0
	})
	ready := phase == corev1.PodRunning && allOf(facts.containers, func(status corev1.ContainerStatus) bool { return status.Ready })
	reason := ""
	switch {
	case phase == corev1.PodSucceeded:
		reason = "PodCompleted"
	case phase == corev1.PodFailed:
		reason = "PodFailed"
	case !ready:
		reason = "ContainersNotReady"
	}
	return []corev1.PodCondition{
		condition(facts, corev1.PodInitialized, initialized, ""),
		condition(facts, corev1.ContainersReady, ready, reason),
		condition(facts, corev1.PodReady, ready, reason),
	}
}

func condition(facts podFacts, kind corev1.PodConditionType, holds bool, reason string) corev1.PodCondition {
	status := corev1.ConditionFalse
	if holds {
		status = corev1.ConditionTrue
	}
	since := facts.now
	for _, previous := range facts.previous {
		if previous.Type == kind && previous.Status == status {
			since = previous.LastTransitionTime
		}
	}
	return corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: since}
}

func allOf(statuses []corev1.ContainerStatus, holds func(corev1.ContainerStatus) bool) bool {
	return !slices.ContainsFunc(statuses, func(status corev1.ContainerStatus) bool { return !holds(status) })
}
