package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/nodeagent"
)

// run serves the node until ctx ends, or takes all rules away.
func (o *options) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.initOnly {
		return o.sysctls.apply()
	}
	alone, err := claimNode()
	if err != nil {
		return err
	}
	defer alone.Close()
	k, err := o.kernel(ctx)
	if err != nil {
		return err
	}
	if o.cleanup {
		return k.cleanup(ctx)
	}
	if err := o.sysctls.apply(); err != nil {
		return err
	}
	client, err := o.client()
	if err != nil {
		return err
	}
	name, err := o.nodeName()
	if err != nil {
		return err
	}
	end, err := flows()
	if err != nil {
		return err
	}
	a, err := nodeagent.New(nodeagent.Config{
		Services: client.services(), EndpointSlices: client.endpointSlices(), Nodes: client.nodes(name), NodeName: name, Node: o.node,
		Writer: k.writer, Watch: k.watch, Flows: end, MinSyncPeriod: o.minSync, Started: spendMemory(),
	})
	if err != nil {
		return err
	}
	return o.serve(ctx, a)
}

// serve runs the agent, and what answers for it.
func (o *options) serve(ctx context.Context, a *nodeagent.Agent) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return serve(ctx, "--metrics-bind-address", o.metrics, map[string]http.Handler{"/metrics": legacyregistry.Handler()})
	})
	group.Go(func() error {
		return serve(ctx, "--healthz-bind-address", o.healthz, map[string]http.Handler{"/healthz": a.Health, "/readyz": http.HandlerFunc(a.Health.Ready)})
	})
	group.Go(func() error { return a.Run(ctx) })
	return group.Wait()
}

// claimNode makes sure that this is the only agent in the node's network: a name there can be listened at once. It
// is free again when the process ends, however it ends.
func claimNode() (net.Listener, error) {
	l, err := net.Listen("unix", "@federation-nodeagent")
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, errors.New("another federation-nodeagent serves this node; two would undo each other's rules")
	}
	return l, err
}

// serve answers some paths at an address until ctx ends.
func serve(ctx context.Context, flag, address string, paths map[string]http.Handler) error {
	if address == "" {
		return nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("%s %q: %w", flag, address, err)
	}
	mux := http.NewServeMux()
	for path, handler := range paths {
		mux.Handle("GET "+path, handler)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // it ends either way
	defer stop()
	if err := server.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}
