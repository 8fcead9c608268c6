package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons in container states, as the kubelet writes them.
const (
	reasonCreating      = "ContainerCreating"
	reasonInitializing  = "PodInitializing"
	reasonBackOff       = "CrashLoopBackOff"
	reasonImage         = "ErrImagePull"
	reasonConfig        = "CreateContainerConfigError"
	reasonStart         = "StartError"
	reasonCompleted     = "Completed"
	reasonError         = "Error"
	reasonStatusUnknown = "ContainerStatusUnknown"
)

// The kubelet's limits on a termination message.
const (
	maxTerminationMessageBytes = 4096
	maxLogTailBytes            = 2048
	maxLogTailLines            = 80
)

// container is one container of a pod. Its status is its state: what the API shows is what the node knows.
type container struct {
	spec   *corev1.Container
	isInit bool
	// dir is the container's own directory below the pod's.
	dir    string
	status corev1.ContainerStatus

	// process runs, or is nil.
	process *process
	at      place
	// cancelRun ends what goes on beside the process: its probes, and the sequence that stops it.
	cancelRun context.CancelFunc
	// startAt is the earliest moment of the next start.
	startAt time.Time
	backoff backoff
	// isOpen says that files of the current run exist, so that another try at the same run does not count as a restart.
	isOpen bool
	// killAt is when the process is to be killed; zero while nobody stops it.
	killAt time.Time
}

func newContainer(spec *corev1.Container, isInit bool, podDir, waitingReason string) *container {
	return &container{
		spec:   spec,
		isInit: isInit,
		dir:    containerDir(podDir, spec.Name),
		status: corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, State: waiting(waitingReason, "")},
	}
}

func containerDir(podDir, name string) string {
	return filepath.Join(podDir, "containers", name)
}

// runFile returns the path of a file of one run of a container, counted from 0.
func runFile(containerDir string, run int32, suffix string) string {
	return filepath.Join(containerDir, fmt.Sprintf("%d.%s", run, suffix))
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// hasEnded tells whether the container ended and will not run again.
func (c *container) hasEnded(policy corev1.RestartPolicy) bool {
	ended := c.status.State.Terminated
	return c.process == nil && ended != nil && !restarts(policy, c.isInit, ended.ExitCode)
}

func (c *container) exitFile() string { return runFile(c.dir, c.status.RestartCount, "exit") }

func (c *container) messageFile() string { return runFile(c.dir, c.status.RestartCount, "message") }

func (c *container) logFile() string { return runFile(c.dir, c.status.RestartCount, "log") }

// beginRun makes room for the next run and keeps the logs of the last one, for `kubectl logs --previous`.
func (c *container) beginRun() error {
	if ended := c.lastEnd(); ended != nil && !c.isOpen {
		c.status.LastTerminationState = corev1.ContainerState{Terminated: ended}
		c.status.RestartCount++
		for _, suffix := range []string{"log", "exit", "message"} {
			_ = os.Remove(runFile(c.dir, c.status.RestartCount-2, suffix))
		}
	}
	c.isOpen = true
	if err := os.MkdirAll(filepath.Join(c.dir, "work"), 0o755); err != nil {
		return fmt.Errorf("make the container's directory: %w", err)
	}
	return os.WriteFile(c.messageFile(), nil, 0o644)
}

// lastEnd returns how the latest run ended, nil before the first.
func (c *container) lastEnd() *corev1.ContainerStateTerminated {
	if c.status.State.Terminated != nil {
		return c.status.State.Terminated
	}
	return c.status.LastTerminationState.Terminated
}

// isRunning notes that the process of a new run lives.
func (c *container) isRunning(started *process, at place, now time.Time) {
	c.process, c.at, c.startAt, c.killAt = started, at, time.Time{}, time.Time{}
	c.status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}
	c.status.ContainerID = containerID(started.id)
	hasStarted := c.spec.StartupProbe == nil
	c.status.Started = &hasStarted
	c.status.Ready = hasStarted && c.spec.ReadinessProbe == nil
}

// ended notes the end of a run and decides when the next one begins, if there is to be one.
func (c *container) ended(code int32, reason, message string, policy corev1.RestartPolicy, now time.Time) {
	startedAt := metav1.NewTime(now)
	if c.status.State.Running != nil {
		startedAt = c.status.State.Running.StartedAt
	}
	if c.cancelRun != nil {
		c.cancelRun()
	}
	hasStarted := false
	c.process, c.cancelRun, c.killAt, c.isOpen = nil, nil, time.Time{}, false
	c.status.Started, c.status.Ready = &hasStarted, false
	end := &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: message,
		StartedAt: startedAt, FinishedAt: metav1.NewTime(now), ContainerID: c.status.ContainerID,
	}
	c.status.State = corev1.ContainerState{Terminated: end}
	if !restarts(policy, c.isInit, code) {
		c.status.Ready = c.isInit && code == 0
		return
	}
	if wait := c.backoff.next(now.Sub(startedAt.Time)); wait > 0 {
		c.startAt = now.Add(wait)
		c.status.LastTerminationState = corev1.ContainerState{Terminated: end}
		c.status.State = waiting(reasonBackOff, fmt.Sprintf("back-off %s restarting failed container=%s", wait, c.spec.Name))
	}
}

// endForGood replaces a wait by the end that a deleted pod's status must show.
func (c *container) endForGood(now time.Time) {
	if c.status.State.Waiting == nil {
		return
	}
	if last := c.status.LastTerminationState.Terminated; last != nil {
		c.status.State = corev1.ContainerState{Terminated: last}
		return
	}
	c.status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: exitKilled, Reason: reasonStatusUnknown, Message: "The container was not started before the pod was deleted",
		FinishedAt: metav1.NewTime(now),
	}}
}

// heard notes a new verdict of a probe and tells whether the container must be stopped for it.
func (c *container) heard(found probeReport) bool {
	switch found.kind {
	case startupProbe:
		c.status.Started = &found.passing
		c.status.Ready = found.passing && c.spec.ReadinessProbe == nil
	case readinessProbe:
		c.status.Ready = found.passing
	}
	return found.kind != readinessProbe && !found.passing
}

// containerID names a run in the form that the API wants, <type>://<id>.
func containerID(id processID) string {
	return fmt.Sprintf("process://%d-%d", id.Group, id.StartTicks)
}

// processGroup returns the process group in a containerID, 0 when there is none.
func processGroup(containerID string) int {
	var id processID
	if _, err := fmt.Sscanf(containerID, "process://%d-%d", &id.Group, &id.StartTicks); err != nil {
		return 0
	}
	return id.Group
}

// exitReason names an exit code.
func exitReason(code int32) string {
	if code == 0 {
		return reasonCompleted
	}
	return reasonError
}

// terminationMessage returns what the container left as its last words.
func (c *container) terminationMessage(code int32) string {
	if text, err := readTail(c.messageFile(), maxTerminationMessageBytes); err == nil && len(text) > 0 {
		return strings.ToValidUTF8(string(text), "�")
	}
	if code == 0 || c.spec.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		return ""
	}
	text, err := readTail(c.logFile(), maxLogTailBytes)
	if err != nil {
		return ""
	}
	lines := strings.SplitAfter(strings.ToValidUTF8(string(text), "�"), "\n")
	return strings.Join(lines[max(0, len(lines)-maxLogTailLines):], "")
}

// readTail returns the last bytes of a file.
func readTail(path string, limit int64) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return text[max(0, int64(len(text))-limit):], nil
}
