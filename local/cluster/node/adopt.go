package node

import (
	"context"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// adoptAll starts the pods of an earlier life of this node, with the GPUs and addresses that they hold.
func (p *provider) adoptAll() error {
	records, err := readRecords(p.podsDir)
	if err != nil {
		return err
	}
	for _, record := range records {
		uid := record.Pod.UID
		w := newWorker(p.host, record, p.podDir(uid))
		p.mutex.Lock()
		p.workers[uid] = w
		p.gpus.restore(uid, record.GPUs)
		if address, err := netip.ParseAddr(record.Address); err == nil {
			p.addresses.restore(uid, address)
		}
		p.mutex.Unlock()
		w.adopt(p.ctx, record, time.Now())
		go w.run(p.ctx)
	}
	return nil
}

// adopt continues what an earlier life of this node recorded: processes that still run are watched again, and the end of the
// others is read from their exit files. It runs before the worker does.
func (w *worker) adopt(ctx context.Context, record podRecord, now time.Time) {
	for _, c := range w.all() {
		kept, isKnown := record.Containers[c.spec.Name]
		if !isKnown {
			continue
		}
		c.status = kept.Status
		if kept.Process == nil {
			continue
		}
		running, lives := adoptProcess(*kept.Process, c.exitFile())
		if !lives {
			code := readExitCode(c.exitFile())
			c.ended(code, exitReason(code), c.terminationMessage(code), w.restartPolicy(), now)
			continue
		}
		c.process, c.at = running, kept.Place
		w.attend(ctx, c)
	}
}

// mourn takes the containers that the API server believes to run for lost: the node has no record of them. Their restart
// policy decides what follows, as after any other end.
func (w *worker) mourn(known corev1.PodStatus, now time.Time) {
	statuses := map[string]corev1.ContainerStatus{}
	for _, status := range append(known.InitContainerStatuses, known.ContainerStatuses...) {
		statuses[status.Name] = status
	}
	for _, c := range w.all() {
		status, isKnown := statuses[c.spec.Name]
		if !isKnown {
			continue
		}
		c.status = status
		if status.State.Running != nil {
			c.ended(exitKilled, reasonStatusUnknown, "The node has no record of this container", w.pod.Spec.RestartPolicy, now)
		}
	}
}
