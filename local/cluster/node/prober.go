package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// probeKind is which of a container's probes spoke.
type probeKind string

const (
	startupProbe   probeKind = "Startup"
	readinessProbe probeKind = "Readiness"
	livenessProbe  probeKind = "Liveness"
)

// probeReport is a new verdict of one probe.
type probeReport struct {
	kind    probeKind
	passing bool
	// reason is what the last answer was, for a failing probe.
	reason error
}

// watchProbes asks a container's probes until the context ends. Readiness and liveness wait for the startup probe's success.
func watchProbes(ctx context.Context, container *corev1.Container, at place, report func(probeReport)) {
	if container.StartupProbe != nil {
		started, startupOver := context.WithCancel(ctx)
		defer startupOver()
		watchProbe(started, startupProbe, container.StartupProbe, at, func(found probeReport) {
			report(found)
			if found.passing {
				startupOver()
			}
		})
	}
	if container.ReadinessProbe != nil {
		go watchProbe(ctx, readinessProbe, container.ReadinessProbe, at, report)
	}
	if container.LivenessProbe != nil {
		go watchProbe(ctx, livenessProbe, container.LivenessProbe, at, report)
	}
}

// watchProbe asks one probe, first as soon as its initial delay has passed, until the context ends.
func watchProbe(ctx context.Context, kind probeKind, probe *corev1.Probe, at place, report func(probeReport)) {
	tracker := newProbeTracker(probe)
	wait := time.Duration(probe.InitialDelaySeconds) * time.Second
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		err := askWithin(ctx, probe, at)
		if ctx.Err() != nil {
			return
		}
		if tracker.observe(time.Now(), err == nil) {
			report(probeReport{kind: kind, passing: tracker.verdict == passing, reason: err})
		}
		wait = tracker.delay()
	}
}

func askWithin(ctx context.Context, probe *corev1.Probe, at place) error {
	limited, cancel := context.WithTimeout(ctx, time.Duration(max(probe.TimeoutSeconds, 1))*time.Second)
	defer cancel()
	return askProbe(limited, probe.ProbeHandler, at)
}
