package node

import (
	"context"
	"log/slog"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// heard acts on a new verdict of a probe.
func (w *worker) heard(c *container, found probeReport) {
	if !found.passing {
		w.host.events.Eventf(w.pod, corev1.EventTypeWarning, "Unhealthy", "%s probe failed: %v", found.kind, found.reason)
	}
	if c.heard(found) {
		w.host.events.Eventf(w.pod, corev1.EventTypeNormal, "Killing",
			"Container %s failed its %s probe and will be restarted by its policy", c.spec.Name, found.kind)
		w.stop(c, time.Now().Add(probeGrace(w.pod, c.spec, found.kind)))
	}
}

// probeGrace is how long a container may take to stop after a probe failed: the probe's own figure, else the pod's.
func probeGrace(pod *corev1.Pod, c *corev1.Container, kind probeKind) time.Duration {
	probe := c.LivenessProbe
	if kind == startupProbe {
		probe = c.StartupProbe
	}
	if probe.TerminationGracePeriodSeconds != nil {
		return time.Duration(*probe.TerminationGracePeriodSeconds) * time.Second
	}
	return podGrace(pod)
}

// stop asks a running container to end by the deadline, or brings forward the deadline of an earlier call.
func (w *worker) stop(c *container, deadline time.Time) {
	if c.process == nil {
		return
	}
	if !c.killAt.IsZero() {
		if deadline.Before(c.killAt) {
			c.killAt = deadline
		}
		return
	}
	c.killAt = deadline
	w.host.events.Eventf(w.pod, corev1.EventTypeNormal, "Killing", "Stopping container %s", c.spec.Name)
	found, err := readFaults(w.host.faultsFile)
	if err != nil {
		slog.Error("faults are ignored", "error", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	// Probes go on while the container drains: readiness is how it says that it takes nothing new.
	cancelProbes := c.cancelRun
	c.cancelRun = func() { cancel(); cancelProbes() }
	go stopSequence(ctx, w.pod, c.spec, c.at, c.process, found)
}

// stopSequence runs the preStop hook and sends SIGTERM. It ends early when the container has.
func stopSequence(ctx context.Context, pod *corev1.Pod, spec *corev1.Container, at place, running *process, found faults) {
	if spec.Lifecycle != nil && spec.Lifecycle.PreStop != nil {
		if err := runHook(ctx, *spec.Lifecycle.PreStop, at); err != nil && ctx.Err() == nil {
			slog.Warn("a preStop hook failed", "pod", podKey(pod), "container", spec.Name, "error", err)
		}
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(found.sigtermDelay(pod)):
	}
	if found.withholdsSIGTERM(pod) {
		return
	}
	running.signal(syscall.SIGTERM)
}

// killOverdue kills what should have ended by now.
func (w *worker) killOverdue(now time.Time) {
	for _, c := range w.all() {
		if c.process != nil && !c.killAt.IsZero() && !now.Before(c.killAt) {
			c.process.signal(syscall.SIGKILL)
		}
	}
}
