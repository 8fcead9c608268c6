package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1listers "k8s.io/client-go/listers/core/v1"
)

// shutdownGrace is what pods get when the node itself is asked to end.
const shutdownGrace = 2 * time.Second

// provider is what virtual-kubelet drives: it knows the node's pods by UID and what they hold.
type provider struct {
	nodeName string
	podsDir  string
	statusAt string
	host     *host
	// pods is the API server's view, as last heard.
	pods corev1listers.PodLister
	// ctx is the life of the node; a pod outlives the call that created it.
	ctx    context.Context
	notify func(*corev1.Pod)

	mutex   sync.Mutex
	workers map[types.UID]*worker
	// rejected pods stay rejected, even if the node has room again before the API server has heard of it.
	rejected  map[types.UID]bool
	gpus      *gpuPool
	addresses *addressPool
}

func newProvider(ctx context.Context, options Options, shared *host, pods corev1listers.PodLister) (*provider, error) {
	p := &provider{
		nodeName:  options.Name,
		podsDir:   filepath.Join(options.StateDir, "pods"),
		statusAt:  filepath.Join(options.StateDir, "status.json"),
		host:      shared,
		pods:      pods,
		ctx:       ctx,
		notify:    func(*corev1.Pod) {},
		workers:   map[types.UID]*worker{},
		rejected:  map[types.UID]bool{},
		gpus:      newGPUPool(options.Name, options.GPUs),
		addresses: newAddressPool(options.PodCIDR),
	}
	shared.publish = p.announce
	shared.release = p.release
	shared.changed = p.writeStatusFile
	if err := os.MkdirAll(p.podsDir, 0o755); err != nil {
		return nil, fmt.Errorf("make the node's state directory: %w", err)
	}
	return p, nil
}

// NotifyPods takes the function that announces a pod's new status, and starts the pods of an earlier life of this node.
func (p *provider) NotifyPods(_ context.Context, notify func(*corev1.Pod)) {
	p.notify = notify
	if err := p.adoptAll(); err != nil {
		slog.Error("cannot adopt the pods of an earlier life of this node", "error", err)
	}
	p.writeStatusFile()
}

// announce tells virtual-kubelet a pod's new status. It knows pods by name only, so the last words of a pod whose object has
// gone must not be taken for those of a later pod of the same name.
func (p *provider) announce(pod *corev1.Pod) {
	if current, err := p.pods.Pods(pod.Namespace).Get(pod.Name); err == nil && current.UID != pod.UID {
		return
	}
	p.notify(pod)
}

// CreatePod starts a pod, or fails it when the node cannot hold it. Called again for a pod it has, it does nothing.
func (p *provider) CreatePod(_ context.Context, pod *corev1.Pod) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if _, isKnown := p.workers[pod.UID]; isKnown || p.rejected[pod.UID] {
		return nil
	}
	for _, other := range p.workers {
		if isNamesake(other.snapshot.Load(), pod) {
			go other.terminate(time.Now().Add(orphanGrace), "", "")
		}
	}
	record, err := p.admit(pod)
	if err != nil {
		slog.Warn("pod rejected", "pod", podKey(pod), "reason", err)
		p.rejected[pod.UID] = true
		refused := pod.DeepCopy()
		refused.Status = rejectedStatus(pod, rejectionReason(err), err.Error(), metav1.Now())
		go p.announce(refused)
		return nil
	}
	w := newWorker(p.host, record, p.podDir(pod.UID))
	w.mourn(pod.Status, time.Now())
	p.workers[pod.UID] = w
	go w.run(p.ctx)
	return nil
}

// UpdatePod takes a newer version of a pod.
func (p *provider) UpdatePod(_ context.Context, pod *corev1.Pod) error {
	w, isKnown := p.worker(pod.UID)
	if !isKnown {
		return errdefs.NotFoundf("pod %s with UID %s is not on node %s", podKey(pod), pod.UID, p.nodeName)
	}
	w.update(pod)
	return nil
}

// DeletePod ends a pod within the grace its deletion gives; called again, it takes a shorter grace over.
func (p *provider) DeletePod(_ context.Context, pod *corev1.Pod) error {
	w, isKnown := p.worker(pod.UID)
	if !isKnown {
		return errdefs.NotFoundf("pod %s with UID %s is not on node %s", podKey(pod), pod.UID, p.nodeName)
	}
	go w.terminate(killDeadline(pod, time.Now()), "", "")
	if pod.DeletionTimestamp == nil {
		// The object has gone already, so nobody will ask again.
		go func() {
			<-w.over
			p.forget(pod.UID)
		}()
	}
	return nil
}

// settle is asked before a pod object may go. It answers yes once nothing of the pod runs, and ends the pod if need be.
func (p *provider) settle(pod *corev1.Pod) bool {
	w, isKnown := p.worker(pod.UID)
	if !isKnown || w.hasFinished() {
		return true
	}
	go w.terminate(killDeadline(pod, time.Now()), "", "")
	return false
}

// forget drops a pod whose object has gone.
func (p *provider) forget(uid types.UID) {
	p.mutex.Lock()
	delete(p.workers, uid)
	delete(p.rejected, uid)
	p.mutex.Unlock()
	if err := os.RemoveAll(p.podDir(uid)); err != nil {
		slog.Error("cannot remove a pod's directory", "error", err)
	}
	p.writeStatusFile()
}

func (p *provider) release(pod *corev1.Pod) {
	p.mutex.Lock()
	p.gpus.release(pod.UID)
	p.addresses.release(pod.UID)
	p.mutex.Unlock()
	p.writeStatusFile()
}

// GetPod returns the pod of this name. While a newer pod of the same name exists, an older one that still ends is not it.
func (p *provider) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	wanted := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if current, err := p.pods.Pods(namespace).Get(name); err == nil {
		wanted = current
	}
	for _, pod := range p.all() {
		if pod.UID == wanted.UID || wanted.UID == "" && isNamesake(pod, wanted) {
			return pod, nil
		}
	}
	return nil, errdefs.NotFoundf("pod %s/%s is not on node %s", namespace, name, p.nodeName)
}

// GetPodStatus returns the status of the pod of this name.
func (p *provider) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods returns all pods of the node.
func (p *provider) GetPods(context.Context) ([]*corev1.Pod, error) {
	return p.all(), nil
}

func (p *provider) all() []*corev1.Pod {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	pods := make([]*corev1.Pod, 0, len(p.workers))
	for _, w := range p.workers {
		pods = append(pods, w.snapshot.Load().DeepCopy())
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return pods
}

func (p *provider) worker(uid types.UID) (*worker, bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	w, isKnown := p.workers[uid]
	return w, isKnown
}

func (p *provider) podDir(uid types.UID) string {
	return filepath.Join(p.podsDir, string(uid))
}

// shutDown ends all pods, as a machine that is switched off does, and waits until they have ended.
func (p *provider) shutDown() {
	p.mutex.Lock()
	workers := make([]*worker, 0, len(p.workers))
	for _, w := range p.workers {
		workers = append(workers, w)
	}
	p.mutex.Unlock()
	deadline := time.Now().Add(shutdownGrace)
	for _, w := range workers {
		go w.terminate(deadline, "Terminated", "Pod was terminated in response to imminent node shutdown.")
	}
	for _, w := range workers {
		<-w.over
	}
}

func isNamesake(a, b *corev1.Pod) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name
}
