package plan

import "federation/apiserver/apis/federation/v1beta1"

// Follow returns, sorted, the clusters of workloads, for an object that they refer to: those they are in, and those they go back to.
// In one that they leave, its copy stays until they have left: propagation sees to that.
func Follow(workloads []*v1beta1.Placement) []string {
	all := map[string]int64{}
	for _, p := range workloads {
		for _, of := range []map[string]int64{p.Clusters, p.Overflow, p.Home} {
			for name, n := range of {
				all[name] = max(all[name], n)
			}
		}
	}
	return sortedNames(withoutZeros(all))
}
