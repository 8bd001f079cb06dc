package v1beta1

import (
	"hash/fnv"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Networks of placeholders, at which nothing is in any cluster. The first is of a class that was never assigned (RFC
// 1112); packets to the second are discarded (RFC 6666).
var (
	placeholders4 = netip.MustParsePrefix("240.0.0.0/5")
	placeholders6 = netip.MustParsePrefix("100::/64")
)

// ServiceIPs is the part of a federated Service that decides its cluster IPs.
type ServiceIPs struct {
	Namespace, Name string
	// Annotations are those of the Service: ClusterSetIPAnnotation counts.
	Annotations map[string]string
	// Families and Policy are as in its spec.
	Families []corev1.IPFamily
	Policy   *corev1.IPFamilyPolicy
}

// ClusterIPs returns the spec.clusterIPs that the federation gives a Service, neither headless nor of type
// ExternalName, whose user sets none: its clusterset IPs if it asks for these, none while it has none of them yet; else
// placeholders, for clients that wait for a value. At most one per family, in the order of the families.
func (s ServiceIPs) ClusterIPs() (ips []string) {
	value, asks := s.Annotations[ClusterSetIPAnnotation]
	addresses, _ := ParseClusterSetIPs(value, nil) // an invalid value has none
	if asks && len(addresses) == 0 {
		return nil
	}
	for _, family := range s.families(addresses) {
		a := s.placeholder(family)
		if asks {
			i := slices.IndexFunc(addresses, func(a netip.Addr) bool { return a.Is4() == (family == corev1.IPv4Protocol) })
			if i < 0 {
				return ips
			}
			a = addresses[i]
		}
		ips = append(ips, a.String())
	}
	return ips
}

// families returns the families in which a Service has addresses; by default that of the first of its addresses, else
// IPv4.
func (s ServiceIPs) families(addresses []netip.Addr) []corev1.IPFamily {
	all := []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	if len(addresses) > 0 && addresses[0].Is6() {
		slices.Reverse(all)
	}
	if len(s.Families) > 0 && s.Families[0] != all[0] {
		slices.Reverse(all)
	}
	if s.Policy == nil || *s.Policy == corev1.IPFamilyPolicySingleStack {
		return all[:1]
	}
	return all
}

// placeholder returns a Service's address in a network of placeholders: always the same, and hardly ever that of
// another one, which would do no harm.
func (s ServiceIPs) placeholder(family corev1.IPFamily) netip.Addr {
	h := fnv.New64a()
	h.Write([]byte(s.Namespace + "/" + s.Name))
	sum := h.Sum(nil)
	if family == corev1.IPv6Protocol {
		a := placeholders6.Addr().As16()
		copy(a[8:], sum)
		return netip.AddrFrom16(a)
	}
	a := placeholders4.Addr().As4()
	copy(a[1:], sum[5:])
	a[0] |= sum[4] & 7
	return netip.AddrFrom4(a)
}

// Given reports whether a cluster IP is one that the federation gives the Service: a placeholder, or one of its
// clusterset IPs. Members do not get it.
func (s ServiceIPs) Given(ip string) bool {
	a, err := netip.ParseAddr(ip)
	if err != nil {
		return false
	}
	addresses, _ := ParseClusterSetIPs(s.Annotations[ClusterSetIPAnnotation], nil) // an invalid value has none
	return placeholders4.Contains(a) || placeholders6.Contains(a) || slices.Contains(addresses, a)
}
