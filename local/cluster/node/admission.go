package node

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// unsupportedError says that a pod asks for something that this node does not do. It is better refused than ignored.
type unsupportedError struct {
	field, instead string
}

func (e *unsupportedError) Error() string {
	return fmt.Sprintf("Pod was rejected: this node runs containers as processes and does not support %s; %s", e.field, e.instead)
}

// unsupported returns what of a pod this node cannot honour, nil when nothing.
func unsupported(pod *corev1.Pod) error {
	if pod.Spec.ActiveDeadlineSeconds != nil {
		return &unsupportedError{field: "activeDeadlineSeconds", instead: "let the process itself end"}
	}
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil {
			return &unsupportedError{field: "a restartable init container", instead: "make " + c.Name + " an ordinary container"}
		}
	}
	for _, c := range pod.Spec.Containers {
		if c.Lifecycle != nil && c.Lifecycle.PostStart != nil {
			return &unsupportedError{field: "postStart", instead: "start what " + c.Name + " needs from its command"}
		}
		for _, probe := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
			if probe != nil && probe.GRPC != nil {
				return &unsupportedError{field: "a grpc probe", instead: "use httpGet, exec or tcpSocket"}
			}
		}
	}
	return nil
}
