package explain

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	"federation/controllers/explain/plan"
	propagationplan "federation/controllers/propagation/plan"
)

// ReadStatus reads the Clusters and, page by page, the objects of every kind.
func ReadStatus(ctx context.Context, f *client.Federation) (*plan.Status, error) {
	s := &plan.Status{}
	info, err := f.Info(ctx)
	if err == nil && info != nil {
		s.Name, s.DNSZone = info.Name, info.DNSZone
	}
	if s.DNSProviders, err = f.DNSProviders(ctx); err != nil {
		return nil, err
	}
	if s.Components, err = f.Components(ctx); err != nil {
		return nil, err
	}
	if s.LoadBalancers, err = LoadBalancers(ctx, f); err != nil {
		return nil, err
	}
	if s.Leader, err = readLeader(ctx, f); err != nil {
		return nil, err
	}
	clusters, err := f.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range clusters {
		s.Clusters = append(s.Clusters, plan.ClusterStatusOf(c))
	}
	for i := range v1beta1.FederatedKinds {
		k := &v1beta1.FederatedKinds[i]
		if err := countKind(ctx, f, s, k.Resource, k.Kind); err != nil {
			return nil, err
		}
	}
	if err := countCustom(ctx, f, s); err != nil {
		return nil, err
	}
	s.Summarize()
	return s, nil
}

// readLeader reads which process leads; nil where there is no election, or the user may not read its Lease.
func readLeader(ctx context.Context, f *client.Federation) (*plan.Leader, error) {
	lease, err := f.Kube.CoordinationV1().Leases(v1beta1.FederationNamespace).Get(ctx, v1beta1.LeaderLease, metav1.GetOptions{})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return plan.LeaderOf(lease, time.Now()), nil
}

// countKind reads the objects of a kind. A kind that the federation does not serve has none.
func countKind(ctx context.Context, f *client.Federation, s *plan.Status, r schema.GroupVersionResource, kind string) (err error) {
	k := plan.KindStatus{Kind: kind}
	if row := propagationplan.KindOf(r); row == nil || row.Status == nil {
		err = countMetadata(ctx, f, s, r, &k)
	} else {
		err = client.ListPages(ctx, f.Dynamic.Resource(r), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
			if isFederated(r, u.GetNamespace(), u.GetName()) {
				s.Add(&k, u, plan.ConditionOf(u, v1beta1.ConditionPropagated))
			}
			return nil
		})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if apierrors.IsForbidden(err) {
		s.NotCounted = append(s.NotCounted, kind)
		return nil
	}
	if err == nil && k.Objects > 0 {
		s.Kinds = append(s.Kinds, k)
	}
	return err
}

// isFederated reports whether an object is federated; of custom kinds all are.
func isFederated(r schema.GroupVersionResource, namespace, name string) bool {
	return v1beta1.FederatedKindOf(r.GroupResource()) == nil || v1beta1.Federated(r.GroupResource(), namespace, name, "")
}

// countMetadata counts objects of a kind without a status, by the finalizers that admission adds to federated ones. It
// does not read their content, which may be large or secret.
func countMetadata(ctx context.Context, f *client.Federation, s *plan.Status, r schema.GroupVersionResource, k *plan.KindStatus) error {
	return f.ListMetadata(ctx, r, func(item metav1.Object) {
		if isFederated(r, item.GetNamespace(), item.GetName()) && hasOurFinalizer(item) {
			noted := &unstructured.Unstructured{}
			noted.SetAnnotations(item.GetAnnotations())
			s.Add(k, item, plan.ConditionOf(noted, v1beta1.ConditionPropagated))
		}
	})
}

func hasOurFinalizer(o metav1.Object) bool {
	return strings.Contains(strings.Join(o.GetFinalizers(), " "), v1beta1.DeleteFromClustersFinalizer)
}

// countCustom counts the custom kinds that policies name.
func countCustom(ctx context.Context, f *client.Federation, s *plan.Status) error {
	policies, err := f.Policies(ctx, "")
	if apierrors.IsForbidden(err) {
		s.NotCounted = append(s.NotCounted, "custom kinds, which PlacementPolicies name")
		return nil
	}
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, p := range policies {
		for _, sel := range p.Spec.ResourceSelectors {
			gv, err := schema.ParseGroupVersion(sel.APIVersion)
			if err != nil || seen[gv.Group+"/"+sel.Kind] {
				continue
			}
			seen[gv.Group+"/"+sel.Kind] = true
			r, _, err := f.Resource(strings.TrimSuffix(sel.Kind+"."+gv.Group, "."))
			if err != nil || v1beta1.FederatedKindOf(r.GroupResource()) != nil {
				continue // the policy of a kind that is not served reports that
			}
			if err := countKind(ctx, f, s, r, sel.Kind); err != nil {
				return err
			}
		}
	}
	return nil
}
