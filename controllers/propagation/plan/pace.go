package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The law: during any move the sum of ready replicas never falls below what it was or what is asked for, whichever is
// less. The placement says where replicas should be. What is applied follows it at the pace of the law: growth at once,
// shrinking only as far as ready replicas elsewhere make up for it.

// Share is what a reachable cluster has of a divided object, and what it should have.
type Share struct {
	// Cluster is its name.
	Cluster string
	// Applied is the number in the copy's spec; 0 without a copy.
	Applied int64
	// Made is how many pods there are, ready or not.
	Made int64
	// Ready is how many of these count as ready and staying.
	Ready int64
	// Unready is how many are not ready. Some pods may be neither: they are about to go.
	Unready int64
	// Spare is how many of the unready can go without taking a ready one.
	Spare int64
	// Placed is the number by placement.
	Placed int64
	// Target is that number, or what an autoscaler has made of it.
	Target int64
	// Autoscaled: an autoscaler owns the number.
	Autoscaled bool
	// Unscaled: that autoscaler is about to leave the cluster. The number will soon be the placement's.
	Unscaled bool
	// Most is the maximum of an autoscaler of the federation there; 0 without one.
	Most int64
}

// AskedFor returns how many replicas are requested in total. Autoscalers request no more than they want, whatever the
// placement had in mind. What they want in clusters without a share is unknown, so the placement's number counts there.
func (s Source) AskedFor(shares []Share) int64 {
	autoscaled, wanted := false, s.placedTotal()
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

// Pace returns the number that shares[own] may have applied now: its target, or more where the law holds it back. asked is
// the number requested in total. Unreachable clusters are not among the shares.
//
// Two clusters that shrink at once must not both count on the same ready replicas: a caller that acts on the result puts it
// into the share (Ready is at most that) before it asks for the next one.
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
	if coming == 0 { // nothing to wait for: which of its own pods a member deletes first is no move between clusters
		me.Spare = me.Unready
	}
	allowance := max(0, ready-asked)
	starts := max(0, min(missing, asked-ready, me.Made-me.Ready)) // not even created elsewhere, as with a quota: they may get ready here
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

// HeldBack returns what a cluster with more than its share waits for.
func HeldBack(s Share, now, ready, asked int64) string {
	return fmt.Sprintf("shrinks from %d to %d as others get ready: has %d, %d of %d are ready in all", s.Applied, s.Target, now, ready, asked)
}

// Shrinks reports whether a copy has more than its final number, for a kind under the law.
func (s Source) Shrinks(t Target) (goal int64, shrinks bool) {
	if !s.Kind.Paced || t.Have == nil || s.Object == nil || s.leaving() || Outlived(SourceOf(s.Object), t.Have) {
		return 0, false
	}
	presence, number, _ := s.Wanted(t)
	switch {
	case number != nil:
		goal = *number
	case presence != Absent:
		return 0, false // it is undecided, or a member's autoscaler owns it
	}
	return goal, Applied(s, t.Have) > goal
}

// Applied returns the number in the spec of a copy of a divided kind: 0 without a copy, 1 by default.
func Applied(s Source, copy *unstructured.Unstructured) int64 {
	if copy == nil || copy.GetDeletionTimestamp() != nil {
		return 0
	}
	n, ok, _ := unstructured.NestedInt64(copy.Object, "spec", s.dividedField())
	if !ok {
		return 1
	}
	return n
}

// ShareOf reads a cluster's share from its copy. A copy that is terminating, or of an earlier object of the name, does
// not count.
func ShareOf(s Source, t Target) Share {
	placed, copy := s.Share(t.Cluster.Name), t.Have
	share := Share{Cluster: t.Cluster.Name, Placed: placed, Target: placed}
	if copy == nil || copy.GetDeletionTimestamp() != nil || Outlived(SourceOf(s.Object), copy) {
		return share
	}
	share.Applied = Applied(s, copy)
	if share.Target > 0 && s.hasAutoscaler(t) {
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
	if t.HeartbeatsStale { // it is unknown which are ready: none counts as ready, and none as spare
		share.Ready, share.Unready, share.Spare = 0, 0, 0
	}
	return share
}

// Settled reports whether a member has carried out the number in a copy's spec, by its status.
func Settled(s Source, copy *unstructured.Unstructured) bool {
	return statusOf(copy, "observedGeneration") >= copy.GetGeneration() && statusOf(copy, "replicas") <= Applied(s, copy)
}

// deploymentSpare returns the spare of a Deployment: while it rolls, its old and new ReplicaSet shrink in proportion,
// ready or not, so only pods that were never created are spare.
func deploymentSpare(copy *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(copy.Object, "spec", "replicas")
	if statusOf(copy, "observedGeneration") >= copy.GetGeneration() && statusOf(copy, "updatedReplicas") == statusOf(copy, "replicas") {
		return n - statusOf(copy, "readyReplicas")
	}
	return n - statusOf(copy, "replicas")
}

// statefulSetSpare returns the spare of a StatefulSet: pods go from the highest ordinal down. In order, a ready one
// does not go while another is not ready; in parallel it does.
func statefulSetSpare(copy *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(copy.Object, "spec", "replicas")
	if policy, _, _ := unstructured.NestedString(copy.Object, "spec", "podManagementPolicy"); policy == "Parallel" {
		return n - statusOf(copy, "replicas")
	}
	return n - statusOf(copy, "readyReplicas")
}

// statusOf returns a number in the status of a copy, or 0.
func statusOf(copy *unstructured.Unstructured, field string) int64 {
	n, _, _ := unstructured.NestedInt64(copy.Object, "status", field)
	return max(0, n) // a cluster may report anything
}

// replicasHealthy returns a test that all replicas of a copy are there by the fields below status, for its generation.
func replicasHealthy(fields ...string) func(*unstructured.Unstructured) bool {
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

var deploymentHealthy = replicasHealthy("replicas", "updatedReplicas", "availableReplicas")

func daemonSetHealthy(copy *unstructured.Unstructured) bool {
	want := statusOf(copy, "desiredNumberScheduled")
	return statusOf(copy, "observedGeneration") >= copy.GetGeneration() &&
		statusOf(copy, "updatedNumberScheduled") == want && statusOf(copy, "numberAvailable") == want
}
