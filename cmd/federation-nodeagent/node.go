package main

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/ruleset"
)

// node is what the rules need of this node: what the flags, the Node object (nil: not seen yet) and its interfaces say.
func (o *options) node(n *corev1.Node) (ruleset.Node, error) {
	name, err := o.nodeName()
	if err != nil {
		return ruleset.Node{}, err
	}
	out := ruleset.Node{Name: name, MasqueradeAll: o.masqueradeAll, ServiceProxyName: o.serviceProxyName}
	out.Federated = o.scope == scopeFederated
	if out.ClusterSetIPs, err = prefixes("--clusterset-ip-range", strings.Split(o.clusterSetIPs, ",")); err != nil {
		return out, err
	}
	if n == nil {
		n = &corev1.Node{}
	}
	out.Zone, out.Region = n.Labels[corev1.LabelTopologyZone], n.Labels[corev1.LabelTopologyRegion]
	if out.Pods, err = o.pods(n.Spec.PodCIDRs); err != nil {
		return out, err
	}
	if out.Addrs, err = interfaceAddrs(); err != nil {
		return out, err
	}
	out.NodePortAddrs, err = o.nodePortAddrs(n, out.Addrs)
	return out, err
}

// nodePortAddrs are the addresses that --nodeport-addresses means; nil: all. An address that matches nothing is
// better than all, so none is found as the unspecified one.
func (o *options) nodePortAddrs(n *corev1.Node, addrs []netip.Addr) ([]netip.Addr, error) {
	if len(o.nodePortAddresses) == 0 {
		return nil, nil
	}
	out := []netip.Addr{}
	if slices.Equal(o.nodePortAddresses, []string{"primary"}) {
		for _, a := range n.Status.Addresses {
			if addr, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
				out = append(out, addr.Unmap())
			}
		}
	} else {
		ranges, err := prefixes("--nodeport-addresses", o.nodePortAddresses)
		if err != nil {
			return nil, err
		}
		for _, addr := range addrs {
			if slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(addr) }) {
				out = append(out, addr)
			}
		}
	}
	if len(out) == 0 {
		out = append(out, netip.IPv4Unspecified())
	}
	return out, nil
}

// interfaceAddrs are the addresses of this node's interfaces, sorted.
func interfaceAddrs() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("the addresses of this node: %w", err)
	}
	var out []netip.Addr
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLinkLocalUnicast() {
			out = append(out, p.Addr().Unmap())
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out, nil
}
