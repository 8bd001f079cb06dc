package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The law: during any move the sum of ready replicas never falls below what it was or what is asked for,
// whichever is less. The placement says where replicas are to be; what is applied follows it at the pace of the
// law: growth at once, shrinking only as far as what is ready elsewhere makes up for it.

// Share is what one cluster that can be reached holds of a divided object, and what it is to hold.
type Share struct {
	// Cluster is its name.
	Cluster string
	// Applied is the number in the copy's spec; 0 where there is no copy.
	Applied int64
	// Made is how many pods there are, ready or not.
	Made int64
	// Ready is how many of these can be counted on to be ready, and to stay.
	Ready int64
	// Unready is how many are not ready. Some may be neither: they are about to go.
	Unready int64
	// Spare is how many of the unready can go without any that is ready going with them.
	Spare int64
	// Placed is the number by placement.
	Placed int64
	// Target is that, or what an autoscaler has made of it.
	Target int64
	// Autoscaled: the number is an autoscaler's.
	Autoscaled bool
	// Unscaled: that autoscaler is about to go from the cluster. The number will be the placement's in a moment.
	Unscaled bool
	// Most is how many an autoscaler of the federation makes there at most; 0: there is none.
	Most int64
}

// AskedFor is how many replicas are asked for in all. What autoscalers ask for is no more than they want, whatever the
// placement had in mind; but of clusters that are not among the shares nobody knows what they want, and what is placed
// there counts.
func (s Source) AskedFor(shares []Share) int64 {
	autoscaled, wanted := false, s.placed()
	for _, share := range shares {
		if !share.Unscaled {
			autoscaled = autoscaled || share.Autoscaled
			wanted += share.Target - share.Placed
		}
	}
	if autoscaled {
		return min(s.Asked(), wanted)
	}
	return s.Asked()
}

// Pace returns the number that shares[own] may have applied now: its target, or more where the law holds it
// back. asked is the number asked for in all. Clusters that cannot be reached are not among the shares.
//
// Two that shrink at once must not both count on the same ready replicas: a caller that acts on the answer puts
// it into the share (Ready is at most that) before it asks for the next one.
func Pace(shares []Share, own int, asked int64) int64 {
	me := shares[own]
	if me.Target >= me.Applied {
		return me.Target
	}
	var ready, coming, missing int64
	for i, s := range shares {
		ready += s.Ready
		if i != own {
			coming += max(0, s.Target-s.Ready)
			missing += max(0, s.Target-s.Made)
		}
	}
	if coming == 0 { // nothing to wait for: which of its own pods a member takes first is no move between clusters
		me.Spare = me.Unready
	}
	allowance := max(0, ready-asked)
	starts := max(0, min(missing, asked-ready, me.Made-me.Ready)) // not even made elsewhere, as for a quota: they may get ready here
	if allowance >= me.Applied-me.Unready {
		return max(me.Target, min(me.Applied, starts))
	}
	return max(me.Target, me.Applied-max(0, me.Spare-starts)-allowance)
}

// Ready sums up how many replicas are ready.
func Ready(shares []Share) (ready int64) {
	for _, s := range shares {
		ready += s.Ready
	}
	return ready
}

// HeldBack says for people what a cluster waits for that has more than its share.
func HeldBack(s Share, now, ready, asked int64) string {
	return fmt.Sprintf("shrinks from %d to %d as others get ready: has %d, %d of %d are ready in all", s.Applied, s.Target, now, ready, asked)
}

// Shrinks reports whether a copy has more than it is to have in the end, of a kind of which the law speaks.
func (s Source) Shrinks(t Target) (goal int64, shrinks bool) {
	if !s.Kind.Paced || t.Have == nil || s.Object == nil || s.leaving() || Outlived(SourceOf(s.Object), t.Have) {
		return 0, false
	}
	presence, number, _ := s.Wanted(t)
	switch {
	case number != nil:
		goal = *number
	case presence != Absent:
		return 0, false // it is undecided, or a member's autoscaler has it
	}
	return goal, Applied(s, t.Have) > goal
}

// Applied is the number in the spec of a copy of a divided kind: 0 where there is no copy, 1 where it does not say.
func Applied(s Source, copy *unstructured.Unstructured) int64 {
	if copy == nil || copy.GetDeletionTimestamp() != nil {
		return 0
	}
	n, ok, _ := unstructured.NestedInt64(copy.Object, "spec", s.divided())
	if !ok {
		return 1
	}
	return n
}

// ShareOf reads a cluster's share from its copy. A copy that is on its way out, or is of an earlier object of
// the name, counts for nothing.
func ShareOf(s Source, t Target) Share {
	placed, copy := s.Share(t.Cluster.Name), t.Have
	share := Share{Cluster: t.Cluster.Name, Placed: placed, Target: placed}
	if copy == nil || copy.GetDeletionTimestamp() != nil || Outlived(SourceOf(s.Object), copy) {
		return share
	}
	share.Applied = Applied(s, copy)
	if share.Target > 0 && s.autoscales(t) {
		share.Target, share.Autoscaled = share.Applied, true
		if t.Scaled {
			share.Most = s.Most(t)
		}
	}
	share.Made, share.Ready = statusOf(copy, "replicas"), min(share.Applied, statusOf(copy, "readyReplicas"))
	share.Unready = share.Applied - share.Ready
	share.Spare = share.Unready
	if s.Kind.Spare != nil {
		share.Spare = min(share.Spare, max(0, s.Kind.Spare(copy)))
	}
	if t.HeartbeatsStale { // nobody knows which are ready: none can be counted on, and none is known to be spare
		share.Ready, share.Unready, share.Spare = 0, 0, 0
	}
	return share
}

// Settled reports whether a member has carried out the number in a copy's spec, as its status says.
func Settled(s Source, copy *unstructured.Unstructured) bool {
	return statusOf(copy, "observedGeneration") >= copy.GetGeneration() && statusOf(copy, "replicas") <= Applied(s, copy)
}

// deploymentSpare: while a Deployment rolls, it takes from its old and its new ReplicaSet in proportion, ready or
// not; then only what was never made is spare.
func deploymentSpare(copy *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(copy.Object, "spec", "replicas")
	if statusOf(copy, "observedGeneration") >= copy.GetGeneration() && statusOf(copy, "updatedReplicas") == statusOf(copy, "replicas") {
		return n - statusOf(copy, "readyReplicas")
	}
	return n - statusOf(copy, "replicas")
}

// statefulSetSpare: pods go from the highest ordinal down. In order, a ready one does not go while another is
// not ready; in parallel it does.
func statefulSetSpare(copy *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(copy.Object, "spec", "replicas")
	if policy, _, _ := unstructured.NestedString(copy.Object, "spec", "podManagementPolicy"); policy == "Parallel" {
		return n - statusOf(copy, "replicas")
	}
	return n - statusOf(copy, "readyReplicas")
}

// statusOf is a number in the status of a copy; 0 where there is none.
func statusOf(copy *unstructured.Unstructured, field string) int64 {
	n, _, _ := unstructured.NestedInt64(copy.Object, "status", field)
	return max(0, n) // a cluster may say anything
}

// healthy makes the test that all replicas of a copy are there as the fields below status say, as of its generation.
func healthy(fields ...string) func(*unstructured.Unstructured) bool {
	return func(copy *unstructured.Unstructured) bool {
		want, ok, _ := unstructured.NestedInt64(copy.Object, "spec", "replicas")
		if !ok {
			want = 1
		}
		for _, f := range fields {
			if statusOf(copy, f) != want {
				return false
			}
		}
		return statusOf(copy, "observedGeneration") >= copy.GetGeneration()
	}
}

var deploymentHealthy = healthy("replicas", "updatedReplicas", "availableReplicas")

func daemonSetHealthy(copy *unstructured.Unstructured) bool {
	want := statusOf(copy, "desiredNumberScheduled")
	return statusOf(copy, "observedGeneration") >= copy.GetGeneration() &&
		statusOf(copy, "updatedNumberScheduled") == want && statusOf(copy, "numberAvailable") == want
}
