package plan

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// TryOverrides applies the overrides of a policy to an object, for each of the clusters that they are for. The error names the
// first by name of those for which they do not work.
func TryOverrides(policy *v1beta1.PlacementPolicy, object *unstructured.Unstructured, clusters []*v1beta1.Cluster) error {
	i := slices.IndexFunc(Kinds, func(k Kind) bool {
		return k.Kind == object.GetKind() && k.Resource.GroupVersion().String() == object.GetAPIVersion()
	})
	if i < 0 {
		return nil
	}
	s := Source{Kind: &Kinds[i], Object: object, Policy: policy}
	byName := slices.SortedFunc(slices.Values(clusters), func(a, b *v1beta1.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range byName {
		if err := s.Try(Target{Cluster: c}); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
	}
	return nil
}
