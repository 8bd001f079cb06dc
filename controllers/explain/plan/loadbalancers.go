package plan

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	loadbalancerplan "federation/controllers/loadbalancer/plan"
)

// LoadBalancer is a load balancer of the federation, as -o json and yaml print it.
type LoadBalancer struct {
	Name      string   `json:"name"`
	Region    string   `json:"region,omitempty"`
	Zone      string   `json:"zone,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	Alive     bool     `json:"alive"`
	// Published: DNS and Ingresses have its addresses.
	Published bool        `json:"published"`
	Renewed   metav1.Time `json:"renewed"`
	Problem   string      `json:"problem,omitempty"`
}

// Place returns REGION/ZONE, as far as it is known.
func (b *LoadBalancer) Place() string {
	return cmp.Or(strings.Trim(b.Region+"/"+b.Zone, "/"), "-")
}

// LoadBalancersOf returns load balancers as they have registered.
func LoadBalancersOf(all []loadbalancerplan.Registration) (views []LoadBalancer) {
	for i := range all {
		b := &all[i]
		v := LoadBalancer{Name: b.Name, Region: b.Region, Zone: b.Zone, Alive: b.Problem == "", Published: b.Published, Renewed: metav1.NewTime(b.Renewed), Problem: b.Problem}
		for _, a := range b.Addresses {
			v.Addresses = append(v.Addresses, a.String())
		}
		views = append(views, v)
	}
	return views
}
