package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// Lease is what is known of the Lease of a load balancer.
type Lease struct {
	// Says is the value of v1beta1.LoadBalancerAnnotation.
	Says string
	// Renewed is when its last renewal was seen, by the clock of who saw it.
	Renewed time.Time
}

// aliveFor is how long a load balancer counts as alive after a renewal, of which there is one a second.
const aliveFor = 3 * time.Second

// Alive returns what to write of load balancers: of each that is alive what it says. If none is, those stay that were written and
// still have a Lease: the federation may have been away. A load balancer that ends deletes its Lease.
func Alive(leases map[string]Lease, written map[string]string, now time.Time) map[string]string {
	alive := map[string]string{}
	for name, l := range leases {
		if _, err := servicednsplan.ParseLoadBalancer(name, l.Says); err == nil && now.Sub(l.Renewed) < aliveFor {
			alive[name] = l.Says
		}
	}
	if len(alive) > 0 {
		return alive
	}
	for name, says := range written {
		if _, there := leases[name]; there {
			alive[name] = says
		}
	}
	return alive
}

// Says formats what a load balancer says of itself. udp: it serves Services by UDP, too.
func Says(site Site, addresses []netip.Addr, servicePorts PortRanges, udp bool) (string, error) {
	if len(addresses) == 0 {
		return "", fmt.Errorf("addresses: must be one or more")
	}
	text, err := json.Marshal(servicednsplan.LoadBalancer{Region: site.Region, Zone: site.Zone, Addresses: addresses, ServicePorts: servicePorts.String(), UDP: udp && len(servicePorts) > 0})
	return string(text), err
}

// Addresses returns the addresses of all load balancers, sorted.
func Addresses(written map[string]string) (all []netip.Addr) {
	for name, says := range written {
		if b, err := servicednsplan.ParseLoadBalancer(name, says); err == nil {
			all = append(all, b.Addresses...)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// OutTarget is a load balancer of a cluster that one of the federation's does not use, as that one sees it.
type OutTarget struct {
	Cluster string         `json:"cluster"`
	Address netip.AddrPort `json:"address"`
	// Ejected: requests failed there. Silent: it takes connections, and says nothing. Own: it is an address of the load balancer's own machine. Otherwise
	// its checks fail.
	Ejected bool `json:"ejected,omitempty"`
	Silent  bool `json:"silent,omitempty"`
	Own     bool `json:"own,omitempty"`
}

// maxOut bounds how many of them a load balancer tells of.
const maxOut = 100

// SaysOut formats which targets are out, or are the load balancer's own, the first of them if there are many; "" if none is.
func SaysOut(health map[Target]Health, own []Target) string {
	var out []OutTarget
	for _, t := range own[:min(len(own), maxOut/2)] {
		out = append(out, OutTarget{Cluster: t.Cluster, Address: t.Address, Own: true})
	}
	for _, t := range slices.SortedFunc(maps.Keys(health), Target.Compare) {
		if h := health[t]; (h.Failing || h.Ejected || h.Silent) && len(out) < maxOut {
			out = append(out, OutTarget{Cluster: t.Cluster, Address: t.Address, Ejected: !h.Failing && h.Ejected, Silent: !h.Failing && h.Silent})
		}
	}
	text, err := json.Marshal(out)
	if err != nil || len(out) == 0 {
		return ""
	}
	return string(text)
}

// parseOut parses that. What cannot be parsed says nothing.
func parseOut(text string) (out []OutTarget) {
	if json.Unmarshal([]byte(text), &out) != nil {
		return nil
	}
	return out[:min(len(out), maxOut)]
}

// Registration is a load balancer as it has registered.
type Registration struct {
	servicednsplan.LoadBalancer
	// Published: DNS and Ingresses have its addresses.
	Published bool
	// Renewed is when it last renewed its Lease, by its own clock.
	Renewed time.Time
	// Out are the targets that it does not use.
	Out []OutTarget
	// Problem is why it does not count as alive; empty if it does.
	Problem string
}

const (
	// newFor is how long one that is not published may just have begun.
	newFor = 5 * time.Second
	// goneFor without a renewal, one that is published counts as gone. It is long, for clocks of load balancers may be behind.
	goneFor = 30 * time.Second
)

// Registrations returns the load balancers that have a Lease, by name. written is the data of v1beta1.LoadBalancersConfigMap.
func Registrations(leases []*coordinationv1.Lease, written map[string]string, now time.Time) (all []Registration) {
	for _, l := range leases {
		b, err := servicednsplan.ParseLoadBalancer(l.Name, l.Annotations[v1beta1.LoadBalancerAnnotation])
		b.Name = l.Name
		r := Registration{LoadBalancer: b, Out: parseOut(l.Annotations[v1beta1.LoadBalancerOutAnnotation])}
		_, r.Published = written[l.Name]
		if l.Spec.RenewTime != nil {
			r.Renewed = l.Spec.RenewTime.Time
		}
		switch age := now.Sub(r.Renewed); {
		case err != nil:
			r.Problem = err.Error()
		case r.Published && age > goneFor:
			r.Problem = "has not renewed its Lease for " + duration.HumanDuration(age) + "; its addresses stay in DNS, for no load balancer has, or nobody looks"
		case !r.Published && age > newFor:
			r.Problem = "has not renewed its Lease for " + duration.HumanDuration(age) + ": its addresses are out of DNS; if it is gone for good: kubectl -n " +
				v1beta1.LoadBalancersNamespace + " delete lease " + l.Name
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Registration) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Place is REGION/ZONE as far as it is known; "-" if it is not.
func (r *Registration) Place() string {
	return cmp.Or(strings.Trim(r.Region+"/"+r.Zone, "/"), "-")
}

// Health is what it sees of targets, as far as it tells.
func (r *Registration) Health() map[Target]Health {
	seen := map[Target]Health{}
	for _, o := range r.Out {
		if !o.Own {
			seen[Target{o.Cluster, o.Address}] = Health{Failing: !o.Ejected && !o.Silent, Ejected: o.Ejected, Silent: o.Silent}
		}
	}
	return seen
}

// Own are those addresses of its machine that clusters say to be their load balancers, as far as it tells.
func (r *Registration) Own() map[netip.Addr]bool {
	own := map[netip.Addr]bool{}
	for _, o := range r.Out {
		if o.Own {
			own[v1beta1.EmbeddedIPv4(o.Address.Addr())] = true
		}
	}
	return own
}

// NamesByAddress returns the names of load balancers by their addresses.
func NamesByAddress(all []servicednsplan.LoadBalancer) map[netip.Addr]string {
	names := map[netip.Addr]string{}
	for _, b := range all {
		for _, a := range b.Addresses {
			if a = v1beta1.EmbeddedIPv4(a); names[a] == "" || b.Name < names[a] {
				names[a] = b.Name
			}
		}
	}
	return names
}
