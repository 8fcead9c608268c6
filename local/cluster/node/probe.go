package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// eagerProbePeriod is how often a probe asks until its first success. The kubelet waits a whole period; here a reclaim is
// timed from start to Ready, and a second of waiting for the next look would be a tenth of it. Failures still count once a
// period, so thresholds keep their meaning.
const eagerProbePeriod = 100 * time.Millisecond

// verdict is what a probe has concluded.
type verdict int

const (
	undecided verdict = iota
	passing
	failing
)

// probeTracker turns single answers of one probe into a verdict, by its thresholds.
type probeTracker struct {
	period           time.Duration
	successThreshold int
	failureThreshold int

	verdict       verdict
	hasPassed     bool
	successes     int
	failures      int
	lastFailureAt time.Time
}

func newProbeTracker(probe *corev1.Probe) *probeTracker {
	return &probeTracker{
		period:           time.Duration(max(probe.PeriodSeconds, 1)) * time.Second,
		successThreshold: int(max(probe.SuccessThreshold, 1)),
		failureThreshold: int(max(probe.FailureThreshold, 1)),
	}
}

// observe takes one answer and tells whether the verdict is new.
func (t *probeTracker) observe(now time.Time, success bool) bool {
	if success {
		t.failures = 0
		t.successes++
		return t.successes >= t.successThreshold && t.become(passing)
	}
	t.successes = 0
	if t.failures > 0 && now.Sub(t.lastFailureAt) < t.period {
		return false
	}
	t.lastFailureAt = now
	t.failures++
	return t.failures >= t.failureThreshold && t.become(failing)
}

func (t *probeTracker) become(next verdict) bool {
	changed := t.verdict != next
	t.verdict = next
	t.hasPassed = t.hasPassed || next == passing
	return changed
}

// delay returns how long to wait before asking again.
func (t *probeTracker) delay() time.Duration {
	if t.hasPassed {
		return t.period
	}
	return min(eagerProbePeriod, t.period)
}
