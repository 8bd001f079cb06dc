package scheduler

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler/apportion"
)

// Impossible returns why a policy's objects cannot be placed on the existing clusters: a condition reason, and a
// message that names the field. Both are empty if they can, and while no cluster has joined.
func Impossible(p *v1beta1.PlacementPolicy, clusters []*v1beta1.Cluster) (reason, message string) {
	selected := slices.DeleteFunc(slices.Clone(clusters), func(c *v1beta1.Cluster) bool {
		return !p.Spec.Clusters.Matches(c) || c.RefusesNamespace(p.Namespace) != ""
	})
	switch {
	case v1beta1.OwnNamespace(p.Namespace):
		return "NamespaceNotFederated", "metadata.namespace: nothing in " + p.Namespace + " goes to clusters"
	case len(clusters) == 0:
		return "", ""
	case len(selected) == 0 && slices.ContainsFunc(clusters, p.Spec.Clusters.Matches):
		return "NoClusterSelected", "spec.clusters: no cluster that is selected is for namespace " + p.Namespace + ", by its spec.allowedNamespaces"
	case len(selected) == 0:
		return "NoClusterSelected", "spec.clusters: no cluster is selected"
	case dividesReplicas(p) && !slices.ContainsFunc(selected, func(c *v1beta1.Cluster) bool {
		of, _ := p.Spec.ReplicaPreferences.ForCluster(c.Name)
		return of.Weight > 0 || of.MinReplicas > 0
	}):
		return "NoClusterSelected", "spec.replicaPreferences.clusters: none of the selected clusters gets replicas"
	}
	for i, c := range p.Spec.SpreadConstraints {
		groups := map[string]bool{}
		for _, cluster := range selected {
			groups[apportion.GroupOf(cluster, c.SpreadBy)] = true
		}
		if int(c.MinGroups) > len(groups) {
			return "SpreadConstraintsUnsatisfiable", fmt.Sprintf("spec.spreadConstraints[%d].minGroups: %d %ss are asked for, and the selected clusters are in %d",
				i, c.MinGroups, strings.ToLower(string(c.SpreadBy)), len(groups))
		}
	}
	return "", ""
}

// dividesReplicas reports whether a policy divides replicas, and names a kind that is or may be divided.
func dividesReplicas(p *v1beta1.PlacementPolicy) bool {
	return p.Spec.ReplicaPreferences != nil && slices.ContainsFunc(p.Spec.ResourceSelectors, func(r v1beta1.ResourceSelector) bool {
		return Preferences(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()) != "" || !builtIn(&Object{APIVersion: r.APIVersion, Kind: r.Kind})
	})
}
