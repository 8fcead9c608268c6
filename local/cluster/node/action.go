package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// place is where a container runs, as far as probes and hooks must know it.
type place struct {
	Address string                 `json:"address"`
	Ports   []corev1.ContainerPort `json:"ports,omitempty"`
	Env     []string               `json:"env,omitempty"`
	Dir     string                 `json:"dir"`
	Mounts  []mount                `json:"mounts,omitempty"`
}

// probeClient asks each time anew, so that an answer says whether the process accepts connections now. It follows no redirect:
// an answer below 400 is a success.
var probeClient = &http.Client{
	Transport: &http.Transport{
		DisableKeepAlives: true,
		// The kubelet does not verify certificates of probes either: they are the container's own.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// askProbe asks once. nil means success.
func askProbe(ctx context.Context, handler corev1.ProbeHandler, at place) error {
	switch {
	case handler.HTTPGet != nil:
		return askHTTP(ctx, handler.HTTPGet, at)
	case handler.Exec != nil:
		return runInPlace(ctx, handler.Exec.Command, at)
	case handler.TCPSocket != nil:
		return askTCP(ctx, handler.TCPSocket, at)
	default:
		return errors.New("expected httpGet, exec or tcpSocket")
	}
}

// runHook runs a preStop hook. nil means that it ended well.
func runHook(ctx context.Context, hook corev1.LifecycleHandler, at place) error {
	switch {
	case hook.HTTPGet != nil:
		return askHTTP(ctx, hook.HTTPGet, at)
	case hook.Exec != nil:
		return runInPlace(ctx, hook.Exec.Command, at)
	case hook.Sleep != nil:
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(hook.Sleep.Seconds) * time.Second):
			return nil
		}
	default:
		return errors.New("expected httpGet, exec or sleep")
	}
}

func askHTTP(ctx context.Context, get *corev1.HTTPGetAction, at place) error {
	port, err := portNumber(get.Port, at.Ports)
	if err != nil {
		return err
	}
	scheme := "http"
	if get.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	url := fmt.Sprintf("%s://%s/%s", scheme, net.JoinHostPort(hostOr(get.Host, at), port), strings.TrimPrefix(get.Path, "/"))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	for _, header := range get.HTTPHeaders {
		request.Header.Add(header.Name, header.Value)
		if strings.EqualFold(header.Name, "Host") {
			request.Host = header.Value
		}
	}
	answer, err := probeClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 10<<10))
	if answer.StatusCode < 200 || answer.StatusCode >= 400 {
		return fmt.Errorf("HTTP probe failed with statuscode: %d", answer.StatusCode)
	}
	return nil
}

func askTCP(ctx context.Context, socket *corev1.TCPSocketAction, at place) error {
	port, err := portNumber(socket.Port, at.Ports)
	if err != nil {
		return err
	}
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(hostOr(socket.Host, at), port))
	if err != nil {
		return err
	}
	return connection.Close()
}

// runInPlace runs a command with the container's environment, directory and mounts; its whole group ends with the context.
func runInPlace(ctx context.Context, argv []string, at place) error {
	spec := processSpec{argv: rewriteAllMounts(argv, at.Mounts), env: at.Env, dir: at.Dir}
	program, err := findProgram(spec)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, program, spec.argv[1:]...)
	command.Env, command.Dir = spec.env, spec.dir
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.WaitDelay = time.Second
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("command %q: %w: %s", argv, err, strings.TrimSpace(string(output)))
	}
	return nil
}

func hostOr(host string, at place) string {
	if host == "" {
		return at.Address
	}
	return host
}

func portNumber(port intstr.IntOrString, named []corev1.ContainerPort) (string, error) {
	if port.Type == intstr.Int {
		return strconv.Itoa(port.IntValue()), nil
	}
	for _, candidate := range named {
		if candidate.Name == port.StrVal {
			return strconv.Itoa(int(candidate.ContainerPort)), nil
		}
	}
	if _, err := strconv.Atoi(port.StrVal); err == nil {
		return port.StrVal, nil
	}
	return "", fmt.Errorf("port %q is not a name in the container's ports", port.StrVal)
}
