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

// node returns what the rules need of this node: from the flags, the Node object (nil: not seen yet) and its
// interfaces.
func (o *options) node(n *corev1.Node) (ruleset.Node, error) {
	name, err := o.nodeName()
	if err != nil {
		return ruleset.Node{}, err
	}
	out := ruleset.Node{Name: name, MasqueradeAll: o.masqueradeAll, ServiceProxyName: o.serviceProxyName, Federations: o.federations}
	out.Federated, out.Blackhole = o.scope == scopeFederated, o.blackholeLease != ""
	if out.Inside, err = prefixes("--inside", strings.Split(o.inside, ",")); err != nil {
		return out, err
	}
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

// nodePortAddrs returns the addresses of --nodeport-addresses; nil: all. As in kube-proxy, all addresses of a family
// without a range are used. No match is better than all, so it becomes the unspecified address.
func (o *options) nodePortAddrs(n *corev1.Node, addrs []netip.Addr) ([]netip.Addr, error) {
	ranges, err := o.nodePortRanges(n)
	if err != nil {
		return nil, err
	}
	all := func(v4 bool) bool {
		of := slices.DeleteFunc(slices.Clone(ranges), func(r netip.Prefix) bool { return r.Addr().Is4() != v4 })
		return len(of) == 0 || slices.ContainsFunc(of, func(r netip.Prefix) bool { return r.Bits() == 0 })
	}
	all4, all6 := all(true), all(false)
	if all4 && all6 {
		return nil, nil
	}
	out := slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool {
		if a.Is4() && all4 || a.Is6() && all6 {
			return a.IsLoopback()
		}
		return !slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(a) })
	})
	if len(out) == 0 {
		out = append(out, netip.IPv4Unspecified())
	}
	return out, nil
}

// nodePortRanges returns the ranges of --nodeport-addresses, or kube-proxy's default for the mode.
func (o *options) nodePortRanges(n *corev1.Node) (ranges []netip.Prefix, err error) {
	primary := slices.Equal(o.nodePortAddresses, []string{"primary"})
	if !primary && (len(o.nodePortAddresses) > 0 || o.proxyMode != "nftables") {
		return prefixes("--nodeport-addresses", o.nodePortAddresses)
	}
	for _, a := range primaryAddrs(n) {
		ranges = append(ranges, netip.PrefixFrom(a, a.BitLen()))
	}
	return ranges, nil
}

// primaryAddrs returns the first address of each family of a Node, in kubelet's and kube-proxy's order: internal ones
// before external ones.
func primaryAddrs(n *corev1.Node) (out []netip.Addr) {
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for _, a := range n.Status.Addresses {
			addr, err := netip.ParseAddr(a.Address)
			taken := slices.ContainsFunc(out, func(o netip.Addr) bool { return o.Is4() == addr.Unmap().Is4() })
			if err == nil && a.Type == kind && !taken {
				out = append(out, addr.Unmap())
			}
		}
	}
	return out
}

// interfaceAddrs returns the addresses of this node's interfaces, sorted.
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
