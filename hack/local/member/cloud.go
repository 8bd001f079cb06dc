package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/controllers/service"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
)

// cloud is a cloud provider that has only load balancers: it gives each an address of a pool. It
// implements cloudprovider.Interface (the rest of it says "not here") and LoadBalancer.
type cloud struct {
	cloudprovider.Interface // nil: the service controller calls only what is defined below
	mu                      sync.Mutex
	pool                    *pool
}

// startCloud starts Kubernetes' own service controller over our cloud, and the Ingress controller.
func (c *cluster) startCloud(ctx context.Context, kube kubernetes.Interface) error {
	provider := &cloud{pool: newPool(c.pools)}
	if err := provider.remember(ctx, kube); err != nil {
		return err
	}
	if err := ensureIngressClass(ctx, kube); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(kube, 0)
	services, err := service.New(provider, kube, factory.Core().V1().Services(), factory.Core().V1().Nodes(),
		c.Name, utilfeature.DefaultFeatureGate)
	if err != nil {
		return err
	}
	ingresses, err := newIngressController(kube, factory.Networking().V1().Ingresses(), provider)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	c.controllers.Go(func() { services.Run(ctx, 5, controllersmetrics.NewControllerManagerMetrics("member")) })
	c.controllers.Go(func() { ingresses.run(ctx) })
	return nil
}

// remember claims the addresses that Services and Ingresses have from an earlier run, before
// anything new can be given one of them.
func (c *cloud) remember(ctx context.Context, kube kubernetes.Interface) error {
	services, err := kube.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range services.Items {
		for _, in := range services.Items[i].Status.LoadBalancer.Ingress {
			c.reclaim(serviceOwner(&services.Items[i]), in.IP)
		}
	}
	ingresses, err := kube.NetworkingV1().Ingresses("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range ingresses.Items {
		for _, in := range ingresses.Items[i].Status.LoadBalancer.Ingress {
			c.reclaim(ingressOwner(&ingresses.Items[i]), in.IP)
		}
	}
	return nil
}

func (c *cloud) reclaim(owner, ip string) {
	if a, err := netip.ParseAddr(ip); err == nil {
		c.pool.claim(owner, a) // refused: not of this pool any more, so the owner gets a new one
	}
}

func serviceOwner(s *corev1.Service) string { return "service/" + string(s.UID) }

func ingressOwner(i *networkingv1.Ingress) string { return "ingress/" + string(i.UID) }

func (c *cloud) allocate(owner string) (netip.Addr, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pool.allocate(owner)
}

func (c *cloud) holds(owner string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.pool.held[owner]
	return ok
}

func (c *cloud) release(owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pool.release(owner)
}

func (c *cloud) ProviderName() string { return "local" }

func (c *cloud) HasClusterID() bool { return true }

func (c *cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return c, true }

func (c *cloud) GetLoadBalancerName(_ context.Context, _ string, s *corev1.Service) string {
	return cloudprovider.DefaultLoadBalancerName(s)
}

func (c *cloud) GetLoadBalancer(_ context.Context, _ string, s *corev1.Service) (*corev1.LoadBalancerStatus, bool, error) {
	if !c.holds(serviceOwner(s)) {
		return nil, false, nil
	}
	a, err := c.allocate(serviceOwner(s))
	return status(a), err == nil, err
}

func (c *cloud) EnsureLoadBalancer(_ context.Context, _ string, s *corev1.Service, _ []*corev1.Node) (*corev1.LoadBalancerStatus, error) {
	a, err := c.allocate(serviceOwner(s))
	if err != nil {
		return nil, fmt.Errorf("service %s/%s: %w", s.Namespace, s.Name, err)
	}
	return status(a), nil
}

func (c *cloud) UpdateLoadBalancer(context.Context, string, *corev1.Service, []*corev1.Node) error {
	return nil
}

func (c *cloud) EnsureLoadBalancerDeleted(_ context.Context, _ string, s *corev1.Service) error {
	c.release(serviceOwner(s))
	return nil
}

func status(a netip.Addr) *corev1.LoadBalancerStatus {
	return &corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: a.String()}}}
}
