package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/klog/v2"

	"federation/nodeagent"
	"federation/nodeagent/conntrack"
	"federation/nodeagent/iptables"
	"federation/nodeagent/nftables"
	"federation/nodeagent/ruleset"
)

// kernel is a way to write rules into the kernel.
type kernel struct {
	writer  nodeagent.Writer
	watch   func(ctx context.Context, lost func())
	cleanup func(ctx context.Context) error
	// blackhole makes the kernel drop traffic from outside until a time; nil: it cannot.
	blackhole func(ctx context.Context, until time.Time) error
}

// proxyModes returns the values of --proxy-mode.
func proxyModes() []string { return []string{"iptables", "nftables"} }

// kernel returns the way of --proxy-mode.
func (o *options) kernel(ctx context.Context) (kernel, error) {
	if o.proxyMode == "nftables" {
		return viaNftables()
	}
	return o.viaIptables(ctx)
}

func (o *options) viaIptables(ctx context.Context) (kernel, error) {
	backend, err := iptables.ChooseBackend(ctx, o.iptables)
	if err != nil {
		return kernel{}, fmt.Errorf("--iptables-backend %s: %w", o.iptables, err)
	}
	_, noIPv6 := os.Stat("/proc/net/if_inet6")
	w := iptables.New(iptables.Config{Backend: backend, IPv4: true, IPv6: noIPv6 == nil})
	watch := func(ctx context.Context, lost func()) {
		w.Watch(ctx, iptables.Looks{Every: time.Second, Full: o.lookPeriod}, lost)
	}
	cleanup := func(ctx context.Context) error { return w.Cleanup(ctx, o.scope == scopeFederated) }
	return kernel{writer: w, watch: watch, cleanup: cleanup}, nil
}

func viaNftables() (kernel, error) {
	w, err := nftables.New()
	if err != nil {
		return kernel{}, fmt.Errorf("--proxy-mode nftables: %w", err)
	}
	watch := func(ctx context.Context, lost func()) {
		if err := w.Watch(ctx, lost); err != nil {
			klog.ErrorS(err, "Rule change detection stopped")
		}
	}
	return kernel{w, watch, w.Cleanup, w.Blackhole}, nil
}

// flowCleaner ends flows to backends that are gone; UDP and SCTP would go there for as long as their client sends.
func flowCleaner() (func(ctx context.Context, changes []ruleset.PortChange), error) {
	table, err := conntrack.Open()
	if err != nil {
		return nil, fmt.Errorf("the kernel's table of connections: %w", err)
	}
	return func(_ context.Context, changes []ruleset.PortChange) {
		if _, err := table.Remove(changes); err != nil {
			klog.ErrorS(err, "Failed to end flows to removed backends")
		}
	}, nil
}
