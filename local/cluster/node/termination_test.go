package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestKillDeadline(t *testing.T) {
	now := time.Unix(1_800_000_000, 900_000_000)
	stamp := func(offset time.Duration) *metav1.Time {
		return &metav1.Time{Time: now.Add(offset).Truncate(time.Second)}
	}
	seconds := func(count int64) *int64 { return &count }
	for name, example := range map[string]struct {
		pod  metav1.ObjectMeta
		want time.Time
	}{
		"the full grace, although the stamp is rounded down": {
			metav1.ObjectMeta{DeletionTimestamp: stamp(10 * time.Second), DeletionGracePeriodSeconds: seconds(10)}, now.Add(10 * time.Second),
		},
		"what is left of it after a restart of the node": {
			metav1.ObjectMeta{DeletionTimestamp: stamp(3 * time.Second), DeletionGracePeriodSeconds: seconds(10)},
			stamp(3 * time.Second).Add(time.Second),
		},
		"a short one when the object has gone already": {metav1.ObjectMeta{}, now.Add(orphanGrace)},
	} {
		if got := killDeadline(&corev1.Pod{ObjectMeta: example.pod}, now); !got.Equal(example.want) {
			t.Errorf("%s: got %s, want %s", name, got, example.want)
		}
	}
}

func TestRestartPolicies(t *testing.T) {
	for _, example := range []struct {
		policy corev1.RestartPolicy
		isInit bool
		code   int32
		want   bool
	}{
		{corev1.RestartPolicyAlways, false, 0, true},
		{corev1.RestartPolicyAlways, false, 1, true},
		{corev1.RestartPolicyOnFailure, false, 0, false},
		{corev1.RestartPolicyOnFailure, false, 75, true},
		{corev1.RestartPolicyNever, false, 1, false},
		{corev1.RestartPolicyAlways, true, 0, false},
		{corev1.RestartPolicyAlways, true, 1, true},
		{corev1.RestartPolicyNever, true, 1, false},
	} {
		if got := restarts(example.policy, example.isInit, example.code); got != example.want {
			t.Errorf("%+v: got %t", example, got)
		}
	}
}
