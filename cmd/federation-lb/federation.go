package main

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/wire"
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
}

func (o *options) newSource(p *proxy.Proxy) (*source, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %q: %w", o.kubeconfig, err)
	}
	config.QPS = -1
	s := &source{options: o}
	if s.informers, s.kube, err = newInformers(config); err != nil {
		return nil, fmt.Errorf("--kubeconfig %q: %w", o.kubeconfig, err)
	}
	s.controller = loadbalancer.New(loadbalancer.Options{Informers: s.informers.ForResource, Kube: s.kube, Proxy: p, Site: plan.Site{Region: o.region, Zone: o.zone}})
	return s, nil
}

func newInformers(config *rest.Config) (*wire.Informers, kubernetes.Interface, error) {
	custom, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	kube, err := kubernetes.NewForConfig(wire.Protobuf(config))
	if err != nil {
		return nil, nil, err
	}
	slim := func(o metav1.Object) { o.SetManagedFields(nil) }
	return wire.NewInformers(wire.Source{Kube: kube, Dynamic: custom, Slim: slim}), kube, nil
}

// follow has the offers of clusters decided as for DNS, until ctx ends. It waits while the federation cannot be reached.
func (s *source) follow(ctx context.Context) error {
	info, err := s.readInfo(ctx)
	if err != nil {
		return nil // shutting down
	}
	how := servicedns.Options{
		Informers: s.informers.ForResource, Federation: info.Name, Zone: info.DNSZone, TTL: uint32(info.DNSTTL / time.Second),
		Held: func(clusters []*v1beta1.Cluster) map[string]bool {
			return failoverplan.CutOff(clusters, failoverplan.SettingsOf(info), time.Now())
		},
		Kube: s.kube, Offers: s.controller.Offers, Kept: s.controller.Kept,
	}
	s.lookups.Fill(&how)
	names, err := servicedns.New(how)
	if err != nil {
		return err
	}
	s.informers.Start(ctx.Done())
	return names.Run(ctx)
}

// announce has the federation know of the load balancer, if it has addresses, until ctx ends. The returned function waits until it is withdrawn.
func (s *source) announce(ctx context.Context) (wait func()) {
	says, err := plan.Says(plan.Site{Region: s.region, Zone: s.zone}, s.own)
	if err != nil { // it has no addresses
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		supervisor.Keep(ctx, "loadbalancer", func(ctx context.Context) {
			registered.Announce(ctx, s.kube, s.name, fmt.Sprintf("%s-%d", s.name, os.Getpid()), says)
		})
	}()
	return func() { <-done }
}

// readInfo waits until the federation publishes its configuration. It fails when ctx ends.
func (s *source) readInfo(ctx context.Context) (info v1beta1.Info, err error) {
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		found, err := s.kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(ctx, v1beta1.InfoConfigMap, metav1.GetOptions{})
		if err == nil {
			info, err = v1beta1.ParseInfo(found.Data)
		}
		if err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Waiting for the federation to publish its configuration")
		}
		return err == nil, nil
	})
	return info, err
}
