package ruleset

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Annotations of a Service about other clusters.
const (
	// AnnotationClusterSetIP has its clusterset IPs, "ADDRESS[,ADDRESS]", at most one a family; "auto": it has none yet.
	AnnotationClusterSetIP = "federation.kubernetes.io/clusterset-ip"
	// AnnotationFallback, "true", makes its other addresses lead to other clusters, too, if the node's scope is
	// federated.
	AnnotationFallback = "federation.kubernetes.io/fallback"
	// AnnotationFallbackBelow, "1%" to "100%", is the share of this cluster's endpoints that must be ready. Where fewer are,
	// the missing part of new connections goes to other clusters. Without it all stay while one is ready.
	AnnotationFallbackBelow = "federation.kubernetes.io/fallback-below"
	// LabelManagedBy is, on objects that a federation made, its UID. Clusterset IPs are served only for such Services, and addresses of other clusters are
	// read only from such EndpointSlices: otherwise anybody who may write one in this cluster could take any address.
	LabelManagedBy = "federation.kubernetes.io/managed-by"
)

// clusterSetIPs returns the Service's clusterset IPs of a family that this node serves.
func (b *builder) clusterSetIPs(ipv6 bool) []netip.Addr {
	value := b.service.Annotations[AnnotationClusterSetIP]
	if value == "" || value == "auto" {
		return nil
	}
	if !b.node.hasMark(b.service.Labels) {
		b.addReason("annotation %s: the Service is not one of federation %s", AnnotationClusterSetIP, b.node.federations())
		return nil
	}
	return slices.DeleteFunc(b.addrsOf("annotation "+AnnotationClusterSetIP, strings.Split(value, ","), ipv6), func(a netip.Addr) bool {
		ranges := b.node.ClusterSetIPs
		served := a.IsGlobalUnicast() && !slices.Contains(b.node.Addrs, a) &&
			slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(a) })
		if !served {
			b.addReason("annotation %s: %s is not in the ranges %v, or the node's own", AnnotationClusterSetIP, a, ranges)
		}
		return !served
	})
}

// isLeftToProxy reports whether a frontend is left to the node's other service proxy.
func (b *builder) isLeftToProxy(p *Port, kind Kind, f Frontend) bool {
	if !b.node.Federated || kind == ClusterSetIP {
		return false
	}
	switch value := b.service.Annotations[AnnotationFallback]; value {
	case "true":
		return !p.Cluster.Away() || !f.Uses(ToCluster)
	case "", "false":
	default:
		b.addReason("annotation %s: %q is neither true nor false", AnnotationFallback, value)
	}
	return true
}

// fallbackBelow returns the least share of endpoints that must be ready, in percent; 0: one of them.
func (b *builder) fallbackBelow() uint64 {
	value, ok := b.service.Annotations[AnnotationFallbackBelow]
	if !ok {
		return 0
	}
	digits, percent := strings.CutSuffix(value, "%")
	n, err := strconv.ParseUint(digits, 10, 7)
	if err != nil || !percent || n == 0 || n > 100 {
		b.addReason("annotation %s: %q is not from 1%% to 100%%", AnnotationFallbackBelow, value)
		return 0
	}
	return n
}

// Away reports whether other clusters are in the pool.
func (p Pool) Away() bool {
	return slices.ContainsFunc(p.Backends, func(b Backend) bool { return b.Cluster != "" })
}

// mixPools divides new connections between this cluster's backends and others' in the proportion here to away, and each
// part as before.
func mixPools(own, others Pool, here, away uint64) Pool {
	weights, sum := make([]uint64, 0, len(own.Backends)+len(others.Backends)), uint64(0)
	for _, b := range others.Backends {
		sum += uint64(b.Weight)
	}
	for range own.Backends {
		weights = append(weights, here*sum)
	}
	for _, b := range others.Backends {
		weights = append(weights, away*uint64(b.Weight)*uint64(len(own.Backends)))
	}
	divisor := weights[0]
	for _, w := range weights {
		divisor = gcd(divisor, w)
	}
	divisor = max(divisor, slices.Max(weights)>>31) // what is too large for 32 bits is not quite exact
	p := Pool{Tier: TierScarce, Backends: slices.Concat(own.Backends, others.Backends)}
	for i, w := range weights {
		p.Backends[i].Weight = uint32(max(1, w/divisor))
	}
	slices.SortFunc(p.Backends, func(x, y Backend) int { return x.Addr.Compare(y.Addr) })
	return p
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
