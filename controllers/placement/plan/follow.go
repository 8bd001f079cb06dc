package plan

import (
	"slices"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// Lingers is how long what a workload refers to stays in a cluster that the workload has left: what still runs there,
// until enough is ready elsewhere, needs it.
const Lingers = 10 * time.Minute

// Follow returns, sorted, the clusters of workloads, for an object that they refer to: those they are in, those they
// go back to, and for a while those where the object is by its last placement. It also returns in what time there may
// be fewer; 0: never.
func Follow(last *v1beta1.Placement, workloads []*v1beta1.Placement, now time.Time) (clusters []string, again time.Duration) {
	all := map[string]int64{}
	for _, p := range workloads {
		for _, of := range []map[string]int64{p.Clusters, p.Overflow, p.Home} {
			for name, n := range of {
				all[name] = max(all[name], n)
			}
		}
		if len(p.History) > 0 {
			again = max(again, p.History[0].At.Add(Lingers).Sub(now))
		}
	}
	lingering := false
	if last != nil && again > 0 {
		for name := range last.Clusters {
			lingering = lingering || all[name] == 0
			all[name] = 1
		}
	}
	if !lingering {
		again = 0
	}
	out := sortedNames(withoutZeros(all))
	return slices.Clip(out), again
}
