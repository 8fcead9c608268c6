package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"
)

// serveLogs answers the API server's log requests within the context, and returns the port. Only holders of a client
// certificate of the given authority get an answer.
func serveLogs(ctx context.Context, options Options, provider *provider) (int32, error) {
	security, err := serverSecurity(options)
	if err != nil {
		return 0, err
	}
	listener, err := net.Listen("tcp", options.Listen)
	if err != nil {
		return 0, fmt.Errorf("listen for log requests: %w", err)
	}
	routes := http.NewServeMux()
	routes.Handle("GET /containerLogs/{namespace}/{pod}/{container}", logServer{provider: provider})
	server := &http.Server{Handler: routes, TLSConfig: security, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("log requests are no longer answered", "error", err)
		}
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return int32(listener.Addr().(*net.TCPAddr).Port), nil
}

func serverSecurity(options Options) (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(options.CertFile, options.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read --cert and --key: %w", err)
	}
	authorities, err := os.ReadFile(options.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("read --client-ca: %w", err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("--client-ca %s: expected PEM certificates, found none", options.ClientCAFile)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{certificate},
		ClientCAs:    clients,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS12,
	}, nil
}
