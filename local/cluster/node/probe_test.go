package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// observations feeds a tracker one answer at each offset and returns its verdict after the last.
func observations(probe corev1.Probe, answers ...struct {
	at      time.Duration
	success bool
}) verdict {
	tracker := newProbeTracker(&probe)
	start := time.Unix(1_800_000_000, 0)
	for _, answer := range answers {
		tracker.observe(start.Add(answer.at), answer.success)
	}
	return tracker.verdict
}

type answer = struct {
	at      time.Duration
	success bool
}

func TestProbeThresholds(t *testing.T) {
	probe := corev1.Probe{PeriodSeconds: 1, FailureThreshold: 3, SuccessThreshold: 2}
	second := time.Second
	for name, example := range map[string]struct {
		answers []answer
		want    verdict
	}{
		"nothing heard yet":                {nil, undecided},
		"one success of two":               {[]answer{{0, true}}, undecided},
		"two successes":                    {[]answer{{0, true}, {second, true}}, passing},
		"a failure breaks the run":         {[]answer{{0, true}, {second, false}, {2 * second, true}}, undecided},
		"two failures of three":            {[]answer{{0, false}, {second, false}}, undecided},
		"three failures":                   {[]answer{{0, false}, {second, false}, {2 * second, false}}, failing},
		"eager failures count once":        {[]answer{{0, false}, {second / 10, false}, {second / 5, false}}, undecided},
		"a success forgets the failures":   {[]answer{{0, false}, {second, false}, {2 * second, true}, {3 * second, false}}, undecided},
		"passing survives a lone failure":  {[]answer{{0, true}, {second, true}, {2 * second, false}}, passing},
		"passing ends after the threshold": {[]answer{{0, true}, {second, true}, {2 * second, false}, {3 * second, false}, {4 * second, false}}, failing},
	} {
		if got := observations(probe, example.answers...); got != example.want {
			t.Errorf("%s: got %v, want %v", name, got, example.want)
		}
	}
}

func TestAProbeAsksEagerlyOnlyUntilItsFirstSuccess(t *testing.T) {
	tracker := newProbeTracker(&corev1.Probe{PeriodSeconds: 10})
	tracker.observe(time.Now(), false)
	if tracker.delay() != eagerProbePeriod {
		t.Errorf("before the first success it waits %s", tracker.delay())
	}
	tracker.observe(time.Now(), true)
	if tracker.delay() != 10*time.Second {
		t.Errorf("after it, it waits %s", tracker.delay())
	}
}

func TestOnlyANewVerdictIsReported(t *testing.T) {
	tracker := newProbeTracker(&corev1.Probe{})
	now := time.Now()
	if !tracker.observe(now, true) || tracker.observe(now, true) {
		t.Error("expected the first success to be news and the second not")
	}
}
