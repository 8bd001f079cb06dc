package ruleset

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// addFrontends gives a Port the addresses of its Service, with routes by its pools. A health check node port is no
// frontend: the agent itself answers there.
func (b *builder) addFrontends(p *Port, sp *corev1.ServicePort, clusterIP netip.Addr) {
	inside, outside := b.insideRoutes(p), b.outsideRoutes(p)
	add := func(kind Kind, addr netip.Addr, port int32, f Frontend) {
		if b.isLeftToProxy(p, kind, f) {
			f = Frontend{FromPod: Route{To: Yield}, FromNode: Route{To: Yield}, FromOutside: Route{To: Yield}}
		}
		f.Kind, f.Key = kind, FrontendKey{addr, p.IPv6, p.ID.Protocol, uint16(port)}
		f.Alone = kind == ClusterSetIP || kind == ClusterIP && !b.node.Federated
		p.Frontends = append(p.Frontends, f)
	}
	add(ClusterIP, clusterIP, sp.Port, inside)
	for _, addr := range b.clusterSetIPs(p.IPv6) {
		add(ClusterSetIP, addr, sp.Port, inside)
	}
	for _, addr := range b.addrsOf("spec.externalIPs", b.service.Spec.ExternalIPs, p.IPv6) {
		add(ExternalIP, addr, sp.Port, outside)
	}
	if sp.NodePort != 0 {
		add(NodePort, netip.Addr{}, sp.NodePort, outside)
	}
	vips := b.addrsOf("status.loadBalancer.ingress", virtualIPs(b.service), p.IPv6)
	outside.SourceRanges = b.sourceRanges(p.IPv6, vips)
	for _, addr := range vips {
		add(LoadBalancer, addr, sp.Port, outside)
	}
	slices.SortStableFunc(p.Frontends, func(x, y Frontend) int { return x.Key.Compare(y.Key) })
	p.Frontends = slices.CompactFunc(p.Frontends, func(x, y Frontend) bool { return x.Key == y.Key })
}

// Compare orders keys.
func (k FrontendKey) Compare(o FrontendKey) int {
	return cmp.Or(k.Addr.Compare(o.Addr), strings.Compare(string(k.Protocol), string(o.Protocol)), cmp.Compare(k.Port, o.Port))
}

// insideRoutes returns the routes of a cluster IP. If pods can be recognized, connections from elsewhere are
// masqueraded: they may have been routed here from outside the cluster, and the answer must come back this way.
func (b *builder) insideRoutes(p *Port) Frontend {
	to := p.clusterTarget(true)
	if internalLocal(b.service) {
		to = p.localTarget()
	}
	elsewhere := b.node.MasqueradeAll || b.node.Pods.OfFamily(p.IPv6).Known()
	return Frontend{FromPod: routeOf(to, b.node.MasqueradeAll), FromNode: routeOf(to, elsewhere), FromOutside: routeOf(to, elsewhere)}
}

// outsideRoutes returns the routes of all other addresses. With the policy Local, connections from this node's pods or the node
// itself are treated as if they had gone out and come back through a load balancer, which chooses any node.
//
// Connections from outside are never sent on to another cluster: they may have come from one, through its load balancer, and
// would go round in circles.
func (b *builder) outsideRoutes(p *Port) Frontend {
	any, local := p.clusterTarget(true), externalLocal(b.service)
	f := Frontend{FromPod: routeOf(any, !local), FromNode: routeOf(any, true), FromOutside: routeOf(p.clusterTarget(false), true)}
	if local {
		f.FromOutside = routeOf(p.localTarget(), false)
	}
	if !b.node.Pods.OfFamily(p.IPv6).Known() {
		f.FromPod = f.FromOutside
	}
	return f
}

// routeOf clears masquerading if nothing is sent on.
func routeOf(to Target, masquerade bool) Route {
	return Route{To: to, Masquerade: masquerade && to.LeadsToPool()}
}

// clusterTarget returns the target of the policy Cluster; remote: may include other clusters.
func (p *Port) clusterTarget(remote bool) Target {
	switch {
	case len(p.Cluster.Backends) > 0 && (remote || !p.Cluster.Away()):
		return ToCluster
	case len(p.Own.Backends) > 0 && !remote:
		return ToOwn
	}
	return Reject
}

// localTarget returns the target of the policy Local: without an endpoint on this node there is no answer, because
// another node may have one; without any in the cluster it is refused.
func (p *Port) localTarget() Target {
	switch {
	case len(p.Local.Backends) > 0:
		return ToLocal
	case len(p.Own.Backends) == 0:
		return Reject
	}
	return Drop
}

// virtualIPs returns the load balancer's addresses that packets keep as destination; packets to those of the mode Proxy
// must go through it (KEP-1860).
func virtualIPs(s *corev1.Service) []string {
	var out []string
	for _, in := range s.Status.LoadBalancer.Ingress {
		if in.IP != "" && (in.IPMode == nil || *in.IPMode == corev1.LoadBalancerIPModeVIP) {
			out = append(out, in.IP)
		}
	}
	return out
}

// sourceRanges returns who may connect to a load balancer's address. If the node may, so may its connections to that
// address with the same address as source, because it is often one of the node's own.
func (b *builder) sourceRanges(ipv6 bool, vips []netip.Addr) []netip.Prefix {
	if len(b.service.Spec.LoadBalancerSourceRanges) == 0 {
		return nil
	}
	var out []netip.Prefix
	node := false
	for _, text := range b.service.Spec.LoadBalancerSourceRanges {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(text))
		switch {
		case err != nil:
			b.addReason("spec.loadBalancerSourceRanges: %q is no range like 192.0.2.0/24", text)
		case prefix.Addr().Is6() != ipv6:
		case prefix.Bits() == 0:
			return nil
		default:
			out = append(out, prefix.Masked())
			node = node || slices.ContainsFunc(b.node.Addrs, prefix.Contains)
		}
	}
	if node {
		for _, vip := range vips {
			out = append(out, netip.PrefixFrom(vip, vip.BitLen()))
		}
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return slices.Compact(out)
}
