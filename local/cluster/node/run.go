package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	vkslog "github.com/virtual-kubelet/virtual-kubelet/log/slog"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
)

// Run is a node until the context ends. Then it ends the node's pods.
func Run(ctx context.Context, options Options) error {
	server, client, err := connect(options.Kubeconfig)
	if err != nil {
		return err
	}
	// What serves the pods outlives the request to end, so that their end can still be written.
	life, end := context.WithCancel(log.WithLogger(context.WithoutCancel(ctx), libraryLog()))
	defer end()

	events := record.NewBroadcaster()
	events.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.CoreV1().Events("")})
	defer events.Shutdown()

	factory := podsOfNode(client, options.Name)
	pods := factory.Core().V1().Pods()
	provider, err := newProvider(life, options, &host{
		configs:    apiConfigs{client: client},
		access:     accessMaker{client: client, server: server},
		address:    options.hostAddress(),
		imagesFile: options.ImagesFile,
		faultsFile: filepath.Join(options.StateDir, faultsFile),
		events:     events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "fish-node", Host: options.Name}),
	}, pods.Lister())
	if err != nil {
		return err
	}
	port, err := serveLogs(life, options, provider)
	if err != nil {
		return err
	}
	controllers, err := newControllers(client, pods, provider, options, port)
	if err != nil {
		return err
	}
	factory.Start(life.Done())
	factory.WaitForCacheSync(ctx.Done())
	return controllers.runUntil(ctx, life, provider.shutDown)
}

// libraryLog passes on virtual-kubelet's warnings; its other lines say what the events of this package say better.
func libraryLog() log.Logger {
	return vkslog.FromSlog(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
}

func connect(kubeconfig string) (*rest.Config, *kubernetes.Clientset, error) {
	server, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	// No limit of our own: a burst of pods must not wait for the client's default of five questions a second.
	server.QPS = -1
	client, err := kubernetes.NewForConfig(server)
	if err != nil {
		return nil, nil, fmt.Errorf("use kubeconfig %s: %w", kubeconfig, err)
	}
	return server, client, nil
}

func podsOfNode(client kubernetes.Interface, nodeName string) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(
		func(list *metav1.ListOptions) {
			list.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", nodeName).String()
		}))
}
