package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	loadbalancerplan "federation/controllers/loadbalancer/plan"
)

// LoadBalancersOf returns load balancers as they have registered.
func LoadBalancersOf(all []loadbalancerplan.Registration) (views []v1beta1.RegisteredLoadBalancer) {
	for i := range all {
		b := &all[i]
		v := v1beta1.RegisteredLoadBalancer{Name: b.Name, Region: b.Region, Zone: b.Zone, Alive: b.Problem == "", Published: b.Published, Renewed: metav1.NewTime(b.Renewed), Problem: b.Problem}
		for _, a := range b.Addresses {
			v.Addresses = append(v.Addresses, a.String())
		}
		views = append(views, v)
	}
	return views
}
