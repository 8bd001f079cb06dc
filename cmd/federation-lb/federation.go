package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/wire"
	"federation/cmd/internal/connection"
	failoverplan "federation/controllers/failover/plan"
	"federation/controllers/loadbalancer"
	"federation/controllers/loadbalancer/plan"
	"federation/controllers/loadbalancer/proxy"
	"federation/controllers/loadbalancer/registered"
	"federation/controllers/servicedns"
	"federation/controllers/supervisor"
)

// source is the federation, and what keeps the proxy in line with it.
type source struct {
	*options
	kube       kubernetes.Interface
	informers  *wire.Informers
	controller *loadbalancer.Controller
	proxy      *proxy.Proxy
}

func (o *options) newSource(p *proxy.Proxy) (*source, error) {
	from, kube, err := connection.New(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	s := &source{options: o, informers: from, kube: kube, proxy: p}
	s.controller = loadbalancer.New(loadbalancer.Options{Informers: s.informers.ForResource, Kube: s.kube, Proxy: p, Site: plan.Site{Region: o.region, Zone: o.zone}, ServicePorts: o.ports, UDP: o.serviceMode == nftablesMode})
	return s, nil
}

// follow decides the offers of clusters, as for DNS, until ctx ends. It waits while the federation cannot be reached.
func (s *source) follow(ctx context.Context) error {
	info, err := connection.WaitForInfo(ctx, s.kube)
	if err != nil {
		return nil // shutting down
	}
	how := servicedns.Options{
		Informers: s.informers.ForResource, Federation: info.Name, Zone: info.DNSZone, TTL: uint32(info.DNSTTL / time.Second),
		CutOff: func(clusters []*v1beta1.Cluster) map[string]bool {
			return failoverplan.CutOff(clusters, failoverplan.SettingsOf(info), time.Now())
		},
		Kube: s.kube, Offers: s.controller.Offers, Kept: s.controller.Kept, Balancers: s.controller.Balancers,
	}
	s.lookups.Fill(&how)
	names, err := servicedns.New(how)
	if err != nil {
		return err
	}
	s.informers.Start(ctx.Done())
	return names.Run(ctx)
}

// announce makes the load balancer known to the federation, if it has addresses, until ctx ends. The returned function waits until it is withdrawn.
func (s *source) announce(ctx context.Context) (wait func()) {
	says, err := plan.Says(plan.Site{Region: s.region, Zone: s.zone}, s.own, s.ports, s.serviceMode == nftablesMode)
	if err != nil { // it has no addresses
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		supervisor.Keep(ctx, "loadbalancer", func(ctx context.Context) {
			registered.Announce(ctx, s.kube, s.name, fmt.Sprintf("%s-%d", s.name, os.Getpid()), says, func() string { return plan.SaysOut(s.proxy.Health(), s.proxy.Own()) })
		})
	}()
	return func() { <-done }
}
