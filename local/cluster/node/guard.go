package node

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
)

// guardedClient is the pod client that virtual-kubelet writes through. It gives two of its calls the semantics of a kubelet:
//
//   - virtual-kubelet deletes a pod object when its grace period has run out, whatever still runs, and a pod in back-off at
//     once. Here an object goes only after a terminal status with the exit codes has been written, and as soon as it has.
//   - virtual-kubelet replaces the pod by its own copy when it writes a status, which undoes what others wrote meanwhile
//     (labels, the scheduler's conditions). Here only the node's own fields are merged in.
type guardedClient struct {
	corev1client.PodsGetter
	lister corev1listers.PodLister
	settle func(*corev1.Pod) bool
	forget func(types.UID)
}

func (g guardedClient) Pods(namespace string) corev1client.PodInterface {
	return guardedPods{PodInterface: g.PodsGetter.Pods(namespace), guard: g, namespace: namespace}
}

type guardedPods struct {
	corev1client.PodInterface
	guard     guardedClient
	namespace string
}

// UpdateStatus merges the node's status into the pod, and deletes a pod that was only waiting for its end to be written.
func (g guardedPods) UpdateStatus(ctx context.Context, pod *corev1.Pod, _ metav1.UpdateOptions) (*corev1.Pod, error) {
	patch, err := statusPatch(pod)
	if err != nil {
		return nil, err
	}
	written, err := g.PodInterface.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return nil, err
	}
	if isTerminal(written.Status.Phase) && written.DeletionTimestamp != nil {
		return written, g.remove(ctx, written)
	}
	return written, nil
}

// Delete lets a pod object go once nothing of the pod runs. Until then it says yes and does nothing: the write of the terminal
// status deletes.
func (g guardedPods) Delete(ctx context.Context, name string, _ metav1.DeleteOptions) error {
	pod, err := g.guard.lister.Pods(g.namespace).Get(name)
	if err != nil {
		return err
	}
	if !g.guard.settle(pod) {
		return nil
	}
	return g.remove(ctx, pod)
}

// remove deletes this very object, not a later one of the same name.
func (g guardedPods) remove(ctx context.Context, pod *corev1.Pod) error {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	if err := g.PodInterface.Delete(ctx, pod.Name, *options); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	g.guard.forget(pod.UID)
	return nil
}

func isTerminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// statusPatch returns a merge patch with the fields that a node owns. The UID in it makes it fail on a later pod of the name.
func statusPatch(pod *corev1.Pod) ([]byte, error) {
	metadata := map[string]any{"uid": pod.UID}
	if gpus, isSet := pod.Annotations[gpuIDsAnnotation]; isSet {
		metadata["annotations"] = map[string]string{gpuIDsAnnotation: gpus}
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "status": pod.Status})
	if err != nil {
		return nil, fmt.Errorf("encode the status of pod %s: %w", podKey(pod), err)
	}
	return patch, nil
}
