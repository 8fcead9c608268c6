package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// faultsFile lies in the node's state directory. It holds the faults that are on, as a JSON object; no file means none. It is
// read at the moments that it decides about, so a change needs no signal, and it outlives a restart of the node.
const faultsFile = "faults.json"

// faults are what goes wrong on purpose. Pods are named by patterns over "namespace/name", as in path.Match.
type faults struct {
	// LostHeartbeat stops renewing the node's lease and status.
	LostHeartbeat bool `json:"lost_heartbeat"`
	// NeverStart holds new containers of these pods in ContainerCreating for as long as the pattern stands.
	NeverStart []string `json:"never_start"`
	// IgnoreSIGTERM withholds SIGTERM from these pods, so that only the kill at the deadline ends them.
	IgnoreSIGTERM []string `json:"ignore_sigterm"`
	// SlowExit delivers SIGTERM late, so that the pod takes longer to end; the deadline stays.
	SlowExit []slowExit `json:"slow_exit"`
}

type slowExit struct {
	Pod    string  `json:"pod"`
	DelayS float64 `json:"delay_s"`
}

// readFaults returns the faults that are on.
func readFaults(file string) (faults, error) {
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return faults{}, nil
	}
	if err != nil {
		return faults{}, fmt.Errorf("read faults: %w", err)
	}
	var found faults
	if err := json.Unmarshal(text, &found); err != nil {
		return faults{}, fmt.Errorf("faults file %s: expected keys lost_heartbeat, never_start, ignore_sigterm, slow_exit: %w", file, err)
	}
	return found, nil
}

func (f faults) neverStarts(pod *corev1.Pod) bool {
	return matchesAny(f.NeverStart, pod)
}

func (f faults) withholdsSIGTERM(pod *corev1.Pod) bool {
	return matchesAny(f.IgnoreSIGTERM, pod)
}

// sigtermDelay returns how much later than asked the pod's processes learn that they are to stop.
func (f faults) sigtermDelay(pod *corev1.Pod) time.Duration {
	for _, slow := range f.SlowExit {
		if matchesAny([]string{slow.Pod}, pod) {
			return time.Duration(slow.DelayS * float64(time.Second))
		}
	}
	return 0
}

func matchesAny(patterns []string, pod *corev1.Pod) bool {
	for _, pattern := range patterns {
		if matches, err := path.Match(pattern, podKey(pod)); err == nil && matches {
			return true
		}
	}
	return false
}

func podKey(pod *corev1.Pod) string {
	return pod.Namespace + "/" + pod.Name
}
