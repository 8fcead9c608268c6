package node

import (
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
