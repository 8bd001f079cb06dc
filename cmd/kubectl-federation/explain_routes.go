package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	loadbalancerplan "federation/controllers/loadbalancer/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

var ingressesResource = networkingv1.SchemeGroupVersion.WithResource("ingresses")

// routesEvidence is what explain has read of how the federation's load balancers serve an Ingress.
type routesEvidence struct {
	ingress *networkingv1.Ingress
	// world has no Services if the user may not read them.
	world loadbalancerplan.World
	// objects are the Services that the Ingress names.
	objects []servicednsplan.Object
	// names is the input of their offers; without objects if the user may not read it.
	names     servicednsplan.Input
	balancers []loadbalancerplan.Registration
	// missing are the Secrets for TLS that do not exist.
	missing []string
	// unknown says what could not be read, and what does not follow for that.
	unknown []string
}

// isBalanced reports whether the load balancers serve the Ingress.
func (r *routesEvidence) isBalanced() bool { return v1beta1.IsBalanced(r.ingress) }

// gatherRoutes reads it, as far as the user may.
func gatherRoutes(ctx context.Context, f *client.Federation, e *evidence) (*routesEvidence, error) {
	r := &routesEvidence{ingress: &networkingv1.Ingress{}}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(e.object.Object, r.ingress); err != nil || !r.isBalanced() {
		return r, err
	}
	for _, part := range []struct {
		what   string
		gather func(context.Context, *client.Federation, *evidence, *routesEvidence) error
	}{
		{"whether Ingresses of other namespaces have a host", gatherIngresses},
		{"whom hosts are granted to, or kept for", gatherClaims},
		{"the Services behind it", gatherBackends},
		{"what clusters have of these", gatherOffersBehind},
		{"which load balancers there are", gatherLoadBalancers},
		{"whether the Secrets for TLS exist", gatherSecrets},
	} {
		if err := part.gather(ctx, f, e, r); apierrors.IsForbidden(err) {
			r.unknown = append(r.unknown, part.what+": "+err.Error())
		} else if err != nil {
			return r, err
		}
	}
	return r, nil
}

// gatherIngresses reads all Ingresses; if the user may not, those of the namespace.
func gatherIngresses(ctx context.Context, f *client.Federation, e *evidence, r *routesEvidence) error {
	add := func(u *unstructured.Unstructured) error {
		i := &networkingv1.Ingress{}
		r.world.Ingresses = append(r.world.Ingresses, i)
		return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, i)
	}
	err := client.ListPages(ctx, f.Dynamic.Resource(ingressesResource), metav1.ListOptions{}, add)
	if !apierrors.IsForbidden(err) {
		return err
	}
	r.world.Ingresses = nil
	if failed := client.ListPages(ctx, f.Dynamic.Resource(ingressesResource).Namespace(e.object.GetNamespace()), metav1.ListOptions{}, add); failed != nil {
		r.world.Ingresses = []*networkingv1.Ingress{r.ingress}
	}
	return err
}

// gatherClaims reads what says which namespace may have a host.
func gatherClaims(ctx context.Context, f *client.Federation, _ *evidence, r *routesEvidence) (err error) {
	if r.world.Grants, err = f.Grants(ctx); err != nil {
		return err
	}
	hosts, err := f.Published(ctx, v1beta1.DNSHostsConfigMap)
	r.world.Kept = servicednsplan.ParseKept(hosts)
	return err
}

// gatherBackends reads the Services that the Ingress names. Without one of them nothing can be said.
func gatherBackends(ctx context.Context, f *client.Federation, e *evidence, r *routesEvidence) error {
	services := map[string]*corev1.Service{}
	for name := range loadbalancerplan.Backends(r.ingress) {
		u, err := f.Dynamic.Resource(servicesResource).Namespace(e.object.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue // the table says so
		}
		if err != nil {
			return err
		}
		s := &corev1.Service{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s); err != nil {
			return err
		}
		o, err := servicednsplan.Read(u, e.policies)
		if err != nil {
			return err
		}
		services[s.Namespace+"/"+s.Name] = s
		r.objects = append(r.objects, o)
	}
	r.world.Services = services
	return nil
}

// gatherOffersBehind reads what the offers of these Services follow from.
func gatherOffersBehind(ctx context.Context, f *client.Federation, e *evidence, r *routesEvidence) error {
	info, err := f.Info(ctx)
	if err != nil {
		return err
	}
	names, err := dnsWorld(ctx, f, info, e.clusters)
	if err != nil {
		return err
	}
	names.Objects, names.Explain, names.Offers = r.objects, true, true
	names.Resolved = lookupHosts(ctx, servicednsplan.Records(names).Resolve)
	r.names = names
	return nil
}

// gatherLoadBalancers reads how they have registered.
func gatherLoadBalancers(ctx context.Context, f *client.Federation, _ *evidence, r *routesEvidence) (err error) {
	r.balancers, err = registrations(ctx, f)
	return err
}

// gatherSecrets looks whether the Secrets for TLS exist. It does not read what is in them.
func gatherSecrets(ctx context.Context, f *client.Federation, e *evidence, r *routesEvidence) error {
	for _, t := range r.ingress.Spec.TLS {
		if t.SecretName == "" {
			continue
		}
		_, err := f.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(e.object.GetNamespace()).Get(ctx, t.SecretName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			r.missing = append(r.missing, t.SecretName)
			continue
		}
		if err != nil {
			return fmt.Errorf("reading Secret %s: %w", t.SecretName, err)
		}
	}
	return nil
}
