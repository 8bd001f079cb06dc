package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	"federation/apiserver/client"
	"federation/controllers/explain/plan"
	propagationplan "federation/controllers/propagation/plan"
)

// Gather reads what explain needs: the object, the Clusters, the policies, and each cluster's copy.
func Gather(ctx context.Context, f *client.Federation, word, name string, timeout time.Duration) (e plan.Evidence, err error) {
	resource, namespaced, err := f.Resource(word)
	if err != nil {
		return e, err
	}
	e.Resource = resource
	namespace := ""
	if namespaced {
		namespace = f.Namespace
	}
	if why := staysAtFederation(resource, namespace, name); why != "" {
		return e, errors.New(why)
	}
	if e.Object, err = f.Dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
		return e, noSuchObject(ctx, f, resource, namespace, name, err)
	}
	if of := e.Object.GetLabels()[v1beta1.RevisionOfLabel]; of != "" {
		return e, fmt.Errorf("%s %q stays at the federation: it is a revision of a %s, which is what goes to clusters", resource.Resource, name, of)
	}
	if e.Clusters, err = f.Clusters(ctx); err != nil {
		return e, err
	}
	if e.Policies, err = f.Policies(ctx, namespace); err != nil {
		return e, err
	}
	if e.UID, err = f.UID(ctx); err != nil {
		return e, err
	}
	if err := errors.Join(gatherReferrers(ctx, f, &e), gatherAutoscalers(ctx, f, &e)); err != nil {
		return e, err
	}
	m := client.NewMembers(f, timeout)
	e.Copies, err = client.AskEach(ctx, e.Clusters, func(c *v1beta1.Cluster) plan.CopyAnswer {
		u, err := m.Get(ctx, c.Name, resource, namespace, name)
		return plan.CopyAnswer{Copy: u, Err: err}
	})
	if err != nil {
		return e, err
	}
	if resource.GroupResource() == plan.Services.GroupResource() {
		if e.Across, err = gatherAcross(ctx, f, &e, m); err != nil {
			return e, err
		}
	}
	if resource.GroupResource() == plan.Ingresses.GroupResource() {
		if e.Routes, err = gatherRoutes(ctx, f, &e); err != nil {
			return e, err
		}
	}
	e.Now = time.Now()
	return e, ctx.Err()
}

// gatherReferrers reads what may take a Secret, a ServiceAccount or, if a policy does that, a ConfigMap along.
func gatherReferrers(ctx context.Context, f *client.Federation, e *plan.Evidence) error {
	takes := slices.ContainsFunc(e.Policies, func(p *v1beta1.PlacementPolicy) bool { return p.Spec.PropagateReferences })
	if !v1beta1.Confined(e.Resource.GroupResource()) && (e.Object.GetKind() != "ConfigMap" || !takes) {
		return nil
	}
	for _, r := range v1beta1.Referrers {
		if v1beta1.FederatedKindOf(r.Resource.GroupResource()) == nil {
			continue // pods are only in clusters
		}
		err := client.ListPages(ctx, f.Dynamic.Resource(r.Resource).Namespace(e.Object.GetNamespace()), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
			e.Referrers = append(e.Referrers, u)
			return nil
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// gatherAutoscalers reads the autoscalers of a workload, if the user may: the explanation works without them.
func gatherAutoscalers(ctx context.Context, f *client.Federation, e *plan.Evidence) error {
	if k := v1beta1.FederatedKindOf(e.Resource.GroupResource()); k == nil || k.Preferences == "" {
		return nil
	}
	err := client.ListPages(ctx, f.Dynamic.Resource(plan.AutoscalerKind.Resource).Namespace(e.Object.GetNamespace()), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", "kind")
		name, _, _ := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", "name")
		if kind == e.Object.GetKind() && name == e.Object.GetName() {
			e.Autoscalers = append(e.Autoscalers, u)
		}
		return nil
	})
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// noSuchObject adds the existing objects to a "not found".
func noSuchObject(ctx context.Context, f *client.Federation, resource schema.GroupVersionResource, namespace, name string, err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	page, listErr := f.Metadata.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: client.PageSize})
	if listErr != nil {
		return err
	}
	var names []string
	for _, o := range page.Items {
		names = append(names, o.Name)
	}
	where := ""
	if namespace != "" {
		where = " in namespace " + namespace
	}
	return fmt.Errorf("%s %q not found%s; there are: %s", resource.Resource, name, where, phrase.Some(names))
}

// staysAtFederation returns why an object is in no cluster, whatever a policy says; "" if it may be. Groups of custom kinds
// have a dot, and Kubernetes has no types in them.
func staysAtFederation(r schema.GroupVersionResource, namespace, name string) string {
	switch known := scheme.Scheme.IsGroupRegistered(r.Group) || r.Group == "apiregistration.k8s.io"; {
	case r.GroupResource() == propagationplan.CustomResourceDefinitions.Resource.GroupResource():
	case v1beta1.FederatedKindOf(r.GroupResource()) != nil:
		if !v1beta1.Federated(r.GroupResource(), namespace, name, "") {
			return fmt.Sprintf("%s %q stays at the federation: nothing of it, or of its namespace, goes to clusters", r.Resource, name)
		}
	case r.Group == "" && (r.Resource == "pods" || r.Resource == "nodes"):
		return fmt.Sprintf("%s are the clusters' own, and no other cluster gets them: kubectl describe %s %s tells of this one", r.Resource, strings.TrimSuffix(r.Resource, "s"), name)
	case known || !strings.Contains(r.Group, "."):
		return fmt.Sprintf("%s stay at the federation: it spreads %s, and custom kinds that a PlacementPolicy names", r.GroupResource(), client.SpreadKinds())
	}
	return ""
}
