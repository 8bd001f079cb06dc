package explain

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
	"federation/controllers/explain/plan"
	loadbalancerplan "federation/controllers/loadbalancer/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

// gatherRoutes reads it, as far as the user may.
func (s *sight) gatherRoutes(ctx context.Context, e *plan.Evidence) (*plan.RoutesEvidence, error) {
	r := &plan.RoutesEvidence{Ingress: &networkingv1.Ingress{}}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(e.Object.Object, r.Ingress); err != nil || !r.IsBalanced() {
		return r, err
	}
	for _, part := range []struct {
		what   string
		gather func(context.Context, *client.Federation, *plan.Evidence, *plan.RoutesEvidence) error
	}{
		{"whether Ingresses of other namespaces have a host", gatherIngresses},
		{"whom hosts are granted to, or kept for", gatherClaims},
		{"the Services behind it", gatherBackends},
		{"what clusters have of these", s.gatherOffersBehind},
		{"which load balancers there are", gatherLoadBalancers},
		{"whether the Secrets for TLS exist", gatherSecrets},
	} {
		if err := part.gather(ctx, s.user, e, r); apierrors.IsForbidden(err) {
			r.Unknown = append(r.Unknown, part.what+": "+err.Error())
		} else if err != nil {
			return r, err
		}
	}
	return r, nil
}

// gatherIngresses reads all Ingresses; if the user may not, those of the namespace.
func gatherIngresses(ctx context.Context, f *client.Federation, e *plan.Evidence, r *plan.RoutesEvidence) error {
	add := func(u *unstructured.Unstructured) error {
		i := &networkingv1.Ingress{}
		r.World.Ingresses = append(r.World.Ingresses, i)
		return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, i)
	}
	err := client.ListPages(ctx, f.Dynamic.Resource(plan.Ingresses), metav1.ListOptions{}, add)
	if !apierrors.IsForbidden(err) {
		return err
	}
	r.World.Ingresses = nil
	if failed := client.ListPages(ctx, f.Dynamic.Resource(plan.Ingresses).Namespace(e.Object.GetNamespace()), metav1.ListOptions{}, add); failed != nil {
		r.World.Ingresses = []*networkingv1.Ingress{r.Ingress}
	}
	return err
}

// gatherClaims reads what says which namespace may have a host.
func gatherClaims(ctx context.Context, f *client.Federation, _ *plan.Evidence, r *plan.RoutesEvidence) (err error) {
	if r.World.Grants, err = f.Grants(ctx); err != nil {
		return err
	}
	hosts, err := f.Published(ctx, v1beta1.DNSHostsConfigMap)
	r.World.Kept = servicednsplan.ParseKept(hosts)
	return err
}

// gatherBackends reads the Services that the Ingress names. Without one of them nothing can be said.
func gatherBackends(ctx context.Context, f *client.Federation, e *plan.Evidence, r *plan.RoutesEvidence) error {
	services := map[string]*corev1.Service{}
	for name := range loadbalancerplan.Backends(r.Ingress) {
		u, err := f.Dynamic.Resource(plan.Services).Namespace(e.Object.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
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
		o, err := servicednsplan.Read(u, e.Policies)
		if err != nil {
			return err
		}
		services[s.Namespace+"/"+s.Name] = s
		r.Objects = append(r.Objects, o)
	}
	r.World.Services = services
	return nil
}

// gatherOffersBehind reads what the offers of these Services follow from.
func (s *sight) gatherOffersBehind(ctx context.Context, _ *client.Federation, e *plan.Evidence, r *plan.RoutesEvidence) error {
	info, err := s.own.Info(ctx)
	if err != nil {
		return err
	}
	names, err := dnsWorld(ctx, s.own, info, e.Clusters)
	if err != nil {
		return err
	}
	names.Objects, names.Explain, names.Offers = r.Objects, true, true
	names.Resolved = lookupHosts(ctx, servicednsplan.Records(names).Resolve, shortLookup)
	r.Names = names
	return nil
}

// gatherLoadBalancers reads how they have registered.
func gatherLoadBalancers(ctx context.Context, f *client.Federation, _ *plan.Evidence, r *plan.RoutesEvidence) (err error) {
	r.Balancers, err = registrations(ctx, f)
	return err
}

// gatherSecrets looks whether the Secrets for TLS exist. It does not read what is in them.
func gatherSecrets(ctx context.Context, f *client.Federation, e *plan.Evidence, r *plan.RoutesEvidence) error {
	for _, t := range r.Ingress.Spec.TLS {
		if t.SecretName == "" {
			continue
		}
		_, err := f.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(e.Object.GetNamespace()).Get(ctx, t.SecretName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			r.Missing = append(r.Missing, t.SecretName)
			continue
		}
		if err != nil {
			return fmt.Errorf("reading Secret %s: %w", t.SecretName, err)
		}
	}
	return nil
}
