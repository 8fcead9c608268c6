package node

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
)

// Waits before another try at what failed for a reason outside the pod. They are short because the reason is usually a file
// or object that somebody is about to make.
const (
	retryPeriod      = time.Second
	faultCheckPeriod = 200 * time.Millisecond
)

// host is what all pods of a node share.
type host struct {
	configs    configReader
	access     accessMaker
	address    string
	imagesFile string
	faultsFile string
	events     record.EventRecorder
	// publish hands a pod with a new status to virtual-kubelet.
	publish func(*corev1.Pod)
	// release gives the pod's GPUs and address back.
	release func(*corev1.Pod)
	// changed is called when a process of a pod started or ended.
	changed func()
}

// worker runs one pod. Its own goroutine alone reads and writes it; others send it messages.
type worker struct {
	host      *host
	pod       *corev1.Pod
	dir       string
	address   string
	gpus      []string
	startedAt metav1.Time

	inits      []*container
	containers []*container
	isPrepared bool
	volumeDirs map[string]string
	access     access
	// retryAt is when to try again what failed in preparing the pod.
	retryAt time.Time
	// deadline is when the processes of a pod that is to end are killed; zero while it is to run.
	deadline time.Time
	// reason and message explain an end that was the node's decision.
	reason, message string

	inbox chan func()
	over  chan struct{}
	// snapshot is the pod with its newest status, for other goroutines.
	snapshot atomic.Pointer[corev1.Pod]
}

func newWorker(host *host, record podRecord, dir string) *worker {
	w := &worker{
		host: host, pod: record.Pod, dir: dir, address: record.Address, gpus: record.GPUs, startedAt: record.StartedAt,
		inbox: make(chan func()), over: make(chan struct{}),
	}
	reason := reasonCreating
	for index := range record.Pod.Spec.InitContainers {
		w.inits = append(w.inits, newContainer(&record.Pod.Spec.InitContainers[index], true, dir, reason))
	}
	if len(w.inits) > 0 {
		reason = reasonInitializing
	}
	for index := range record.Pod.Spec.Containers {
		w.containers = append(w.containers, newContainer(&record.Pod.Spec.Containers[index], false, dir, reason))
	}
	w.snapshot.Store(w.withStatus(record.Pod.Status))
	return w
}

func (w *worker) all() []*container {
	return slices.Concat(w.inits, w.containers)
}

// run lives as long as the pod has something to do here.
func (w *worker) run(ctx context.Context) {
	defer close(w.over)
	for {
		wake := w.reconcile(ctx, time.Now())
		if w.isOver() {
			// First the GPUs, then the word of it: whoever reads the terminal phase may bind the next pod at once.
			w.host.release(w.pod)
			w.publish(time.Now())
			return
		}
		w.publish(time.Now())
		select {
		case message := <-w.inbox:
			message()
		case <-time.After(time.Until(wake)):
		case <-ctx.Done():
			return
		}
	}
}

// send gives the worker a message, unless it is over.
func (w *worker) send(message func()) {
	select {
	case w.inbox <- message:
	case <-w.over:
	}
}

func (w *worker) hasFinished() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// update takes a newer version of the pod object. What may change in it and matters here is metadata.
func (w *worker) update(pod *corev1.Pod) {
	w.send(func() {
		w.pod = pod
		w.snapshot.Store(w.withStatus(w.snapshot.Load().Status))
		w.host.changed()
	})
}

// terminate ends the pod by the deadline. A later call may bring the deadline forward, never push it back.
func (w *worker) terminate(deadline time.Time, reason, message string) {
	w.send(func() {
		if w.deadline.IsZero() {
			w.reason, w.message = reason, message
			w.deadline = deadline
		}
		if deadline.Before(w.deadline) {
			w.deadline = deadline
		}
		for _, running := range w.all() {
			w.stop(running, w.deadline)
		}
	})
}

// reconcile brings what runs closer to what should run, and returns when to look again.
func (w *worker) reconcile(ctx context.Context, now time.Time) time.Time {
	w.killOverdue(now)
	if !w.deadline.IsZero() {
		if w.isOver() {
			for _, idle := range w.all() {
				idle.endForGood(now)
			}
		}
		return w.nextWake(now)
	}
	w.prepare(ctx, now)
	if w.isPrepared {
		for _, due := range w.due(now) {
			w.start(ctx, due, now)
		}
	}
	return w.nextWake(now)
}

// due returns the containers that should run, do not, and may start now: init containers one after another, then the others.
func (w *worker) due(now time.Time) []*container {
	candidates := w.containers
	for _, init := range w.inits {
		if !init.hasEnded(w.pod.Spec.RestartPolicy) {
			candidates = []*container{init}
			break
		}
		if init.status.State.Terminated.ExitCode != 0 {
			return nil
		}
	}
	var due []*container
	for _, candidate := range candidates {
		if candidate.process == nil && !candidate.hasEnded(w.pod.Spec.RestartPolicy) && !now.Before(candidate.startAt) {
			due = append(due, candidate)
		}
	}
	return due
}

// isOver tells whether nothing of the pod runs and nothing will.
func (w *worker) isOver() bool {
	if slices.ContainsFunc(w.all(), func(c *container) bool { return c.process != nil }) {
		return false
	}
	if !w.deadline.IsZero() {
		return true
	}
	policy := w.pod.Spec.RestartPolicy
	failedInit := slices.ContainsFunc(w.inits, func(c *container) bool {
		return c.hasEnded(policy) && c.status.State.Terminated.ExitCode != 0
	})
	return failedInit || !slices.ContainsFunc(w.containers, func(c *container) bool { return !c.hasEnded(policy) })
}

// nextWake returns the earliest moment at which time alone changes what is to be done.
func (w *worker) nextWake(now time.Time) time.Time {
	moments := []time.Time{w.retryAt, w.access.renewAt}
	for _, c := range w.all() {
		moments = append(moments, c.startAt, c.killAt)
	}
	next := now.Add(time.Hour)
	for _, moment := range moments {
		if !moment.IsZero() && moment.After(now) && moment.Before(next) {
			next = moment
		}
	}
	return next
}

// publish records and announces the pod's status when it has changed.
func (w *worker) publish(now time.Time) {
	previous := w.snapshot.Load().Status
	status := w.currentStatus(previous, now)
	if equality.Semantic.DeepEqual(previous, status) {
		return
	}
	if err := writeRecord(w.dir, w.record(status)); err != nil {
		slog.Error("cannot record a pod; a restart of the node would lose it", "pod", podKey(w.pod), "error", err)
	}
	announced := w.withStatus(status)
	w.snapshot.Store(announced)
	w.host.changed()
	w.host.publish(announced)
}

func (w *worker) currentStatus(previous corev1.PodStatus, now time.Time) corev1.PodStatus {
	facts := podFacts{
		pod: w.pod, address: w.address, hostAddress: w.host.address, startedAt: w.startedAt, isOver: w.isOver(),
		previous: previous.Conditions, now: metav1.NewTime(now),
	}
	for _, c := range w.inits {
		facts.initContainers = append(facts.initContainers, *c.status.DeepCopy())
	}
	for _, c := range w.containers {
		facts.containers = append(facts.containers, *c.status.DeepCopy())
	}
	status := podStatus(facts)
	if facts.isOver {
		status.Reason, status.Message = w.reason, w.message
	}
	return status
}

func (w *worker) names() podNames {
	return podNames{pod: w.pod, address: w.address, hostAddress: w.host.address}
}

// withStatus returns a copy of the pod that carries the status and the GPUs. Its deletion is the API server's to know:
// virtual-kubelet would take it for an order to delete.
func (w *worker) withStatus(status corev1.PodStatus) *corev1.Pod {
	pod := w.pod.DeepCopy()
	pod.Status = status
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = nil, nil
	if len(w.gpus) > 0 {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, gpuIDsAnnotation, strings.Join(w.gpus, ","))
	}
	return pod
}

func (w *worker) record(status corev1.PodStatus) podRecord {
	pod := w.pod.DeepCopy()
	pod.Status = status
	record := podRecord{
		Pod: pod, Address: w.address, GPUs: w.gpus, StartedAt: w.startedAt, Containers: map[string]containerRecord{},
	}
	for _, c := range w.all() {
		kept := containerRecord{Status: c.status}
		if c.process != nil {
			kept.Process, kept.Place = &c.process.id, c.at
		}
		record.Containers[c.spec.Name] = kept
	}
	return record
}
