package main

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	propagation "federation/controllers/propagation/plan"
)

// tryOverrides applies the overrides of a policy to an object as propagation would, for each of the clusters that they are for. The error names the
// first by name of those for which they do not work.
func (p *placer) tryOverrides(policy *v1beta1.PlacementPolicy, object *unstructured.Unstructured) error {
	i := slices.IndexFunc(propagation.Kinds, func(k propagation.Kind) bool {
		return k.Kind == object.GetKind() && k.Resource.GroupVersion().String() == object.GetAPIVersion()
	})
	if i < 0 {
		return nil
	}
	s := propagation.Source{Kind: &propagation.Kinds[i], Object: object, Policy: policy}
	clusters := p.known()
	slices.SortFunc(clusters, func(a, b *v1beta1.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range clusters {
		if err := s.Try(propagation.Target{Cluster: c}); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
	}
	return nil
}
