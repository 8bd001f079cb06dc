package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"federation/cmd/internal/logformat"
	"federation/controllers/loadbalancer/kernel"
	"federation/controllers/loadbalancer/plan"
	"federation/controllers/loadbalancer/proxy"
	"federation/controllers/supervisor"
)

// run serves until ctx ends, and then drains. It fails at the start only, and when a socket does.
func (o *options) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	readAll := saveMemory()
	log, err := o.openLog()
	if err != nil {
		return err
	}
	proxy.RegisterMetrics()
	var edge *kernel.Edge
	changed := func() {
		if edge != nil {
			edge.Changed()
		}
	}
	p := proxy.New(proxy.Options{SpreadChanged: changed, Trusted: o.peers, Roots: o.roots, Refuse: o.lookups.Refuse(), AccessLog: log, OwnAddresses: func() (map[netip.Addr]bool, error) { return proxy.LocalAddresses(o.localTargets) }, Changed: func(t plan.Target, why string) {
		klog.InfoS("What is known of a cluster's load balancer has changed", "cluster", t.Cluster, "address", t.Address, "usable", why == "", "reason", why)
	}})
	if edge, err = o.newEdge(p); err != nil {
		return err
	}
	from, err := o.newSource(p)
	if err != nil {
		return err
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx)) // until it has drained
	defer end()
	group, serving := errgroup.WithContext(serving)
	group.Go(supervisor.Protected(serving, "metrics", func(ctx context.Context) error { return o.serveMetrics(ctx, p, from.controller.Ready) }))
	group.Go(supervisor.Protected(serving, "proxy", func(ctx context.Context) error { p.Run(ctx); return nil }))
	group.Go(supervisor.Protected(serving, "loadbalancer", from.controller.Run))
	group.Go(supervisor.Protected(serving, "servicedns", from.follow))
	group.Go(func() error {
		defer end()
		either, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(serving, stop)()
		if !from.controller.WaitReady(either) { // before, it would answer 404 for what it does not know yet
			return nil
		}
		readAll(either)
		return o.serve(either, p, edge, from)
	})
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// openLog opens the access log; nil if there is none.
func (o *options) openLog() (io.Writer, error) {
	switch o.accessLog {
	case "":
		return nil, nil
	case "-":
		return os.Stdout, nil
	}
	f, err := os.OpenFile(o.accessLog, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, fmt.Errorf("--access-log: %w", err)
	}
	return f, nil
}

// serve takes requests until ctx ends, and drains. edge may be nil.
func (o *options) serve(ctx context.Context, p *proxy.Proxy, edge *kernel.Edge, from *source) error {
	var servers []*proxy.Server
	group := errgroup.Group{}
	failed, fail := context.WithCancel(ctx)
	defer fail()
	for _, l := range []proxy.ListenOptions{{Address: o.http}, {Address: o.https, TLS: true}} {
		if l.Address == "" {
			continue
		}
		l.ProxyProtocol, l.MaxConnections, l.MaxOfClient, l.IdleTimeout = o.proxyProtocol, o.connections, o.ofClient, o.serviceIdle
		s, err := p.Listen(ctx, l)
		if err != nil {
			return fmt.Errorf("%q: %w", l.Address, err)
		}
		servers = append(servers, s)
		logformat.Announce("federation-lb: serving on %s", s.Addr())
		group.Go(func() error { defer fail(); return s.Serve() })
	}
	services := p.ServeStreams(proxy.StreamOptions{Host: o.serviceHost, ProxyProtocol: o.proxyProtocol, MaxConnections: o.connections, MaxOfClient: o.ofClient, IdleTimeout: o.serviceIdle})
	stopEdge := o.runEdge(ctx, edge)
	defer stopEdge()
	withdraw := from.announce(failed)
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil { // its unit waits for that, and nobody does elsewhere
		klog.ErrorS(err, "Cannot tell systemd that requests are served")
	}
	<-failed.Done()
	withdraw() // DNS leaves it out while it drains
	if ctx.Err() != nil {
		p.Drain()
		if edge != nil {
			edge.Yield()
		}
		klog.InfoS("Draining: clients are told to close their connections", "delay", o.drainDelay, "timeout", o.drainTimeout)
		time.Sleep(o.drainDelay)
	}
	group.Go(func() error { stopEdge(); return nil })
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.drainTimeout)
	defer cancel()
	group.Go(func() error { services.Shutdown(ending); return nil })
	for _, s := range servers {
		group.Go(func() error { return s.Shutdown(ending) })
	}
	return group.Wait()
}
