package plan

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// LoadBalancer is a load balancer of the federation's own. Ingresses of v1beta1.IngressClassName have its addresses, not those of clusters.
type LoadBalancer struct {
	Name      string       `json:"-"`
	Region    string       `json:"region,omitempty"`
	Zone      string       `json:"zone,omitempty"`
	Addresses []netip.Addr `json:"addresses"`
}

// maxLoadBalancers bounds how many are used.
const maxLoadBalancers = 200

// ParseLoadBalancer parses what a load balancer says of itself. It must have from 1 to 16 addresses.
func ParseLoadBalancer(name, says string) (b LoadBalancer, err error) {
	if err := json.Unmarshal([]byte(says), &b); err != nil {
		return b, fmt.Errorf("load balancer %s: %w", name, err)
	}
	if b.Name = name; len(b.Addresses) == 0 || len(b.Addresses) > maxOfCluster {
		return b, fmt.Errorf("load balancer %s: %d addresses: must be from 1 to %d", name, len(b.Addresses), maxOfCluster)
	}
	return b, nil
}

// ParseLoadBalancers parses the data of the ConfigMap v1beta1.LoadBalancersConfigMap. What cannot be parsed is left out.
func ParseLoadBalancers(data map[string]string) (all []LoadBalancer) {
	for name, says := range data {
		if b, err := ParseLoadBalancer(name, says); err == nil && len(all) < maxLoadBalancers {
			all = append(all, b)
		}
	}
	return all
}

// IsBalanced reports whether an Ingress is served by the federation's own load balancers.
func IsBalanced(u *unstructured.Unstructured) bool {
	class, _, _ := unstructured.NestedString(u.Object, "spec", "ingressClassName")
	return u.GetKind() == KindIngress && class == v1beta1.IngressClassName
}

// observeLoadBalancers finds the names of an Ingress that load balancers serve, which have the addresses of all of them.
func (p *planner) observeLoadBalancers() {
	hosts := p.makeHosts()
	for i := range p.in.LoadBalancers {
		b := &p.in.LoadBalancers[i]
		t := &part{Cluster: &Cluster{Name: b.Name, Region: b.Region, Ready: true, Weight: 1}, weight: 1, why: "a load balancer of the federation"}
		if t.addresses = p.publishable(b.Name, "address %s of load balancer "+b.Name, b.Addresses...); len(t.addresses) == 0 {
			t.rank = nothing
		}
		for _, host := range hosts {
			p.levels[host].parts = append(p.levels[host].parts, t)
		}
	}
}
