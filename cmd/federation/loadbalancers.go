package main

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"

	"federation/controllers/loadbalancer/registered"
	"federation/controllers/manager"
)

// loadBalancers has the addresses of the federation's own load balancers in DNS, and in the status of Ingresses of their class.
func (c *controllers) loadBalancers(_ context.Context, from manager.Informers) (func(context.Context) error, error) {
	from.ForResource(networkingv1.SchemeGroupVersion.WithResource("ingresses")) // requested before they are started
	keeper := &registered.Keeper{Kube: c.kube, Informers: from.ForResource}
	return keeper.Run, nil
}
