package node

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// testNode returns a provider with two GPUs, the store behind its view of the API server, and the statuses it announces.
func testNode(t *testing.T) (*provider, cache.Indexer, chan *corev1.Pod) {
	t.Helper()
	s := newStage(t)
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	options := Options{Name: "node-0", GPUs: 2, PodCIDR: netip.MustParsePrefix("127.1.0.0/16"), StateDir: t.TempDir()}
	// Not the test's own context: that one ends before the clean-up, which must still end the pods.
	life, end := context.WithCancel(context.Background())
	p, err := newProvider(life, options, s.host, corev1listers.NewPodLister(store))
	if err != nil {
		t.Fatal(err)
	}
	announced := make(chan *corev1.Pod, 1000)
	p.NotifyPods(t.Context(), func(pod *corev1.Pod) { announced <- pod })
	t.Cleanup(func() { p.shutDown(); end() })
	return p, store, announced
}

func gpuPod(name string, uid types.UID, gpus string) *corev1.Pod {
	pod := shellPod(corev1.RestartPolicyNever, "trap 'exit 75' TERM; while :; do sleep 0.01; done")
	pod.Name, pod.UID = name, uid
	pod.Labels = map[string]string{workClassLabel: "cleaning"}
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpuResource: resource.MustParse(gpus)}
	return pod
}

// announcedAs waits for a status of the pod in this phase.
func announcedAs(t *testing.T, announced chan *corev1.Pod, uid types.UID, phase corev1.PodPhase) *corev1.Pod {
	t.Helper()
	for patience := time.After(10 * time.Second); ; {
		select {
		case pod := <-announced:
			if pod.UID == uid && pod.Status.Phase == phase {
				return pod
			}
		case <-patience:
			t.Fatalf("pod %s was not announced as %s within 10 s", uid, phase)
		}
	}
}

func create(t *testing.T, p *provider, pod *corev1.Pod) {
	t.Helper()
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

func (p *provider) readReport(t *testing.T) nodeReport {
	t.Helper()
	var report nodeReport
	if err := json.Unmarshal([]byte(contents(t, p.statusAt)), &report); err != nil {
		t.Fatal(err)
	}
	return report
}

func TestAnOvercommittedPodFailsAsOnARealNode(t *testing.T) {
	p, _, announced := testNode(t)
	create(t, p, gpuPod("a", "ua", "2"))
	create(t, p, gpuPod("b", "ub", "1"))
	refused := announcedAs(t, announced, "ub", corev1.PodFailed)
	if refused.Status.Reason != "OutOfnvidia.com/gpu" {
		t.Fatalf("reason %q: %s", refused.Status.Reason, refused.Status.Message)
	}
}

func TestAGPUIsFreeForTheNextPodAsSoonAsTheTerminalPhaseIsKnown(t *testing.T) {
	p, _, announced := testNode(t)
	pod := gpuPod("a", "ua", "2")
	create(t, p, pod)
	if got := announcedAs(t, announced, "ua", corev1.PodRunning).Annotations[gpuIDsAnnotation]; got != "GPU-node-0-0,GPU-node-0-1" {
		t.Fatalf("annotation %q", got)
	}
	graceS := int64(30)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now().Add(30 * time.Second)}, &graceS
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	announcedAs(t, announced, "ua", corev1.PodFailed)
	create(t, p, gpuPod("b", "ub", "2"))
	announcedAs(t, announced, "ub", corev1.PodRunning)
}

func TestTheStatusFileTellsWhoHoldsEachGPU(t *testing.T) {
	p, _, announced := testNode(t)
	create(t, p, gpuPod("a", "ua", "1"))
	announcedAs(t, announced, "ua", corev1.PodRunning)
	report := p.readReport(t)
	first, second := report.GPUs[0], report.GPUs[1]
	if first.Pod == nil || *first.Pod != "default/a" || *first.Class != "cleaning" || second.Pod != nil {
		t.Fatalf("got %s", contents(t, p.statusAt))
	}
	if group := report.Pods[0].Containers[0].ProcessGroup; group == 0 {
		t.Fatal("the running container has no process group")
	}
}

func TestAPodWhoseObjectIsGoneIsEndedAndForgotten(t *testing.T) {
	p, _, announced := testNode(t)
	pod := gpuPod("a", "ua", "1")
	create(t, p, pod)
	announcedAs(t, announced, "ua", corev1.PodRunning)
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its directory is removed", func() bool {
		_, err := os.Stat(filepath.Join(p.podsDir, "ua"))
		return os.IsNotExist(err)
	})
}

func TestALaterPodOfTheSameNameIsNotTakenForTheEarlier(t *testing.T) {
	p, store, announced := testNode(t)
	create(t, p, gpuPod("a", "old", "1"))
	announcedAs(t, announced, "old", corev1.PodRunning)
	later := gpuPod("a", "new", "1")
	if err := store.Add(later); err != nil {
		t.Fatal(err)
	}
	if found, err := p.GetPod(t.Context(), "default", "a"); err == nil {
		t.Fatalf("the node says that it has the later pod: UID %s", found.UID)
	}
	create(t, p, later)
	announcedAs(t, announced, "new", corev1.PodRunning)
	earlier, _ := p.worker("old")
	eventually(t, "the earlier pod is over", earlier.hasFinished)
	for len(announced) > 0 {
		if pod := <-announced; pod.UID == "old" {
			t.Fatalf("the earlier pod's phase %s was announced under the later one's name", pod.Status.Phase)
		}
	}
}

func TestAPodThatAsksForTheUnsupportedIsRefusedWithTheField(t *testing.T) {
	p, _, announced := testNode(t)
	pod := gpuPod("a", "ua", "1")
	pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1}}}
	create(t, p, pod)
	if got := announcedAs(t, announced, "ua", corev1.PodFailed).Status; got.Reason != "Unsupported" {
		t.Fatalf("got %s: %s", got.Reason, got.Message)
	}
}
