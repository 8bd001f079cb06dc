package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"k8s.io/klog/v2"

	"federation/controllers/loadbalancer/kernel"
	"federation/controllers/loadbalancer/proxy"
	"federation/controllers/supervisor"
	"federation/nodeagent/conntrack"
	"federation/nodeagent/nftables"
)

// servicesTable is the name of the nftables by which the kernel passes connections to Services on, and of the claim to write them.
const servicesTable = "federation-lb-services"

// Modes of --service-proxy-mode.
const (
	userspaceMode = "userspace"
	nftablesMode  = "nftables"
)

// newEdge has the kernel pass on what comes to ports of Services; nil without such a mode.
func (o *options) newEdge(p *proxy.Proxy) (*kernel.Edge, error) {
	if o.serviceMode != nftablesMode || len(o.ports) == 0 {
		return nil, nil
	}
	settings := kernel.Settings{IPv4: isOn("net/ipv4/ip_forward"), IPv6: isOn("net/ipv6/conf/all/forwarding")}
	if o.serviceHost != "" {
		settings.Address = netip.MustParseAddr(o.serviceHost) // it has been checked
	}
	if err := o.checkForwarding(settings); err != nil {
		return nil, err
	}
	writer, err := nftables.NewNamed(servicesTable)
	if err != nil {
		return nil, fmt.Errorf("--service-proxy-mode %s: nftables: %w", o.serviceMode, err)
	}
	flows, err := conntrack.Open()
	if err != nil {
		return nil, fmt.Errorf("--service-proxy-mode %s: conntrack: %w", o.serviceMode, err)
	}
	kernel.RegisterMetrics()
	return kernel.New(kernel.Options{Settings: settings, Proxy: p, Writer: writer, Flows: flows, Claim: kernel.NewClaim(servicesTable), Drain: o.drainTimeout}), nil
}

// checkForwarding fails where the kernel does not forward packets of a family in which the load balancer has an address.
func (o *options) checkForwarding(s kernel.Settings) error {
	has := func(ipv6 bool) bool {
		return slices.ContainsFunc(o.own, func(a netip.Addr) bool { return a.Is6() == ipv6 }) || s.Address.IsValid() && s.Address.Is6() == ipv6
	}
	for _, family := range []struct {
		lacks  bool
		sysctl string
	}{{!s.IPv4 && (has(false) || !s.IPv6), "net.ipv4.ip_forward"}, {!s.IPv6 && has(true), "net.ipv6.conf.all.forwarding"}} {
		if family.lacks {
			return fmt.Errorf("--service-proxy-mode %s: the kernel must forward packets: sysctl -w %s=1", o.serviceMode, family.sysctl)
		}
	}
	return nil
}

// isOn reports whether a setting of the kernel is other than 0.
func isOn(name string) bool {
	text, err := os.ReadFile("/proc/sys/" + name)
	return err == nil && strings.TrimSpace(string(text)) != "0"
}

// runEdge has the kernel pass connections to Services on until stop is called; then the rules are gone, or another process's. Without an edge
// it removes the rules of an earlier process.
func (o *options) runEdge(ctx context.Context, edge *kernel.Edge) (stop func()) {
	if edge == nil {
		dropRules(ctx)
		return func() {}
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		supervisor.Keep(running, "loadbalancer", edge.Run)
	}()
	return func() { end(); <-done }
}

// dropRules removes what a process in the mode nftables has left in the kernel. Without the right to, there are no rules of this program, or none that it
// can remove.
func dropRules(ctx context.Context) {
	claim := kernel.NewClaim(servicesTable)
	if !claim.Take() {
		return // that process removes them itself
	}
	defer claim.Release()
	writer, err := nftables.NewNamed(servicesTable)
	if err != nil {
		return
	}
	defer writer.Close()
	if err := writer.Cleanup(ctx); err != nil {
		klog.ErrorS(err, "Cannot remove rules that an earlier process has left in the kernel", "table", servicesTable)
	}
}
