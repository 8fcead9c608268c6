package node

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// recordingPods is an API server that answers each patch with one pod and remembers what it was asked.
type recordingPods struct {
	corev1client.PodInterface
	answer *corev1.Pod
	patch  []byte
	calls  []string
	uid    *types.UID
}

func (r *recordingPods) Patch(
	_ context.Context, _ string, kind types.PatchType, patch []byte, _ metav1.PatchOptions, subresources ...string,
) (*corev1.Pod, error) {
	r.calls = append(r.calls, "patch "+subresources[0])
	r.patch = patch
	return r.answer, nil
}

func (r *recordingPods) Delete(_ context.Context, _ string, options metav1.DeleteOptions) error {
	r.calls = append(r.calls, "delete")
	r.uid = options.Preconditions.UID
	return nil
}

type onePodGetter struct{ pods *recordingPods }

func (o onePodGetter) Pods(string) corev1client.PodInterface { return o.pods }

// guarded returns a guarded client in front of an API server that has this pod.
func guarded(t *testing.T, pod *corev1.Pod, isSettled bool) (corev1client.PodInterface, *recordingPods) {
	t.Helper()
	api := &recordingPods{answer: pod}
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := store.Add(pod); err != nil {
		t.Fatal(err)
	}
	client := guardedClient{
		PodsGetter: onePodGetter{pods: api}, lister: corev1listers.NewPodLister(store),
		settle: func(*corev1.Pod) bool { return isSettled },
		forget: func(types.UID) { api.calls = append(api.calls, "forget") },
	}
	return client.Pods("default"), api
}

func podInPhase(phase corev1.PodPhase, isBeingDeleted bool) *corev1.Pod {
	pod := shellPod(corev1.RestartPolicyNever, "")
	pod.Status.Phase = phase
	if isBeingDeleted {
		pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	}
	return pod
}

func TestAPodObjectGoesOnlyAfterItsTerminalStatus(t *testing.T) {
	for name, example := range map[string]struct {
		pod  *corev1.Pod
		want []string
	}{
		"running and being deleted": {podInPhase(corev1.PodRunning, true), []string{"patch status"}},
		"failed by itself":          {podInPhase(corev1.PodFailed, false), []string{"patch status"}},
		"failed and being deleted":  {podInPhase(corev1.PodFailed, true), []string{"patch status", "delete", "forget"}},
	} {
		pods, api := guarded(t, example.pod, true)
		if _, err := pods.UpdateStatus(t.Context(), example.pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(api.calls, example.want) {
			t.Errorf("%s: %v, want %v", name, api.calls, example.want)
		}
	}
}

func TestADeleteWaitsUntilNothingOfThePodRuns(t *testing.T) {
	pod := podInPhase(corev1.PodRunning, true)
	for isSettled, want := range map[bool][]string{false: nil, true: {"delete", "forget"}} {
		pods, api := guarded(t, pod, isSettled)
		if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(api.calls, want) {
			t.Errorf("settled %t: %v, want %v", isSettled, api.calls, want)
		}
		if isSettled && *api.uid != pod.UID {
			t.Errorf("deleted whatever has the name, not UID %s", pod.UID)
		}
	}
}

func TestAStatusPatchCarriesTheNodesFieldsOnly(t *testing.T) {
	pod := podInPhase(corev1.PodRunning, false)
	pod.Labels = map[string]string{"fish-tts.io/draining": "old copy"}
	pod.Annotations = map[string]string{gpuIDsAnnotation: "GPU-node-0-0", "someone": "else's"}
	pods, api := guarded(t, pod, true)
	if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	var patch struct {
		Metadata map[string]any `json:"metadata"`
		Spec     any            `json:"spec"`
	}
	if err := json.Unmarshal(api.patch, &patch); err != nil {
		t.Fatal(err)
	}
	annotations, _ := patch.Metadata["annotations"].(map[string]any)
	if patch.Spec != nil || patch.Metadata["labels"] != nil || len(annotations) != 1 || patch.Metadata["uid"] != "uid" {
		t.Fatalf("got %s", api.patch)
	}
}
