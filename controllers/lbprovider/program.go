package lbprovider

import (
	"context"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"federation/controllers/lbprovider/plan"
	"federation/nodeagent/ruleset"
)

// runProgram keeps the kernel in line with what is on record, until ctx ends: rules always, addresses while this provider holds the Lease.
func (p *Provider) runProgram(ctx context.Context) {
	written := map[portKey]*ruleset.Port{}
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	var held []netip.Addr
	failing := false
	p.resync() // after a panic nobody knows
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-p.program:
		}
		want, addresses := p.wanted()
		err := p.write(ctx, written, want)
		if err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Cannot write rules: they stay as they were until the next try")
			p.mu.Lock()
			p.lost = true
			p.mu.Unlock()
		} else {
			written, held = want, addresses
		}
		if err = p.holdAddresses(ctx, held); err != nil && !failing {
			klog.ErrorS(err, "Cannot hold the addresses of Services")
		}
		failing = err != nil
	}
}

// wanted returns the ports of Services whose address is on record, and these addresses.
func (p *Provider) wanted() (ports map[portKey]*ruleset.Port, addresses []netip.Addr) {
	services := list(func() ([]*corev1.Service, error) { return p.services.List(labels.Everything()) })
	verdicts := p.Allocate(services)
	nodes := list(func() ([]*corev1.Node, error) { return p.nodes.List(labels.Everything()) })
	ofFamily := map[bool][]plan.Member{false: p.MembersOf(nodes, false), true: p.MembersOf(nodes, true)}
	p.checks.ask(slices.Concat(ofFamily[false], ofFamily[true]))
	failing := p.checks.failing()
	ports = map[portKey]*ruleset.Port{}
	for _, s := range services {
		recorded := plan.Recorded(s)
		for _, addr := range verdicts[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}].Addresses {
			if !slices.Contains(recorded, addr) {
				continue
			}
			all := plan.Ports(s, addr, plan.Members(s, ofFamily[addr.Is6()], p.endpoints(s), failing))
			for _, port := range all {
				ports[portKey{port.ID, port.IPv6}] = port
			}
			if len(all) > 0 {
				addresses = append(addresses, addr)
			}
		}
	}
	observeServices(verdicts)
	return ports, addresses
}

func (p *Provider) write(ctx context.Context, before, after map[portKey]*ruleset.Port) error {
	node := &ruleset.Node{Federated: true} // its hooks come before those of a service proxy on this machine
	changes := ruleset.ChangesOf(before, after)
	if p.takeLost() {
		if err := p.Writer.Sync(ctx, node, sorted(after)); err != nil {
			return err
		}
	} else if len(changes) > 0 {
		if err := p.Writer.Write(ctx, node, changes); err != nil {
			return err
		}
	}
	if p.Flows != nil && len(changes) > 0 {
		p.Flows(changes)
	}
	return nil
}

// holdAddresses answers at the addresses if this provider is to, and ctx has not ended: then elect has given them up.
func (p *Provider) holdAddresses(ctx context.Context, addresses []netip.Addr) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.holding || ctx.Err() != nil {
		addresses = nil
	}
	return p.Holder.Hold(addresses)
}
