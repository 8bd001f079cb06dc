package explain

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	"federation/controllers/explain/plan"
	loadbalancerplan "federation/controllers/loadbalancer/plan"
)

// registrations reads how the federation's own load balancers have registered, by name.
func registrations(ctx context.Context, f *client.Federation) ([]loadbalancerplan.Registration, error) {
	found, err := f.Kube.CoordinationV1().Leases(v1beta1.LoadBalancersNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	written, err := f.Published(ctx, v1beta1.LoadBalancersConfigMap)
	if err != nil {
		return nil, err
	}
	var leases []*coordinationv1.Lease
	for i := range found.Items {
		leases = append(leases, &found.Items[i])
	}
	return loadbalancerplan.Registrations(leases, written, time.Now()), nil
}

// LoadBalancers returns the federation's own load balancers; none if the user may not read of them.
func LoadBalancers(ctx context.Context, f *client.Federation) ([]v1beta1.RegisteredLoadBalancer, error) {
	all, err := registrations(ctx, f)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return plan.LoadBalancersOf(all), err
}
