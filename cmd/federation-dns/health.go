package main

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

// serveHealth serves metrics and health until ctx ends, if there is an address for that.
func (o *options) serveHealth(ctx context.Context, z *zone) error {
	if o.metrics == "" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.metrics)
	if err != nil {
		return fmt.Errorf("--metrics-bind-address %q: %w", o.metrics, err)
	}
	server := &http.Server{Handler: health(z), ReadHeaderTimeout: 10 * time.Second}
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
	return group.Wait()
}

// health answers /healthz while the process lives, and /readyz when the zone is answered for.
func health(z *zone) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", legacyregistry.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }) // who asked may be gone
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !z.ready.Load() {
			http.Error(w, "the federation has not been read yet: questions get SERVFAIL", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok") // who asked may be gone
	})
	return mux
}
