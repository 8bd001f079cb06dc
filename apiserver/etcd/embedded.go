package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/grpclog"
)

const (
	// maxSocketPath is the kernel's limit of the path of a Unix socket, less etcd's own lock suffix.
	maxSocketPath = 100
	startTimeout  = 60 * time.Second
	maxBytes      = 8 << 30
)

// Embedded is an etcd inside this process.
type Embedded struct {
	// Endpoint is the address for clients, unix:///PATH.
	Endpoint string

	server    *embed.Etcd
	level     zap.AtomicLevel
	fatal     *fatal
	socketDir string // to be removed at the end, or empty
}

// Start runs an etcd over the data directory, which the caller has locked, and waits until it serves.
func Start(ctx context.Context, dataDir string) (*Embedded, error) {
	quiet()
	dir, err := filepath.Abs(filepath.Join(dataDir, "etcd"))
	if err != nil {
		return nil, err
	}
	if err := checkDatabase(dir); err != nil {
		return nil, err
	}
	e := &Embedded{level: zap.NewAtomicLevelAt(zap.ErrorLevel), fatal: &fatal{dir: dir, exit: exit}}
	socket, err := e.socketPath(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	e.Endpoint = "unix://" + socket
	if e.server, err = e.fatal.launchEtcd(e.config(dir, socket)); err != nil {
		e.Stop()
		return nil, fmt.Errorf("etcd in %s does not start: %w", dir, err)
	}
	e.fatal.serves.Store(true)
	if err := e.waitReady(ctx); err != nil {
		e.Stop()
		return nil, fmt.Errorf("etcd in %s: %w", dir, err)
	}
	return e, nil
}

// waitReady waits until etcd answers on its socket, which is a little after it reports that it is ready: a client that
// comes in between would wait a second before its next try.
func (e *Embedded) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case <-e.server.Server.ReadyNotify():
	case err := <-e.server.Err():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1.5, MaxDelay: time.Second}})}})
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // nothing is under way
	_, err = client.Status(ctx, e.Endpoint)
	for ctx.Err() == nil && err != nil {
		time.Sleep(5 * time.Millisecond)
		_, err = client.Status(ctx, e.Endpoint)
	}
	return err
}

// Err receives an error when etcd ends by itself.
func (e *Embedded) Err() <-chan error { return e.server.Err() }

// Stop ends etcd, after all its users have ended. Acknowledged writes are on disk at any time.
func (e *Embedded) Stop() {
	e.level.SetLevel(zap.FatalLevel) // it calls it an error that its listeners are closed
	if e.server != nil {
		e.server.Close()
	}
	if e.socketDir != "" {
		os.RemoveAll(e.socketDir) //nolint:errcheck // an empty folder under /tmp
	}
}

// socketPath returns a path in the data directory or, if that is too deep for a socket, in a short private one.
func (e *Embedded) socketPath(dataDir string) (string, error) {
	path := filepath.Join(dataDir, "etcd.sock")
	if len(path) <= maxSocketPath && !strings.ContainsAny(path, "%?# ") {
		return path, nil
	}
	dir, err := os.MkdirTemp("/tmp", "federation-")
	if err != nil {
		return "", fmt.Errorf("the path %s is too long for a socket, and there is no other place: %w", path, err)
	}
	e.socketDir = dir
	return filepath.Join(dir, "etcd.sock"), nil
}

func (e *Embedded) config(dir, socket string) *embed.Config {
	c := embed.NewConfig()
	c.Dir = dir
	c.ListenClientUrls = []url.URL{{Scheme: "unix", Path: socket}}
	c.ListenPeerUrls = nil // the URLs that etcd advertises stay as they are: names without a listener
	c.QuotaBackendBytes = maxBytes
	c.SnapshotCount, c.SnapshotCatchUpEntries = 1000, 100 // requests held in memory for followers, of which there are none
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(e.logger())
	return c
}

// logger logs only errors, and passes to fatal what etcd cannot recover from.
func (e *Embedded) logger() *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), e.level), zap.WithFatalHook(e.fatal), zap.WithPanicHook(e.fatal))
}

// launchEtcd starts etcd, whose panic over a full disk or damaged files becomes an error.
func (f *fatal) launchEtcd(c *embed.Config) (server *embed.Etcd, err error) {
	defer func() {
		if r := recover(); r != nil {
			cause, ok := r.(error)
			if !ok {
				cause = fmt.Errorf("%v", r)
			}
			server, err = nil, f.explainError(cause)
		}
	}()
	if server, err = embed.StartEtcd(c); errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = f.explainError(err)
	}
	return server, err
}

// quiet drops gRPC's warnings: at each start about connections that it opened twice, and while etcd cannot be reached
// what we log ourselves.
var quiet = sync.OnceFunc(func() {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, os.Stderr))
})
