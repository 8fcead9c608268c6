package node

import (
	"slices"
	"testing"
	"time"
)

func TestRestartsAreSpacedLikeTheKubelets(t *testing.T) {
	var spacing backoff
	var waits []time.Duration
	for range 8 {
		waits = append(waits, spacing.next(time.Second))
	}
	second := time.Second
	want := []time.Duration{0, 10 * second, 20 * second, 40 * second, 80 * second, 160 * second, 300 * second, 300 * second}
	if !slices.Equal(waits, want) {
		t.Fatalf("got %v, want %v", waits, want)
	}
}

func TestALongRunEarnsAnImmediateRestart(t *testing.T) {
	var spacing backoff
	spacing.next(0)
	spacing.next(0)
	if wait := spacing.next(backoffResetAfter); wait != 0 {
		t.Fatalf("waited %s after a run of %s", wait, backoffResetAfter)
	}
}
