package node

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes, as in fish_contracts.exit_codes.
const (
	exitFailed = 1
	exitUsage  = 64
)

// Options say which node to be.
type Options struct {
	Name       string
	Kubeconfig string
	GPUs       int
	ImagesFile string
	PodCIDR    netip.Prefix
	StateDir   string
	// Listen is where the API server asks for logs, over TLS with client certificates of ClientCAFile. Its host is the node's
	// address.
	Listen                          string
	CertFile, KeyFile, ClientCAFile string
}

// Main runs a node until SIGTERM or SIGINT, then ends its pods. A node that is killed leaves them running, and the next one
// with the same state directory takes them over.
func Main(arguments []string) int {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	options, err := parseOptions(arguments)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "fish-cluster node: %v\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := Run(ctx, options); err != nil {
		slog.Error("the node failed", "node", options.Name, "error", err)
		return exitFailed
	}
	return 0
}

func parseOptions(arguments []string) (Options, error) {
	var options Options
	flags := flag.NewFlagSet("fish-cluster node", flag.ContinueOnError)
	flags.StringVar(&options.Name, "name", "", "name of the node")
	flags.StringVar(&options.Kubeconfig, "kubeconfig", "", "file with the access to the API server")
	flags.IntVar(&options.GPUs, "gpus", 0, "number of GPUs to offer; they exist in name only")
	flags.StringVar(&options.ImagesFile, "images", "", "YAML table of the local command behind each image; read again when used")
	podCIDR := flags.String("pod-cidr", "127.1.0.0/16", "loopback addresses to give to pods, this node's alone")
	flags.StringVar(&options.StateDir, "state-dir", "", "directory for pods, logs, status.json and faults.json")
	flags.StringVar(&options.Listen, "listen", "127.0.0.1:10250", "address for the API server's log requests")
	flags.StringVar(&options.CertFile, "cert", "", "certificate of that address")
	flags.StringVar(&options.KeyFile, "key", "", "key of the certificate")
	flags.StringVar(&options.ClientCAFile, "client-ca", "", "authority of the clients that may read logs")
	if err := flags.Parse(arguments); err != nil {
		return Options{}, err
	}
	if flags.NArg() > 0 {
		return Options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	prefix, err := netip.ParsePrefix(*podCIDR)
	if err != nil || !prefix.Addr().IsLoopback() || !prefix.Addr().Is4() {
		return Options{}, fmt.Errorf("--pod-cidr is %q; expected a part of 127.0.0.0/8 such as 127.1.0.0/16", *podCIDR)
	}
	options.PodCIDR = prefix
	return options, options.check()
}

// hostAddress is what pods see as status.hostIP, and where the API server finds the node.
func (o Options) hostAddress() string {
	host, _, _ := net.SplitHostPort(o.Listen)
	return host
}

// check returns what is missing or contradictory.
func (o Options) check() error {
	required := []struct{ flag, value string }{
		{"name", o.Name}, {"kubeconfig", o.Kubeconfig}, {"images", o.ImagesFile}, {"state-dir", o.StateDir},
		{"cert", o.CertFile}, {"key", o.KeyFile}, {"client-ca", o.ClientCAFile},
	}
	for _, option := range required {
		if option.value == "" {
			return fmt.Errorf("--%s is required", option.flag)
		}
	}
	if o.GPUs < 0 {
		return fmt.Errorf("--gpus is %d; expected 0 or more", o.GPUs)
	}
	if net.ParseIP(o.hostAddress()) == nil {
		return fmt.Errorf("--listen is %q; expected <IP address>:<port>", o.Listen)
	}
	return nil
}
