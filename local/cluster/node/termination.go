package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// orphanGrace is what a pod's processes get when its object has already gone, as after a delete with grace 0.
const orphanGrace = time.Second

// killDeadline returns when the processes of a pod that is being deleted are to be killed, as seen at `now`.
//
// The API server writes deletionTimestamp in whole seconds, rounded down, so it may name a moment up to a second too early;
// the grace period is exact but counts from when the deletion was made. After a restart of the node the time stamp bounds it.
func killDeadline(pod *corev1.Pod, now time.Time) time.Time {
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
		return now.Add(orphanGrace)
	}
	byGrace := now.Add(time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	byStamp := pod.DeletionTimestamp.Add(time.Second)
	if byStamp.Before(byGrace) {
		return byStamp
	}
	return byGrace
}

// podGrace is how long a container of the pod may take to stop when the node stops it for a reason of its own.
func podGrace(pod *corev1.Pod) time.Duration {
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		return corev1.DefaultTerminationGracePeriodSeconds * time.Second
	}
	return time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
}

// restarts tells whether a container that ended with this code is to run again.
func restarts(policy corev1.RestartPolicy, isInit bool, exitCode int32) bool {
	switch {
	case isInit:
		return exitCode != 0 && policy != corev1.RestartPolicyNever
	case policy == corev1.RestartPolicyNever:
		return false
	case policy == corev1.RestartPolicyOnFailure:
		return exitCode != 0
	default:
		return true
	}
}
