package plan

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

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

// Says formats what a load balancer says of itself.
func Says(site Site, addresses []netip.Addr) (string, error) {
	if len(addresses) == 0 {
		return "", fmt.Errorf("addresses: must be one or more")
	}
	text, err := json.Marshal(servicednsplan.LoadBalancer{Region: site.Region, Zone: site.Zone, Addresses: addresses})
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
