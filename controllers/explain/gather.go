package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	"federation/apiserver/client"
	"federation/controllers/explain/plan"
	propagationplan "federation/controllers/propagation/plan"
)

// sight is who reads what of a federation. The user reads what it has for them; what decides about that one object, Clusters, the
// policies of its namespace and what the federation publishes of itself, and its copies are read as the federation, for users who may not.
type sight struct {
	user, own *client.Federation
	members   *client.Members
}

// gather reads what an explanation of an object needs, which the user has read.
func (s *sight) gather(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured) (e plan.Evidence, err error) {
	e.Resource, e.Object = resource, object
	if e.Clusters, err = s.own.Clusters(ctx); err != nil {
		return e, err
	}
	if e.Confined, err = s.mayNotListClusters(ctx); err != nil {
		return e, err
	}
	if e.Policies, err = s.own.Policies(ctx, object.GetNamespace()); err != nil {
		return e, err
	}
	if e.UID, err = s.own.UID(ctx); err != nil {
		return e, err
	}
	if err := errors.Join(gatherReferrers(ctx, s.user, &e), gatherAutoscalers(ctx, s.user, &e)); err != nil {
		return e, err
	}
	if err := s.askMembers(ctx, &e); err != nil {
		return e, err
	}
	if e.Across != nil {
		s.gatherOffers(ctx, &e)
	}
	if resource.GroupResource() == plan.Ingresses.GroupResource() {
		if e.Routes, err = s.gatherRoutes(ctx, &e); err != nil {
			return e, err
		}
	}
	e.Events = readEvents(ctx, s.user, cmp.Or(object.GetNamespace(), metav1.NamespaceDefault), fields.Set{"involvedObject.uid": string(object.GetUID())})
	e.Now = time.Now()
	return e, ctx.Err()
}

// mayNotListClusters asks for one of them, as the user.
func (s *sight) mayNotListClusters(ctx context.Context) (bool, error) {
	_, err := s.user.Metadata.Resource(v1beta1.ClustersResource).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsForbidden(err) {
		return true, nil
	}
	return false, err
}

var errNotReady = errors.New("the cluster is not ready")

// askMembers reads each cluster's copy and, of a Service, the slices that it has of the others. It is one step, so that a member that is silent is
// waited for once.
func (s *sight) askMembers(ctx context.Context, e *plan.Evidence) error {
	type both struct {
		copied plan.CopyAnswer
		sliced plan.SlicesAnswer
	}
	isService := e.Resource.GroupResource() == plan.Services.GroupResource()
	ctx, cancel := context.WithTimeout(ctx, s.members.Timeout)
	defer cancel()
	answers, err := client.AskEach(ctx, e.Clusters, func(c *v1beta1.Cluster) (b both) {
		if offline := c.Condition(v1beta1.ClusterOffline); offline != nil && offline.Status == corev1.ConditionTrue {
			return both{plan.CopyAnswer{Err: errNotReady}, plan.SlicesAnswer{Err: errNotReady}}
		}
		b.copied.Copy, b.copied.Err = s.members.Get(ctx, c.Name, e.Resource, e.Object.GetNamespace(), e.Object.GetName())
		if b.sliced.Err = b.copied.Err; isService && b.sliced.Err == nil { // without the Service's copies, the desired slices are unknown, too
			b.sliced = s.readSlices(ctx, e, c.Name)
		}
		return b
	})
	if isService {
		e.Across = &plan.AcrossEvidence{Slices: map[string]plan.SlicesAnswer{}}
	}
	e.Copies = map[string]plan.CopyAnswer{}
	for name, b := range answers {
		e.Copies[name] = b.copied
		if isService {
			e.Across.Slices[name] = b.sliced
		}
	}
	return err
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
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
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

// noSuchObject adds the existing objects to a "not found", as far as the user may list them.
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
	said := apierrors.NewNotFound(resource.GroupResource(), name)
	said.ErrStatus.Message = fmt.Sprintf("%s %q not found%s; there are: %s", resource.Resource, name, where, phrase.Some(names))
	return said
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
