package node

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// fillNiceness is what processes without a CPU request run at, so that fill work yields the CPU to everything else.
	fillNiceness = 15
	// exitStartFailed is what container runtimes report for a command that cannot be executed.
	exitStartFailed = 128
	// apiPatience bounds each question to the API server; the worker asks again later.
	apiPatience = 5 * time.Second
)

// prepare makes the pod's token and volumes, and renews them when the token grows old.
func (w *worker) prepare(ctx context.Context, now time.Time) {
	isDue := !w.isPrepared || !w.access.renewAt.IsZero() && !now.Before(w.access.renewAt)
	if !isDue || now.Before(w.retryAt) {
		return
	}
	if err := w.prepareNow(ctx, now); err != nil {
		slog.Warn("cannot prepare a pod", "pod", podKey(w.pod), "error", err)
		w.retryAt = now.Add(retryPeriod)
		for _, c := range w.due(now) {
			w.hold(c, w.retryAt, reasonConfig, err.Error())
		}
		return
	}
	w.isPrepared, w.retryAt = true, time.Time{}
}

func (w *worker) prepareNow(ctx context.Context, now time.Time) error {
	limited, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	granted, err := w.host.access.obtain(limited, w.pod, w.dir, now)
	if err != nil {
		return err
	}
	maker := volumeMaker{
		names: w.names(), configs: w.host.configs, dir: w.dir, token: granted.token,
	}
	dirs, err := maker.prepare(limited)
	if err != nil {
		return err
	}
	w.access, w.volumeDirs = granted, dirs
	return nil
}

// start begins a run of a container, or notes why it cannot yet.
func (w *worker) start(ctx context.Context, c *container, now time.Time) {
	if found, err := readFaults(w.host.faultsFile); err == nil && found.neverStarts(w.pod) {
		w.hold(c, now.Add(faultCheckPeriod), reasonCreating, "")
		return
	}
	found, err := findImage(w.host.imagesFile, c.spec.Image)
	if err != nil {
		w.hold(c, now.Add(retryPeriod), reasonImage, err.Error())
		return
	}
	if err := c.beginRun(); err != nil {
		w.hold(c, now.Add(retryPeriod), reasonConfig, err.Error())
		return
	}
	spec, at, err := w.processSpec(ctx, c, found)
	if err != nil {
		w.hold(c, now.Add(retryPeriod), reasonConfig, err.Error())
		return
	}
	started, err := startProcess(spec)
	if err != nil {
		w.host.events.Eventf(w.pod, corev1.EventTypeWarning, "Failed", "Error: %s", err)
		c.ended(exitStartFailed, reasonStart, err.Error(), w.pod.Spec.RestartPolicy, now)
		return
	}
	c.isRunning(started, at, now)
	w.host.events.Eventf(w.pod, corev1.EventTypeNormal, "Started", "Started container %s", c.spec.Name)
	w.attend(ctx, c)
}

// hold notes why a container cannot start yet, and tells it once.
func (w *worker) hold(c *container, until time.Time, reason, message string) {
	isNews := c.status.State.Waiting == nil || c.status.State.Waiting.Message != message
	if isNews && message != "" {
		w.host.events.Eventf(w.pod, corev1.EventTypeWarning, "Failed", "Error: %s: %s", reason, message)
	}
	if last := c.lastEnd(); last != nil {
		c.status.LastTerminationState = corev1.ContainerState{Terminated: last}
	}
	c.startAt = until
	c.status.State = waiting(reason, message)
}

// attend watches a running process: its end and its probes.
func (w *worker) attend(ctx context.Context, c *container) {
	running := c.process
	run, cancel := context.WithCancel(ctx)
	c.cancelRun = cancel
	go func() {
		code := running.waitForExit()
		w.send(func() {
			c.ended(code, exitReason(code), c.terminationMessage(code), w.restartPolicy(), time.Now())
		})
	}()
	go watchProbes(run, c.spec, c.at, func(found probeReport) {
		w.send(func() {
			if c.process == running {
				w.heard(c, found)
			}
		})
	})
}

// restartPolicy is the pod's, except that nothing restarts in a pod that is to end.
func (w *worker) restartPolicy() corev1.RestartPolicy {
	if !w.deadline.IsZero() {
		return corev1.RestartPolicyNever
	}
	return w.pod.Spec.RestartPolicy
}

// processSpec turns a container's spec into a command of this machine.
func (w *worker) processSpec(ctx context.Context, c *container, found image) (processSpec, place, error) {
	limited, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	base := w.baseEnv(found)
	values, err := containerEnv(limited, c.spec, w.names(), w.host.configs, base)
	if err != nil {
		return processSpec{}, place{}, err
	}
	mounts, err := containerMounts(c.spec, w.volumeDirs, values)
	if err != nil {
		return processSpec{}, place{}, err
	}
	if c.spec.TerminationMessagePath != "" {
		mounts = append(mounts, mount{Path: c.spec.TerminationMessagePath, Dir: c.messageFile()})
	}
	argv := found.Command
	if len(c.spec.Command) > 0 {
		argv = expandAll(c.spec.Command, values)
	}
	argv = append(slices.Clone(argv), expandAll(c.spec.Args, values)...)
	spec := processSpec{
		argv: rewriteAllMounts(argv, mounts), env: w.environment(c, values, mounts),
		dir: filepath.Join(c.dir, "work"), logFile: c.logFile(), exitFile: c.exitFile(), niceness: niceness(w.pod),
	}
	if c.spec.WorkingDir != "" {
		spec.dir = rewriteMounts(c.spec.WorkingDir, mounts)
	}
	return spec, place{Address: w.address, Ports: c.spec.Ports, Env: spec.env, Dir: spec.dir, Mounts: mounts}, nil
}

// baseEnv is what a container finds before its spec says anything: what an image would bring.
func (w *worker) baseEnv(found image) map[string]string {
	values := map[string]string{"LANG": "C.UTF-8", "HOSTNAME": w.pod.Name}
	for _, name := range inheritedVariables {
		if value, isSet := os.LookupEnv(name); isSet {
			values[name] = value
		}
	}
	maps.Copy(values, found.Env)
	return values
}

// environment returns the process's environment: the spec's values with mounts rewritten, then what the node adds. Paths that
// the image table names are already paths of this machine.
func (w *worker) environment(c *container, values map[string]string, mounts []mount) []string {
	final := maps.Clone(values)
	for _, variable := range c.spec.Env {
		if value, isSet := values[variable.Name]; isSet {
			final[variable.Name] = rewriteMounts(value, mounts)
		}
	}
	devices := ""
	if requestedGPUs(c.spec) > 0 {
		devices = strings.Join(w.gpus, ",")
	}
	final[cudaDevicesVariable], final[nvidiaDevicesVariable] = devices, devices
	final[terminationLogVariable] = c.messageFile()
	if _, isSet := final[kubeconfigVariable]; !isSet && w.access.kubeconfig != "" {
		final[kubeconfigVariable] = w.access.kubeconfig
	}
	var environment []string
	for _, name := range slices.Sorted(maps.Keys(final)) {
		environment = append(environment, fmt.Sprintf("%s=%s", name, final[name]))
	}
	return environment
}

func niceness(pod *corev1.Pod) int {
	for _, c := range pod.Spec.Containers {
		if !c.Resources.Requests.Cpu().IsZero() {
			return 0
		}
	}
	return fillNiceness
}

func requestedGPUs(c *corev1.Container) int {
	quantity, isSet := c.Resources.Limits[gpuResource]
	if !isSet {
		quantity = c.Resources.Requests[gpuResource]
	}
	return int(quantity.Value())
}
