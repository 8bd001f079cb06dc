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

	"federation/controllers/supervisor"
)

// reachTimeout bounds how long an external etcd is waited for.
const reachTimeout = 8 * time.Second

// External is an etcd cluster run by somebody else.
type External struct {
	// Servers are its URLs, https://HOST:PORT.
	Servers []string
	// CAFile, CertFile and KeyFile are PEM files: the authority of its certificates, and our own.
	CAFile, CertFile, KeyFile string
}

// Check tries the servers until one answers. The error names all of them and the reason of the last.
func (x External) Check(ctx context.Context) error { return x.withClient(ctx, x.firstAnswer) }

// identityKey holds in etcd the identity of the objects' federation.
const identityKey = "/registry/federation-identity"

// Claim rejects an etcd that holds the objects of a federation with another identity: its Secrets are encrypted, and
// its tokens signed, with keys that we do not have. An empty one becomes ours.
func (x External) Claim(ctx context.Context, identity string) error {
	return x.withClient(ctx, func(ctx context.Context, client *clientv3.Client) error {
		answer, err := client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(identityKey), "=", 0)).
			Then(clientv3.OpPut(identityKey, identity)).Else(clientv3.OpGet(identityKey)).Commit()
		if err != nil {
			return x.unreachableError(err)
		}
		if answer.Succeeded || string(answer.Responses[0].GetResponseRange().Kvs[0].Value) == identity {
			return nil
		}
		return x.takenError()
	})
}

// CheckUnclaimed refuses an etcd that holds the objects of any federation. It writes nothing.
func (x External) CheckUnclaimed(ctx context.Context) error {
	return x.withClient(ctx, func(ctx context.Context, client *clientv3.Client) error {
		switch answer, err := client.Get(ctx, identityKey, clientv3.WithCountOnly()); {
		case err != nil:
			return x.unreachableError(err)
		case answer.Count > 0:
			return x.takenError()
		}
		return nil
	})
}

func (x External) takenError() error {
	return fmt.Errorf("etcd at %s holds a federation with other keys than those in the folder pki of --data-dir: copy that folder from another of its apiservers, or from a backup (if its authority was replaced on purpose, delete %s in etcd)", strings.Join(x.Servers, ", "), identityKey)
}

// withClient calls do with a client, for as long as reachTimeout.
func (x External) withClient(ctx context.Context, do func(context.Context, *clientv3.Client) error) error {
	quiet()
	tls, err := transport.TLSInfo{TrustedCAFile: x.CAFile, CertFile: x.CertFile, KeyFile: x.KeyFile}.ClientConfig()
	if err != nil {
		return fmt.Errorf("--etcd-cafile, --etcd-certfile, --etcd-keyfile: %w", err)
	}
	if strings.HasPrefix(x.Servers[0], "unix:") { // with a configuration there, however empty, TLS would be spoken
		tls = nil
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: x.Servers, TLS: tls, Logger: zap.NewNop()})
	if err != nil {
		return x.unreachableError(err)
	}
	defer client.Close() //nolint:errcheck // nothing is under way
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	return do(ctx, client)
}

// firstAnswer queries all servers at once.
func (x External) firstAnswer(ctx context.Context, client *clientv3.Client) error {
	answers := make(chan error, len(x.Servers))
	for _, server := range x.Servers {
		go func() {
			answers <- supervisor.Protect(ctx, "etcd", func() error { _, err := client.Status(ctx, server); return err })
		}()
	}
	var last error
	for range x.Servers {
		if last = <-answers; last == nil {
			return nil
		}
	}
	return x.unreachableError(last)
}

func (x External) unreachableError(cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) {
		cause = fmt.Errorf("no answer within %s", reachTimeout)
	}
	return fmt.Errorf("etcd at %s cannot be reached: %w", strings.Join(x.Servers, ", "), cause)
}
