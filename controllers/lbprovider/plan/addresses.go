package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Class is the spec.loadBalancerClass of a provider's Services by default.
const Class = "federation.kubernetes.io/cluster-local"

// AddressesAnnotation on a Service has the addresses that it wants, separated by commas: at most one a family.
const AddressesAnnotation = "federation.kubernetes.io/load-balancer-addresses"

// wantedAnnotations say which addresses a Service wants: ours, and those of MetalLB and kube-vip, whose Services may come to us.
var wantedAnnotations = [...]string{AddressesAnnotation, "metallb.io/loadBalancerIPs", "kube-vip.io/loadbalancerIPs"}

// Reasons why a Service lacks an address.
const (
	ReasonNoPool         = "NoAddressPool"
	ReasonExhausted      = "AddressPoolExhausted"
	ReasonTaken          = "AddressInUse"
	ReasonNotInPool      = "AddressNotInPool"
	ReasonInvalid        = "InvalidAddress"
	ReasonOfAnother      = "AddressOfAnotherProvider"
	ReasonNoNodePort     = "NoNodePort"
	maxWanted        int = 2 // one a family
)

// Settings are those of a provider.
type Settings struct {
	Class   string
	Default bool // Services without a class are ours, too
	Pools   []netip.Prefix
}

// Verdict is what a Service gets.
type Verdict struct {
	Addresses       []netip.Addr // one a family, in the order of spec.ipFamilies
	Reason, Message string       // why something is missing; "" if nothing is
	// OfAnother: its status was written by somebody else, and must stay.
	OfAnother bool
}

// Serves reports whether a Service is ours. One that is being deleted is nobody's.
func (s *Settings) Serves(service *corev1.Service) bool {
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer || service.DeletionTimestamp != nil {
		return false
	}
	if class := service.Spec.LoadBalancerClass; class != nil {
		return *class == s.Class
	}
	return s.Default
}

// Contains reports whether a Service may have an address: it is in a pool, and one that a host can have.
func (s *Settings) Contains(a netip.Addr) bool {
	return slices.ContainsFunc(s.Pools, func(p netip.Prefix) bool { return usable(p, a) })
}

// usable reports whether a host can have an address of a network: not the network's own nor, of IPv4, that of broadcast.
func usable(p netip.Prefix, a netip.Addr) bool {
	switch {
	case !p.Contains(a):
		return false
	case a.BitLen()-p.Bits() < 2: // one or two addresses: both are hosts'
		return true
	case a.Is4() && !p.Contains(a.Next()):
		return false
	}
	return a != p.Masked().Addr()
}

// Allocate gives each of our Services its addresses; services are all of the cluster. Those on record come first, the older Service's
// before the younger one's; then those that are wanted; then free ones. What others have on record of our pools is not given away.
func (s *Settings) Allocate(services []*corev1.Service) map[types.NamespacedName]Verdict {
	a := allocation{Settings: s, taken: map[netip.Addr]string{}, next: make([]netip.Addr, len(s.Pools))}
	var ours []*claim
	for _, service := range services {
		if c, foreign := newClaim(service), s.isOfAnother(service); s.Serves(service) && !foreign {
			ours = append(ours, c)
		} else {
			for _, addr := range c.recorded {
				a.taken[addr] = c.name()
			}
			c.verdict.OfAnother = foreign && s.Serves(service)
			if c.verdict.OfAnother {
				ours = append(ours, c)
			}
		}
	}
	slices.SortFunc(ours, (*claim).compare)
	for _, round := range []func(*claim){a.keep, a.want, a.fill} {
		for _, c := range ours {
			if !c.verdict.OfAnother && c.invalid == nil {
				round(c)
			}
		}
	}
	out := make(map[types.NamespacedName]Verdict, len(ours))
	for _, c := range ours {
		out[types.NamespacedName{Namespace: c.service.Namespace, Name: c.service.Name}] = c.conclude()
	}
	return out
}

// isOfAnother reports whether the status of a Service without a class has what we have not written: another provider serves it.
func (s *Settings) isOfAnother(service *corev1.Service) bool {
	return service.Spec.LoadBalancerClass == nil && slices.ContainsFunc(service.Status.LoadBalancer.Ingress, func(in corev1.LoadBalancerIngress) bool {
		addr, err := netip.ParseAddr(in.IP)
		return err != nil || !s.Contains(addr)
	})
}

// claim is a Service and what it has so far.
type claim struct {
	service  *corev1.Service
	recorded []netip.Addr
	wanted   []netip.Addr
	invalid  error
	got      map[corev1.IPFamily]netip.Addr
	verdict  Verdict
}

func newClaim(service *corev1.Service) *claim {
	c := &claim{service: service, got: map[corev1.IPFamily]netip.Addr{}}
	c.recorded = Recorded(service)
	c.wanted, c.invalid = wanted(service)
	return c
}

// Recorded returns the addresses in a Service's status.
func Recorded(service *corev1.Service) (out []netip.Addr) {
	for _, in := range service.Status.LoadBalancer.Ingress {
		if addr, err := netip.ParseAddr(in.IP); err == nil {
			out = append(out, addr)
		}
	}
	return out
}

// wanted reads which addresses a Service asks for.
func wanted(service *corev1.Service) (out []netip.Addr, err error) {
	field, text := "spec.loadBalancerIP", service.Spec.LoadBalancerIP
	for _, name := range wantedAnnotations {
		if text == "" {
			field, text = "annotation "+name, service.Annotations[name]
		}
	}
	if text == "" {
		return nil, nil
	}
	for _, one := range strings.SplitN(text, ",", maxWanted+1) {
		addr, err := netip.ParseAddr(strings.TrimSpace(one))
		if err != nil || addr.Zone() != "" {
			return nil, fmt.Errorf("%s %.100q: must be an IP address, or one of each family separated by a comma", field, text)
		}
		family := familyOf(addr)
		if slices.ContainsFunc(out, func(o netip.Addr) bool { return familyOf(o) == family }) {
			return nil, fmt.Errorf("%s %.100q: must have one address of the family %s", field, text, family)
		}
		if !slices.Contains(service.Spec.IPFamilies, family) {
			return nil, fmt.Errorf("%s %.100q: %s must be of a family in spec.ipFamilies %v", field, text, addr, service.Spec.IPFamilies)
		}
		out = append(out, addr)
	}
	return out, nil
}

func familyOf(a netip.Addr) corev1.IPFamily {
	if a.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

func (c *claim) name() string { return c.service.Namespace + "/" + c.service.Name }

// compare orders by age.
func (c *claim) compare(o *claim) int {
	return cmp.Or(c.service.CreationTimestamp.Compare(o.service.CreationTimestamp.Time), strings.Compare(c.name(), o.name()))
}

func (c *claim) refuse(reason, format string, args ...any) {
	if c.verdict.Reason == "" {
		c.verdict.Reason, c.verdict.Message = reason, fmt.Sprintf(format, args...)
	}
}

// conclude says what the Service gets.
func (c *claim) conclude() Verdict {
	switch {
	case c.verdict.OfAnother:
		c.refuse(ReasonOfAnother, "the status has an address of another provider, and the Service no class: it stays as it is")
	case c.invalid != nil:
		c.refuse(ReasonInvalid, "%v", c.invalid)
	}
	for _, family := range c.service.Spec.IPFamilies {
		if addr, ok := c.got[family]; ok {
			c.verdict.Addresses = append(c.verdict.Addresses, addr)
		}
	}
	for _, p := range c.service.Spec.Ports {
		if p.NodePort == 0 {
			c.refuse(ReasonNoNodePort, "port %d has no node port, by which nodes are reached: spec.allocateLoadBalancerNodePorts must be true", p.Port)
		}
	}
	return c.verdict
}

// allocation is who has which address so far.
type allocation struct {
	*Settings
	taken map[netip.Addr]string
	next  []netip.Addr // of each pool: those before it are taken
}

func (a *allocation) give(c *claim, addr netip.Addr) {
	a.taken[addr], c.got[familyOf(addr)] = c.name(), addr
}

// keep lets a Service have what is on record.
func (a *allocation) keep(c *claim) {
	for _, addr := range c.recorded {
		family := familyOf(addr)
		asked := c.wantedOf(family)
		_, has := c.got[family]
		_, taken := a.taken[addr]
		if !has && !taken && a.Contains(addr) && slices.Contains(c.service.Spec.IPFamilies, family) && (!asked.IsValid() || asked == addr) {
			a.give(c, addr)
		}
	}
}

func (c *claim) wantedOf(family corev1.IPFamily) netip.Addr {
	for _, addr := range c.wanted {
		if familyOf(addr) == family {
			return addr
		}
	}
	return netip.Addr{}
}

// want lets a Service have what it asks for.
func (a *allocation) want(c *claim) {
	for _, addr := range c.wanted {
		owner, taken := a.taken[addr]
		switch {
		case c.got[familyOf(addr)] == addr:
		case !a.Contains(addr):
			c.refuse(ReasonNotInPool, "%s is wanted: it must be of the pools %v", addr, a.Pools)
		case taken:
			c.refuse(ReasonTaken, "%s is wanted, and Service %s has it: addresses are not shared", addr, owner)
		default:
			a.give(c, addr)
		}
	}
}

// fill lets a Service have free addresses for the families in which it asks for none.
func (a *allocation) fill(c *claim) {
	for _, family := range c.service.Spec.IPFamilies {
		if _, has := c.got[family]; has || c.wantedOf(family).IsValid() {
			continue
		}
		addr, pools := a.free(family)
		switch {
		case addr.IsValid():
			a.give(c, addr)
		case pools > 0:
			c.refuse(ReasonExhausted, "no address of the family %s is free in the pools %v", family, a.Pools)
		case c.needs(family):
			c.refuse(ReasonNoPool, "no pool has addresses of the family %s: the pools are %v", family, a.Pools)
		}
	}
}

// needs reports whether a Service must have an address of a family: not if it prefers two families, and can have the other.
func (c *claim) needs(family corev1.IPFamily) bool {
	policy := c.service.Spec.IPFamilyPolicy
	return policy == nil || *policy != corev1.IPFamilyPolicyPreferDualStack || len(c.service.Spec.IPFamilies) == 1
}

// free returns the first free address of a family, and how many pools there are of it.
func (a *allocation) free(family corev1.IPFamily) (addr netip.Addr, pools int) {
	for i, p := range a.Pools {
		if familyOf(p.Addr()) != family {
			continue
		}
		pools++
		if !a.next[i].IsValid() {
			a.next[i] = p.Masked().Addr()
		}
		for ; p.Contains(a.next[i]); a.next[i] = a.next[i].Next() {
			if _, taken := a.taken[a.next[i]]; !taken && usable(p, a.next[i]) {
				return a.next[i], pools
			}
		}
	}
	return netip.Addr{}, pools
}
