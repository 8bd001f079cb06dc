// Package review answers FailoverReviews: it reads the federation, and plan decides.
package review

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/review/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

// Reviewer answers FailoverReviews in the apiserver's process. It reads all that it needs from the API, so that it
// answers the same wherever the controllers run. An answer costs a list of every object that can move.
type Reviewer struct {
	clients atomic.Pointer[clients]
}

// clients are the way to the API.
type clients struct {
	client dynamic.Interface
	kube   kubernetes.Interface
}

// Use gives the reviewer clients of the API, once it serves. They should not be throttled.
func (r *Reviewer) Use(client dynamic.Interface, kube kubernetes.Interface) {
	r.clients.Store(&clients{client, kube})
}

// ReviewFailover fills in the status of a review. Before Use it is answered ServiceUnavailable.
func (r *Reviewer) ReviewFailover(ctx context.Context, asked *v1beta1.FailoverReview) error {
	c := r.clients.Load()
	if c == nil {
		return apierrors.NewServiceUnavailable("the federation is starting: ask again in a moment")
	}
	in, err := c.readInput(ctx)
	if err != nil {
		return err
	}
	status, errs := plan.Review(in, asked.Spec)
	if len(errs) > 0 {
		return apierrors.NewInvalid(v1beta1.SchemeGroupVersion.WithKind("FailoverReview").GroupKind(), asked.Name, errs)
	}
	asked.Status = status
	return nil
}

// namedResources are what has names in DNS: Ingresses before the Services that they name.
var namedResources = []schema.GroupVersionResource{networkingv1.SchemeGroupVersion.WithResource("ingresses"), corev1.SchemeGroupVersion.WithResource("services")}

func (c *clients) readInput(ctx context.Context) (in plan.Input, err error) {
	in.Now = time.Now()
	if in.Info, err = readInfo(ctx, c.kube); err != nil {
		return in, err
	}
	if in.Clusters, err = readAll[v1beta1.Cluster](ctx, c.client, v1beta1.ClustersResource); err != nil {
		return in, err
	}
	if in.Policies, err = readAll[v1beta1.PlacementPolicy](ctx, c.client, v1beta1.PoliciesResource); err != nil {
		return in, err
	}
	for _, k := range v1beta1.FederatedKinds {
		if k.Preferences == "" {
			continue
		}
		if err := eachObject(ctx, c.client, k.Resource, adding(in.AddObject)); err != nil {
			return in, err
		}
	}
	for _, r := range namedResources {
		if err := eachObject(ctx, c.client, r, adding(func(u *unstructured.Unstructured) { in.AddNamed(u); in.AddRouted(u) })); err != nil {
			return in, err
		}
	}
	return in, c.readRoutes(ctx, &in)
}

// readRoutes reads, where load balancers of the federation serve an Ingress, which of them are alive and who has which host.
func (c *clients) readRoutes(ctx context.Context, in *plan.Input) (err error) {
	if len(in.Routes.Ingresses) == 0 {
		return nil
	}
	balancers, err := readData(ctx, c.kube, v1beta1.LoadBalancersConfigMap)
	if err != nil {
		return err
	}
	in.LoadBalancers = servicednsplan.ParseLoadBalancers(balancers)
	hosts, err := readData(ctx, c.kube, v1beta1.DNSHostsConfigMap)
	if err != nil {
		return err
	}
	in.Routes.Kept = servicednsplan.ParseKept(hosts)
	in.Routes.Grants, err = readAll[v1beta1.DNSNameGrant](ctx, c.client, v1beta1.DNSNameGrantsResource)
	return err
}

// readInfo returns the configuration; nil if the federation does not publish it.
func readInfo(ctx context.Context, kube kubernetes.Interface) (*v1beta1.Info, error) {
	data, err := readData(ctx, kube, v1beta1.InfoConfigMap)
	if data == nil || err != nil {
		return nil, err
	}
	info, err := v1beta1.ParseInfo(data)
	if err != nil {
		return nil, err
	}
	return &info, nil
}

// readData returns what one of the federation's own ConfigMaps has; nil if it does not exist.
func readData(ctx context.Context, kube kubernetes.Interface, name string) (map[string]string, error) {
	m, err := kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

// readAll reads all objects of one of our own kinds.
func readAll[T any](ctx context.Context, client dynamic.Interface, r schema.GroupVersionResource) (all []*T, err error) {
	err = eachObject(ctx, client, r, func(u *unstructured.Unstructured) error {
		one := new(T)
		all = append(all, one)
		return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, one)
	})
	return all, err
}

// adding is a function that cannot fail as one that could.
func adding(add func(*unstructured.Unstructured)) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error { add(u); return nil }
}

// eachObject calls do with every object of a resource, page by page.
func eachObject(ctx context.Context, client dynamic.Interface, r schema.GroupVersionResource, do func(*unstructured.Unstructured) error) error {
	o := metav1.ListOptions{Limit: 500, LabelSelector: v1beta1.NotRevisions}
	for {
		page, err := client.Resource(r).List(ctx, o)
		if err != nil {
			return fmt.Errorf("reading %s: %w", r.Resource, err)
		}
		for i := range page.Items {
			if err := do(&page.Items[i]); err != nil {
				return fmt.Errorf("reading %s %s/%s: %w", r.Resource, page.Items[i].GetNamespace(), page.Items[i].GetName(), err)
			}
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}
