package explain

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	drainplan "federation/controllers/drain/plan"
)

// PlacedIn returns what is placed in a cluster, and not finished, the largest first. An older federation does not serve each
// kind.
func PlacedIn(ctx context.Context, f *client.Federation, cluster string) (all []drainplan.Object, err error) {
	for _, k := range v1beta1.FederatedKinds {
		if k.Preferences == "" {
			continue
		}
		add := func(item metav1.Object) {
			p := v1beta1.ParsePlacement(item.GetAnnotations()[v1beta1.PlacementAnnotation])
			if p != nil && p.Clusters[cluster] > 0 {
				all = append(all, drainplan.Object{Kind: k.Kind, Namespace: item.GetNamespace(), Name: item.GetName(), Placed: p.Clusters[cluster]})
			}
		}
		if k.Kind == "Job" { // whether it is finished is in its status
			err = client.ListPages(ctx, f.Dynamic.Resource(k.Resource), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
				if v1beta1.JobEnd(u) == "" {
					add(u)
				}
				return nil
			})
		} else {
			err = f.ListMetadata(ctx, k.Resource, add)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b drainplan.Object) int {
		return cmp.Or(cmp.Compare(b.Placed, a.Placed), cmp.Compare(a.String(), b.String()))
	})
	return all, nil
}
