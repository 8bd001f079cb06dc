package plan

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// Service is one with the annotation.
type Service struct {
	// Key is namespace/name.
	Key string
	// Value is that of v1beta1.ClusterSetIPAnnotation.
	Value string
	// Families that it asks for; none means the first with a range.
	Families []corev1.IPFamily
	// Dual: it gets both families if both have ranges.
	Dual    bool
	Created time.Time
}

// Input is everything that Decide depends on.
type Input struct {
	Ranges Ranges
	// Services are those with the annotation, in any order.
	Services []Service
	// Held are the addresses with an IPAddress, with the key of the owning Service. "" means that it is not ours: it is
	// taken, and left alone.
	Held map[netip.Addr]string
}

// Reasons of a Fault, and of its condition.
const (
	RangeMissing = "RangeMissing" // no range of the family
	RangeFull    = "RangeFull"    // all addresses are allocated
	Clash        = "Clash"        // another Service held the annotated address: it gets another
	OutOfRange   = "OutOfRange"   // its address is in no range; it keeps it
)

// Fault is what is or was wrong with a Service's addresses.
type Fault struct{ Reason, Message string }

// Decision is what to do, in this order.
type Decision struct {
	// Claims are addresses to claim, with the Service's key.
	Claims map[netip.Addr]string
	// Values are annotations to write once the claims are made, by the Service's key.
	Values map[string]string
	// Leaks are addresses that are no longer needed, sorted.
	Leaks []netip.Addr
	// Faults by the Service's key.
	Faults map[string][]Fault
}

// Decide allocates addresses to the Services that ask. If two annotations have the same address, the holder keeps it,
// else the older Service.
func Decide(in Input) Decision {
	d := decider{Input: in, Decision: Decision{Claims: map[netip.Addr]string{}, Values: map[string]string{}, Faults: map[string][]Fault{}}, own: map[string][]netip.Addr{}, needed: map[netip.Addr]bool{}}
	for _, a := range slices.SortedFunc(maps.Keys(in.Held), netip.Addr.Compare) {
		d.own[in.Held[a]] = append(d.own[in.Held[a]], a)
	}
	services := slices.SortedFunc(slices.Values(in.Services), func(a, b Service) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Key, b.Key)) })
	for _, s := range services { // annotated addresses first, so that none is given to another
		d.claimAnnotated(s)
	}
	for _, s := range services {
		d.allocate(s)
	}
	for _, a := range slices.SortedFunc(maps.Keys(in.Held), netip.Addr.Compare) {
		if in.Held[a] != "" && !d.needed[a] {
			d.Leaks = append(d.Leaks, a)
		}
	}
	return d.Decision
}

type decider struct {
	Input
	Decision
	own    map[string][]netip.Addr // the addresses that each holds
	needed map[netip.Addr]bool
}

// families returns the families in which a Service gets addresses; true is IPv4. They include one in which it has an
// address though there is no range any more.
func (d *decider) families(s Service) (ipv4 []bool) {
	for _, f := range s.Families {
		ipv4 = append(ipv4, f == corev1.IPv4Protocol)
	}
	for _, v4 := range []bool{true, false} {
		if _, has := annotatedAddress(s, v4); has && d.Ranges.ofFamily(v4) == nil && !slices.Contains(ipv4, v4) {
			ipv4 = append(ipv4, v4)
		}
	}
	for _, r := range d.Ranges {
		if v4 := r.Addr().Is4(); (len(s.Families) == 0 && len(ipv4) == 0 || s.Dual) && !slices.Contains(ipv4, v4) {
			ipv4 = append(ipv4, v4)
		}
	}
	return ipv4
}

// annotatedAddress returns the address of a family in a Service's annotation.
func annotatedAddress(s Service, ipv4 bool) (a netip.Addr, ok bool) {
	all, _ := v1beta1.ParseClusterSetIPs(s.Value, field.NewPath("value")) // an invalid value has no addresses
	if i := slices.IndexFunc(all, func(a netip.Addr) bool { return a.Is4() == ipv4 }); i >= 0 {
		return all[i], true
	}
	return a, false
}

// claimAnnotated claims an annotated address that nobody holds.
func (d *decider) claimAnnotated(s Service) {
	for _, ipv4 := range d.families(s) {
		a, ok := annotatedAddress(s, ipv4)
		if !ok {
			continue
		}
		holder, held := d.Held[a]
		claimer, claimed := d.Claims[a]
		switch {
		case held && holder != s.Key:
			d.addFault(s, Clash, "%s is allocated to %s", a, cmp.Or(holder, "an IPAddress that is not the federation's"))
		case claimed:
			d.addFault(s, Clash, "%s is also said by %s, which is older", a, claimer)
		case !held:
			d.Claims[a] = s.Key
		}
	}
}

// allocate finds a Service's addresses, and has them written if the annotation lacks them.
func (d *decider) allocate(s Service) {
	var texts []string
	families := d.families(s)
	for _, ipv4 := range families {
		if a, ok := d.chooseAddress(s, ipv4); ok {
			d.needed[a] = true
			texts = append(texts, a.String())
		}
	}
	if len(families) == 0 {
		d.addFault(s, RangeMissing, "the federation has no range of clusterset IPs (--clusterset-ip-range)")
	}
	if value := cmp.Or(strings.Join(texts, ","), v1beta1.ClusterSetIPAuto); value != s.Value {
		d.Values[s.Key] = value
	}
}

// chooseAddress returns a Service's address of a family: the annotated one, one that it holds, or a free one.
func (d *decider) chooseAddress(s Service, ipv4 bool) (a netip.Addr, ok bool) {
	mine := func(a netip.Addr) bool { return a.Is4() == ipv4 && (d.Held[a] == s.Key || d.Claims[a] == s.Key) }
	r := d.Ranges.ofFamily(ipv4)
	if a, ok := annotatedAddress(s, ipv4); ok && mine(a) {
		if r == nil || !isAllocatable(*r, a) {
			d.addFault(s, OutOfRange, "%s is in no range of the federation, and stays until the annotation is removed", a)
		}
		return a, true
	}
	if r == nil {
		d.addFault(s, RangeMissing, "the federation has no range of clusterset IPs of the family %s", map[bool]string{true: "IPv4", false: "IPv6"}[ipv4])
		return a, false
	}
	if i := slices.IndexFunc(d.own[s.Key], func(a netip.Addr) bool { return mine(a) && isAllocatable(*r, a) }); i >= 0 {
		return d.own[s.Key][i], true
	}
	a, ok = firstFree(*r, s.Key, func(a netip.Addr) bool {
		_, held := d.Held[a]
		_, claimed := d.Claims[a]
		return held || claimed
	})
	if !ok {
		d.addFault(s, RangeFull, "all addresses of %s are allocated", r)
		return a, false
	}
	d.Claims[a] = s.Key
	return a, true
}

func (d *decider) addFault(s Service, reason, format string, args ...any) {
	d.Faults[s.Key] = append(d.Faults[s.Key], Fault{reason, fmt.Sprintf(format, args...)})
}
