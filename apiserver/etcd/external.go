package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// reachTimeout bounds how long an external etcd is waited for.
const reachTimeout = 8 * time.Second

// External is an etcd cluster that somebody else runs.
type External struct {
	// Servers are its URLs, https://HOST:PORT.
	Servers []string
	// CAFile, CertFile and KeyFile are PEM files: the authority of its certificates, and our own.
	CAFile, CertFile, KeyFile string
}

// Check asks the servers until one answers. The error names all of them and the reason of the last.
func (x External) Check(ctx context.Context) error {
	quiet()
	tls, err := transport.TLSInfo{TrustedCAFile: x.CAFile, CertFile: x.CertFile, KeyFile: x.KeyFile}.ClientConfig()
	if err != nil {
		return fmt.Errorf("--etcd-cafile, --etcd-certfile, --etcd-keyfile: %w", err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: x.Servers, TLS: tls, Logger: zap.NewNop()})
	if err != nil {
		return x.unreachable(err)
	}
	defer client.Close() //nolint:errcheck // nothing is under way
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	return x.firstAnswer(ctx, client)
}

// firstAnswer asks all servers at once.
func (x External) firstAnswer(ctx context.Context, client *clientv3.Client) error {
	answers := make(chan error, len(x.Servers))
	for _, server := range x.Servers {
		go func() {
			_, err := client.Status(ctx, server)
			answers <- err
		}()
	}
	var last error
	for range x.Servers {
		if last = <-answers; last == nil {
			return nil
		}
	}
	return x.unreachable(last)
}

func (x External) unreachable(cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) {
		cause = fmt.Errorf("no answer within %s", reachTimeout)
	}
	return fmt.Errorf("etcd at %s cannot be reached: %w", strings.Join(x.Servers, ", "), cause)
}
