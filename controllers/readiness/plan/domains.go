package plan

import (
	"cmp"
	"fmt"
	"slices"

	"federation/apiserver/apis/federation/v1beta1"
)

// Level is the granularity: each zone, or each region.
type Level string

// Levels, as in the flag.
const (
	Zone   Level = "Zone"
	Region Level = "Region"
)

// ParseLevels parses the levels of a flag; an empty list is allowed. The error names what is allowed.
func ParseLevels(words []string) (levels []Level, err error) {
	for _, word := range words {
		l := Level(word)
		if l != Zone && l != Region {
			return nil, fmt.Errorf("%q: must be Zone or Region, or both, or empty for neither", word)
		}
		if !slices.Contains(levels, l) {
			levels = append(levels, l)
		}
	}
	return levels, nil
}

// Domain is a zone or a region, with the clusters that are lost with it.
type Domain struct {
	Name     string // of its FailoverReadiness
	Spec     v1beta1.FailoverReadinessSpec
	Clusters []string // sorted
}

// Domains returns the zones and regions of the clusters, by name. A cluster with nodes in several zones is lost with
// its region only. A cluster without a region belongs to no domain.
func Domains(clusters []*v1beta1.Cluster, levels []Level) (all []Domain) {
	at := map[string]int{}
	add := func(spec v1beta1.FailoverReadinessSpec, cluster string) {
		name := v1beta1.ReadinessName(spec)
		i, known := at[name]
		if !known {
			i = len(all)
			at[name] = i
			all = append(all, Domain{Name: name, Spec: spec})
		}
		if all[i].Spec == spec { // different labels may give the same name
			all[i].Clusters = append(all[i].Clusters, cluster)
		}
	}
	for _, c := range sortedByName(clusters) {
		if c.Status.Region == "" {
			continue
		}
		if slices.Contains(levels, Zone) && len(c.Status.Zones) == 1 && c.Status.Zones[0] != "" {
			add(v1beta1.FailoverReadinessSpec{Zone: c.Status.Region + "/" + c.Status.Zones[0]}, c.Name)
		}
		if slices.Contains(levels, Region) {
			add(v1beta1.FailoverReadinessSpec{Region: c.Status.Region}, c.Name)
		}
	}
	slices.SortFunc(all, func(a, b Domain) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func sortedByName(clusters []*v1beta1.Cluster) []*v1beta1.Cluster {
	return slices.SortedFunc(slices.Values(clusters), func(a, b *v1beta1.Cluster) int { return cmp.Compare(a.Name, b.Name) })
}
