package plan

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// LoadBalancer is a load balancer of the federation's own. Ingresses of v1beta1.IngressClassName have its addresses, not those of clusters; so have
// those Services of v1beta1.LoadBalancerClassName whose status has them.
type LoadBalancer struct {
	Name      string       `json:"-"`
	Region    string       `json:"region,omitempty"`
	Zone      string       `json:"zone,omitempty"`
	Addresses []netip.Addr `json:"addresses"`
	// ServicePorts are those at which it serves Services, as package loadbalancer/plan parses them.
	ServicePorts string `json:"servicePorts,omitempty"`
	// UDP: it serves Services by UDP at these, too.
	UDP bool `json:"udp,omitempty"`
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

// IsBalanced reports whether an Ingress or Service is served by the federation's own load balancers.
func IsBalanced(u *unstructured.Unstructured) bool {
	switch u.GetKind() {
	case KindIngress:
		class, _, _ := unstructured.NestedString(u.Object, "spec", "ingressClassName")
		return class == v1beta1.IngressClassName
	case KindService:
		class, _, _ := unstructured.NestedString(u.Object, "spec", "loadBalancerClass")
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "type")
		return class == v1beta1.LoadBalancerClassName && kind == string(corev1.ServiceTypeLoadBalancer)
	}
	return false
}

// BalancedAt returns the addresses of load balancers in the status of a Service that they serve.
func BalancedAt(u *unstructured.Unstructured) (all []netip.Addr) {
	if u.GetKind() != KindService || !IsBalanced(u) {
		return nil
	}
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "loadBalancer", "ingress")
	items, _ := list.([]any)
	for _, item := range items {
		m, _ := item.(map[string]any)
		text, _ := m["ip"].(string)
		if a, err := netip.ParseAddr(text); err == nil {
			all = append(all, a)
		}
	}
	return all
}

// observeLoadBalancers finds the names of what load balancers serve: an Ingress' hosts have the addresses of all of them, the names of a Service those of
// its status.
func (p *planner) observeLoadBalancers() {
	hosts, isService := p.makeHosts(), p.object.Kind == KindService
	for i := range p.in.LoadBalancers {
		b := &p.in.LoadBalancers[i]
		t := &part{Cluster: &Cluster{Name: b.Name, Region: b.Region, Ready: true, Weight: 1}, weight: 1, why: "a load balancer of the federation"}
		addresses, names := b.Addresses, hosts
		if isService {
			addresses = slices.DeleteFunc(slices.Clone(addresses), func(a netip.Addr) bool { return !slices.Contains(p.object.BalancedAt, a) })
			if b.Zone != "" {
				t.Zones = []string{b.Zone}
			}
			names = slices.Concat(hosts, p.namesAtPlace(t.Cluster))
		}
		if t.addresses = p.publishable(b.Name, "address %s of load balancer "+b.Name, addresses...); len(t.addresses) == 0 {
			t.rank = nothing
		}
		for _, name := range names {
			p.levels[name].parts = append(p.levels[name].parts, t)
		}
	}
	if isService {
		p.makeLevels(nil) // those of all clusters' places, which lead to load balancers elsewhere
	}
}
