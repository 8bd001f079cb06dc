package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/nodeagent"
)

// run serves the node until ctx ends, or removes all rules.
func (o *options) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.initOnly {
		return o.sysctls.apply()
	}
	alone, err := claimNode(o.lockDir)
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
	end, err := flowCleaner()
	if err != nil {
		return err
	}
	a, err := nodeagent.New(nodeagent.Config{
		Services: client.services(), EndpointSlices: client.endpointSlices(), Nodes: client.nodes(name), NodeName: name, Node: o.node,
		Writer: k.writer, Watch: k.watch, Flows: end, Leases: client.lease(o.blackholeLease), Blackhole: k.blackhole, MinSyncPeriod: o.minSync, Started: spendMemory(),
	})
	if err != nil {
		return err
	}
	return o.serve(ctx, a)
}

// serve runs the agent and its HTTP servers.
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

// claimNode makes sure that this is the only agent in the node's network, by a lock in a folder that only root may
// write to: with a name that anybody can take, anybody could keep the agent from starting. The lock ends with the
// process.
func claimNode(dir string) (*os.File, error) {
	var network unix.Stat_t
	if err := unix.Stat("/proc/self/ns/net", &network); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("--lock-dir %q: %w", dir, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("network-%d.lock", network.Ino)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--lock-dir %q: %w", dir, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.New("another federation-nodeagent serves this node; two would undo each other's rules")
		}
		return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	return f, nil
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
