package plan

import (
	"slices"

	"federation/apiserver/apis/federation/v1beta1"
)

// confine leaves in an explanation what the object's own placement and copies tell: somebody who may not list Clusters learns neither which others
// there are nor why one of them does not answer, and nothing of an object in a member that is not the federation's.
func confine(x *v1beta1.PlacementReviewStatus) {
	known := map[string]bool{}
	for _, d := range x.Decisions {
		for _, c := range d.Changes {
			known[c.Cluster] = true
		}
	}
	for i := range x.Clusters {
		c := &x.Clusters[i]
		switch c.WaitReason {
		case v1beta1.WaitsForCluster:
			c.WaitsFor = "cluster is not ready"
		case v1beta1.WaitsForAnswer:
			c.WaitsFor = "the cluster to show it: it gives no answer, or refuses it"
		}
		if c.Copy == v1beta1.CopyConflict {
			c.Current, c.Ready, c.Generation, c.ObservedGeneration, c.Hash = nil, 0, 0, 0, ""
		}
		known[c.Name] = known[c.Name] || c.Desired > 0 || c.Overflow > 0 || c.Home > 0 || c.Current != nil
	}
	all := len(x.Clusters)
	x.Clusters = slices.DeleteFunc(x.Clusters, func(c v1beta1.ClusterExplanation) bool { return !known[c.Name] })
	if len(x.Clusters) < all {
		x.Notes = append(x.Notes, "clusters that have nothing of it are not shown, as you may not list clusters")
	}
	if x.CrossCluster != nil {
		confineSlices(x.CrossCluster, known)
	}
	if x.Routes != nil {
		for _, p := range x.Routes.Pools {
			for i := range p.From {
				p.From[i].Targets = slices.DeleteFunc(p.From[i].Targets, func(t v1beta1.TargetExplanation) bool { return t.Address == "" && !known[t.Cluster] })
			}
		}
	}
}

// confineSlices leaves those of the known clusters.
func confineSlices(x *v1beta1.CrossClusterExplanation, known map[string]bool) {
	x.Slices = slices.DeleteFunc(x.Slices, func(s v1beta1.SliceExplanation) bool { return !known[s.Cluster] })
	x.Untold = slices.DeleteFunc(x.Untold, func(u v1beta1.UntoldCluster) bool { return u.Cluster != "" && !known[u.Cluster] })
	for i := range x.Slices {
		if s := &x.Slices[i]; s.State == v1beta1.CopyUnreadable {
			s.Why = "it gives no answer, or refuses it"
		}
	}
}
