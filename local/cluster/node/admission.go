package node

import (
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// admit gives a pod what it needs of the node, or nothing. The caller holds the mutex.
func (p *provider) admit(pod *corev1.Pod) (podRecord, error) {
	if err := unsupported(pod); err != nil {
		return podRecord{}, err
	}
	count := 0
	for index := range pod.Spec.Containers {
		count += requestedGPUs(&pod.Spec.Containers[index])
	}
	gpus, err := p.gpus.take(pod.UID, count)
	if err != nil {
		return podRecord{}, err
	}
	address, err := p.addresses.take(pod.UID)
	if err == nil {
		err = os.MkdirAll(p.podDir(pod.UID), 0o755)
	}
	if err != nil {
		p.gpus.release(pod.UID)
		p.addresses.release(pod.UID)
		return podRecord{}, err
	}
	return podRecord{Pod: pod, Address: address.String(), GPUs: gpus, StartedAt: metav1.Now()}, nil
}

// rejectionReason is the pod's status.reason when the node refuses it.
func rejectionReason(err error) string {
	if full := new(outOfGPUsError); errors.As(err, &full) {
		return "OutOf" + gpuResource
	}
	if lacking := new(unsupportedError); errors.As(err, &lacking) {
		return "Unsupported"
	}
	return "UnexpectedAdmissionError"
}

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
