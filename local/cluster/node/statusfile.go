package node

import (
	"encoding/json"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nodeReport is what status.json in the state directory says: who holds which GPU, and which process groups run for whom.
type nodeReport struct {
	Node string      `json:"node"`
	GPUs []gpuReport `json:"gpus"`
	Pods []podReport `json:"pods"`
}

// gpuReport has null for a GPU that nobody holds, and a null class for a pod without the label.
type gpuReport struct {
	ID    string  `json:"id"`
	Pod   *string `json:"pod"`
	Class *string `json:"class"`
}

type podReport struct {
	Pod        string            `json:"pod"`
	UID        types.UID         `json:"uid"`
	Address    string            `json:"address"`
	Phase      corev1.PodPhase   `json:"phase"`
	Containers []containerReport `json:"containers"`
}

// containerReport has process group 0 while nothing of the container runs.
type containerReport struct {
	Name         string `json:"name"`
	ProcessGroup int    `json:"process_group"`
}

// report describes the node. The caller holds the mutex.
func (p *provider) report() nodeReport {
	report := nodeReport{Node: p.nodeName, GPUs: []gpuReport{}, Pods: []podReport{}}
	for _, id := range p.gpus.ids {
		gpu := gpuReport{ID: id}
		if holder, isHeld := p.workers[p.gpus.holder[id]]; isHeld {
			pod := holder.snapshot.Load()
			key := podKey(pod)
			gpu.Pod = &key
			if class, isSet := pod.Labels[workClassLabel]; isSet {
				gpu.Class = &class
			}
		}
		report.GPUs = append(report.GPUs, gpu)
	}
	for uid, w := range p.workers {
		report.Pods = append(report.Pods, describe(uid, w.snapshot.Load()))
	}
	return report
}

func describe(uid types.UID, pod *corev1.Pod) podReport {
	described := podReport{
		Pod: podKey(pod), UID: uid, Address: pod.Status.PodIP, Phase: pod.Status.Phase, Containers: []containerReport{},
	}
	for _, status := range pod.Status.ContainerStatuses {
		group := 0
		if status.State.Running != nil {
			group = processGroup(status.ContainerID)
		}
		described.Containers = append(described.Containers, containerReport{Name: status.Name, ProcessGroup: group})
	}
	return described
}

// writeStatusFile replaces status.json. The mutex is held throughout, so that a later state is never overwritten by an earlier.
func (p *provider) writeStatusFile() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	text, err := json.MarshalIndent(p.report(), "", "  ")
	if err == nil {
		err = writeFileAtomically(p.statusAt, append(text, '\n'), 0o644)
	}
	if err != nil {
		slog.Error("cannot write the node's status file", "error", err)
	}
}
