// Package process has what our programs share: they stay below their memory limits, and those without an API of their own serve their
// metrics, and whether they are alive and ready.
package process

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/component-base/metrics/legacyregistry"
)

// RunWithMetrics runs do and serves Handler at the address, HOST:PORT, until the context ends or do fails. Without an address
// it only runs do.
func RunWithMetrics(ctx context.Context, address string, ready func() error, do func(context.Context) error) error {
	if address == "" {
		return do(ctx)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("--metrics-bind-address %q: %w", address, err)
	}
	server := &http.Server{Handler: Handler(ready), ReadHeaderTimeout: 10 * time.Second}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); err != http.ErrServerClosed {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	group.Go(func() error { return do(ctx) })
	return group.Wait()
}

// Handler answers /metrics, /healthz while the process lives, and /readyz with what ready says, in the error
// with code 503; without ready it has no /readyz.
func Handler(ready func() error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", legacyregistry.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, nil) })
	if ready != nil {
		mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { say(w, ready()) })
	}
	return mux
}

func say(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok") // who asked may be gone
}
