package node

import (
	"context"
	"fmt"
	"time"

	vk "github.com/virtual-kubelet/virtual-kubelet/node"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	corev1informers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

const (
	// pingPeriod is how soon a lost heartbeat is noticed.
	pingPeriod = time.Second
	// renewPeriod is how often the lease and the status are written. Kubernetes' 10 s leave a busy machine too few tries within
	// the grace of a node that must be noticed soon when it is lost; and a node that was written off is Ready again only with
	// its next status.
	renewPeriod = 4 * time.Second
	// podSyncWorkers is how many pods virtual-kubelet handles at once. Its calls into this package return at once.
	podSyncWorkers = 4
	// Retries: soon at first, and never given up, since a status is announced only when it changes.
	firstRetry   = time.Millisecond
	longestRetry = 5 * time.Second
)

// controllers are the two halves of virtual-kubelet.
type controllers struct {
	pods *vk.PodController
	node *vk.NodeController
}

func newControllers(
	client kubernetes.Interface, pods corev1informers.PodInformer, provider *provider, options Options, logPort int32,
) (controllers, error) {
	podController, err := newPodController(client, pods, provider)
	if err != nil {
		return controllers{}, fmt.Errorf("set up virtual-kubelet's pod controller: %w", err)
	}
	object, err := nodeObject(options, logPort)
	if err != nil {
		return controllers{}, err
	}
	nodeController, err := vk.NewNodeController(
		heartbeat{faultsFile: provider.host.faultsFile}, object, client.CoreV1().Nodes(),
		vk.WithNodeEnableLeaseV1WithRenewInterval(
			client.CoordinationV1().Leases(corev1.NamespaceNodeLease), vk.DefaultLeaseDuration, renewPeriod),
		vk.WithNodePingInterval(pingPeriod),
		vk.WithNodeStatusUpdateInterval(renewPeriod),
	)
	if err != nil {
		return controllers{}, fmt.Errorf("set up virtual-kubelet's node controller: %w", err)
	}
	return controllers{pods: podController, node: nodeController}, nil
}

func newPodController(
	client kubernetes.Interface, pods corev1informers.PodInformer, provider *provider,
) (*vk.PodController, error) {
	// Required by the controller, but used only to resolve environments, which this package does itself: never started.
	unused := informers.NewSharedInformerFactory(client, 0).Core().V1()
	return vk.NewPodController(vk.PodControllerConfig{
		PodClient: guardedClient{
			PodsGetter: client.CoreV1(), lister: pods.Lister(), settle: provider.settle, forget: provider.forget,
		},
		PodInformer: pods,
		Provider:    provider,
		// virtual-kubelet would write an event for each call into the provider; the provider's own say what happened.
		EventRecorder:     &record.FakeRecorder{},
		ConfigMapInformer: unused.ConfigMaps(), SecretInformer: unused.Secrets(), ServiceInformer: unused.Services(),
		SkipDownwardAPIResolution:                true,
		SyncPodsFromKubernetesRateLimiter:        newRateLimiter(),
		DeletePodsFromKubernetesRateLimiter:      newRateLimiter(),
		SyncPodStatusFromProviderRateLimiter:     newRateLimiter(),
		SyncPodsFromKubernetesShouldRetryFunc:    retryForever,
		DeletePodsFromKubernetesShouldRetryFunc:  retryForever,
		SyncPodStatusFromProviderShouldRetryFunc: retryForever,
	})
}

func newRateLimiter() workqueue.TypedRateLimiter[any] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[any](firstRetry, longestRetry)
}

// retryForever leaves the pace to the rate limiter.
func retryForever(context.Context, string, int, time.Time, error) (*time.Duration, error) {
	return nil, nil
}

// runUntil runs both controllers within `life`. When `ctx` ends it calls shutDown first, so that the pods' end is written.
func (c controllers) runUntil(ctx, life context.Context, shutDown func()) error {
	go func() { _ = c.pods.Run(life, podSyncWorkers) }()
	go func() { _ = c.node.Run(life) }()
	select {
	case <-ctx.Done():
		shutDown()
		return nil
	case <-c.pods.Done():
		return fmt.Errorf("virtual-kubelet's pod controller ended: %w", c.pods.Err())
	case <-c.node.Done():
		return fmt.Errorf("virtual-kubelet's node controller ended: %w", c.node.Err())
	}
}
