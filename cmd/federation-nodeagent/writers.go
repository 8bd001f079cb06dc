package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"federation/nodeagent"
	"federation/nodeagent/iptables"
)

// kernel is a way into the kernel.
type kernel struct {
	writer  nodeagent.Writer
	watch   func(ctx context.Context, lost func())
	cleanup func(ctx context.Context) error
}

// modes are what --proxy-mode may be.
func modes() []string { return []string{"iptables"} }

// kernel makes the way that --proxy-mode says.
func (o *options) kernel(ctx context.Context) (kernel, error) {
	backend, err := iptables.Choose(ctx, o.iptables)
	if err != nil {
		return kernel{}, fmt.Errorf("--iptables-backend %s: %w", o.iptables, err)
	}
	_, noIPv6 := os.Stat("/proc/net/if_inet6")
	w := iptables.New(iptables.Config{Backend: backend, IPv4: true, IPv6: noIPv6 == nil})
	watch := func(ctx context.Context, lost func()) {
		w.Watch(ctx, iptables.Looks{Every: time.Second, Full: o.lookPeriod}, lost)
	}
	return kernel{w, watch, w.Cleanup}, nil
}
