package node

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
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
