package v1beta1

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxUnknown bounds how many names are listed.
const maxUnknown = 10

// UnknownClusters returns a text for each name that no cluster has, with its field; "*" stands for all.
func UnknownClusters[V any](named map[string]V, path *field.Path, clusters []*Cluster) []string {
	return knownOf(clusters).keys(slices.Sorted(maps.Keys(named)), path).listed()
}

// Unknown returns a text for each name in a policy that no cluster has, or is in, with its field.
func (s *PlacementPolicySpec) Unknown(clusters []*Cluster) []string {
	spec, known := field.NewPath("spec"), knownOf(clusters)
	known.affinity(s.Clusters, spec.Child("clusters"))
	if s.ReplicaPreferences != nil {
		known.keys(slices.Sorted(maps.Keys(s.ReplicaPreferences.Clusters)), spec.Child("replicaPreferences", "clusters"))
	}
	if s.DNS != nil {
		known.keys(slices.Sorted(maps.Keys(s.DNS.Clusters)), spec.Child("dns", "clusters"))
	}
	if s.Rollout != nil {
		known.items(s.Rollout.Order, known.clusters, spec.Child("rollout", "order"), "no cluster %q has joined")
	}
	for i := range s.Overrides {
		known.affinity(s.Overrides[i].Clusters, spec.Child("overrides").Index(i).Child("clusters"))
	}
	return known.listed()
}

// known are the names that clusters have and are in; unknown what was not among them.
// +k8s:openapi-gen=false
// +k8s:deepcopy-gen=false
type known struct {
	clusters, zones, regions map[string]bool
	unknown                  []string
}

func knownOf(clusters []*Cluster) *known {
	k := &known{clusters: map[string]bool{}, zones: map[string]bool{}, regions: map[string]bool{}}
	for _, c := range clusters {
		k.clusters[c.Name], k.regions[c.Status.Region] = true, true
		for _, zone := range c.Status.Zones {
			k.zones[zone] = true
		}
	}
	return k
}

func (k *known) affinity(a *ClusterAffinity, path *field.Path) {
	if a == nil {
		return
	}
	k.items(a.Names, k.clusters, path.Child("names"), "no cluster %q has joined")
	k.items(a.Zones, k.zones, path.Child("zones"), "no cluster is in zone %q")
	k.items(a.Regions, k.regions, path.Child("regions"), "no cluster is in region %q")
}

func (k *known) items(names []string, among map[string]bool, path *field.Path, says string) {
	for i, name := range names {
		if !among[name] {
			k.unknown = append(k.unknown, path.Index(i).String()+": "+fmt.Sprintf(says, name))
		}
	}
}

func (k *known) keys(names []string, path *field.Path) *known {
	for _, name := range names {
		if name != AnyCluster && !k.clusters[name] {
			k.unknown = append(k.unknown, fmt.Sprintf("%s: no cluster %q has joined", path.Key(name), name))
		}
	}
	return k
}

func (k *known) listed() []string {
	if more := len(k.unknown) - maxUnknown; more > 0 {
		return append(k.unknown[:maxUnknown:maxUnknown], fmt.Sprintf("and %d more", more))
	}
	return k.unknown
}
