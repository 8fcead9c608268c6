package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/version"
)

// maxPods is the kubelet's default.
const maxPods = 110

// nodeObject returns the node as it registers itself.
func nodeObject(options Options, logPort int32) (*corev1.Node, error) {
	memory, err := machineMemory()
	if err != nil {
		return nil, err
	}
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory: memory,
		corev1.ResourcePods:   *resource.NewQuantity(maxPods, resource.DecimalSI),
		gpuResource:           *resource.NewQuantity(int64(options.GPUs), resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: options.Name,
			Labels: map[string]string{
				corev1.LabelHostname:   options.Name,
				corev1.LabelOSStable:   runtime.GOOS,
				corev1.LabelArchStable: runtime.GOARCH,
			},
		},
		Status: corev1.NodeStatus{
			Capacity:    resources,
			Allocatable: resources,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: options.hostAddress()},
				{Type: corev1.NodeHostName, Address: options.Name},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: logPort}},
			Conditions:      nodeConditions(metav1.Now()),
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
				KubeletVersion: version.Get().GitVersion, ContainerRuntimeVersion: "process://" + version.Get().GitVersion,
			},
		},
	}, nil
}

func nodeConditions(now metav1.Time) []corev1.NodeCondition {
	conditions := []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "NodeReady", Message: "the node runs pods as processes",
	}}
	for _, pressure := range []corev1.NodeConditionType{
		corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure,
	} {
		conditions = append(conditions, corev1.NodeCondition{
			Type: pressure, Status: corev1.ConditionFalse, Reason: "NotMeasured", Message: "the node does not measure this",
		})
	}
	for index := range conditions {
		conditions[index].LastHeartbeatTime, conditions[index].LastTransitionTime = now, now
	}
	return conditions
}

// machineMemory returns the MemTotal line of /proc/meminfo, in bytes.
func machineMemory() (resource.Quantity, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("read the machine's memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		var kibibytes int64
		if _, err := fmt.Sscanf(line, "MemTotal: %d kB", &kibibytes); err == nil {
			return *resource.NewQuantity(kibibytes<<10, resource.BinarySI), nil
		}
	}
	return resource.Quantity{}, errors.New("/proc/meminfo: expected a line `MemTotal: <n> kB`, found none")
}

// heartbeat is the node as virtual-kubelet asks after it. A failed ping is a heartbeat that is not sent.
type heartbeat struct {
	faultsFile string
}

// Ping fails while the fault says that the heartbeat is lost.
func (h heartbeat) Ping(context.Context) error {
	found, err := readFaults(h.faultsFile)
	if err != nil {
		return err
	}
	if found.LostHeartbeat {
		return errors.New("the heartbeat is lost on request")
	}
	return nil
}

// NotifyNodeStatus has nothing to announce: what the node offers does not change while it lives.
func (h heartbeat) NotifyNodeStatus(context.Context, func(*corev1.Node)) {}
