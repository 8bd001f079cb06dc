package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// Snapshot is all that decides what to do with one object in one member.
type Snapshot struct {
	// Source is the federated object.
	Source Source
	// Target is the member, with the observed copy.
	Target Target
	// ClusterUnknown: the member's Cluster is not in the cache, yet or any more.
	ClusterUnknown bool
	// Settled is what the member changed of the last apply, see Settle.
	Settled string
	// Namespace is the state of the namespace of an object without a copy in the member.
	Namespace NamespaceState
	// Paused says why a copy must not be created again for now; "" if it may.
	Paused string
	// Members are the engaged members, and Own is the Target's among them. They are needed if DependsOnMembers.
	Members []Standing
	Own     int
	// AutoscalersSynced: the object's autoscalers have been synced in all Members. Until then it is unknown which of
	// these refuse one, and so whether fewer replicas are requested than the object says.
	AutoscalersSynced bool
}

// NamespaceState is what prevents an object's creation in its namespace.
type NamespaceState int

const (
	// NamespaceReady: nothing does.
	NamespaceReady NamespaceState = iota
	// NamespaceTerminating: it is being deleted at the federation, and the object will be.
	NamespaceTerminating
	// NamespaceMissing: the member should have it, and does not yet.
	NamespaceMissing
)

// Standing is one member's state of an object that is divided among several.
type Standing struct {
	Target
	// ClusterUnknown and Unlisted: its Cluster, or its copies of the kind, are not known yet.
	ClusterUnknown, Unlisted bool
	// AutoscalerComes: an autoscaler of the federation should scale the object there.
	AutoscalerComes bool
	// FloorBefore is the highest that Snapshot.Floors returned for the member a moment ago: what has left since still
	// brings its load.
	FloorBefore int64
	// MostReady is the maximum of ready replicas that may count, because a write of ours is about to take the others;
	// nil: as the copy says.
	MostReady *int64
	// Template is the hash of the pod template of a pending write there, or "".
	Template string
}

// Step is the next operation on one object in one member, and why.
type Step struct {
	Verb Verb
	// Want is what the member should have now.
	Want Desired
	// WaitsFor says what keeps the member from its final state, or "".
	WaitsFor string
	// Replicas is the number to which the step shrinks the copy; nil if it does not. Other steps must not count on more
	// ready ones there.
	Replicas *int64
	// Template is the hash of the pod template that the step rolls out in its turn, or "".
	Template string
}

// DependsOnMembers reports whether the step in one member depends on the state of all: its copy shrinks, or changes
// roll out in turns. Then an object's steps are decided one at a time.
func (s Snapshot) DependsOnMembers() bool {
	_, shrinks := s.Source.Shrinks(s.Target)
	return !s.ClusterUnknown && (shrinks || s.Source.Rollout() != nil)
}

// Next decides the one step that takes a member closer to what it should have of an object. It makes all decisions of
// propagation: what the copy looks like (Desire), how far it may shrink (Pace), whose turn in a rollout it is
// (MayUpdate), the operation (Operate), and what a create waits for.
func Next(s Snapshot) Step {
	if s.ClusterUnknown && s.Source.Object != nil {
		return s.setVerb(Step{Want: Desired{Reason: "the Cluster has not been seen yet"}})
	}
	step, t := Step{WaitsFor: s.Target.Needed}, s.Target
	if goal, shrinks := s.Source.Shrinks(t); shrinks {
		step.Replicas, step.WaitsFor = s.allowedReplicas(goal)
		if *step.Replicas != goal {
			t.Number = step.Replicas
		}
	}
	step.Want = Desire(s.Source, t)
	if policy := s.Source.Rollout(); policy != nil && t.Have != nil && step.Want.Object != nil && !Updated(step.Want, t.Have) {
		if may, why := MayUpdate(s.rolloutTurns(step.Want), t.Cluster.Name, policy); may {
			step.Template = templateHash(step.Want)
		} else {
			t.Template, _, _ = unstructured.NestedMap(t.Have.Object, "spec", "template")
			step.Want, step.WaitsFor = Desire(s.Source, t), joinSentences(why, step.WaitsFor)
		}
	}
	return s.setVerb(step)
}

// setVerb sets the verb of a step.
func (s Snapshot) setVerb(step Step) Step {
	step.Verb = Operate(step.Want, s.Target.Have, s.Settled)
	if step.Verb != Create {
		return step
	}
	wait := ""
	switch {
	case !s.Source.hasFinalizer(v1beta1.DeleteFromClustersFinalizer): // added by admission, or by the report for older objects
		wait = "waits for its finalizers"
	case s.Namespace == NamespaceTerminating:
		wait = "its namespace is being deleted"
	case s.Namespace == NamespaceMissing:
		wait = "waits for its namespace" // an earlier try would be a useless write, and thousands of them would delay the namespace
	case s.Paused != "":
		wait = s.Paused
	default:
		return step
	}
	step.Verb, step.Want = Wait, Desired{Reason: wait}
	return step
}

// allowedReplicas returns the number that a copy which should shrink to goal may have now, by the law, and what it waits for if
// that is more.
func (s Snapshot) allowedReplicas(goal int64) (*int64, string) {
	shares := s.shares()
	own := &shares[s.Own]
	own.Target = goal
	for i, floor := range s.Source.floors(shares) {
		before := min(s.Members[i].FloorBefore, shares[i].Most, shares[i].Placed)
		shares[i].Target = max(shares[i].Target, floor, before)
	}
	asked := s.Source.Asked()
	if s.AutoscalersSynced {
		asked = s.Source.AskedFor(shares)
	}
	now := Pace(shares, s.Own, asked)
	if ScaledByMember(s.Target.Have) && now > goal {
		now = own.Applied // steps would fight its autoscaler: all at once, when it may
	}
	if now == goal {
		return &now, ""
	}
	return &now, HeldBack(*own, now, Ready(shares), asked)
}

// Floors returns, for each of Members, the minimum that an autoscaler of the object keeps there while replicas leave
// others.
func (s Snapshot) Floors() []int64 { return s.Source.floors(s.shares()) }

func (s Snapshot) shares() []Share {
	shares := make([]Share, 0, len(s.Members))
	for _, one := range s.Members {
		shares = append(shares, one.share(s.Source))
	}
	return shares
}

// share returns what the member has of an object. Replicas that our own shrinking is about to take no longer count.
func (m Standing) share(s Source) Share {
	share := ShareOf(s, m.Target)
	if m.MostReady != nil {
		share.Ready = min(share.Ready, *m.MostReady)
	}
	share.Unscaled = m.Scaled && (!m.AutoscalerComes || s.autoscalersLeave())
	return share
}

// rolloutTurns returns the members' states in a rollout; want is what the current one would get.
func (s Snapshot) rolloutTurns(want Desired) (turns []Turn) {
	for _, m := range s.Members {
		if presence, _, _ := s.Source.Wanted(m.Target); m.ClusterUnknown || m.Unlisted || presence != Present {
			continue
		}
		theirs := want
		if len(s.Source.Policy.Spec.Overrides) > 0 { // else all get the same template
			theirs = Desire(s.Source, m.Target)
		}
		turn := TurnOf(s.Source.Kind, theirs, m.Target)
		if m.Template != "" && theirs.Object != nil && m.Template == templateHash(theirs) {
			turn.Updated, turn.Healthy = true, false
		}
		turns = append(turns, turn)
	}
	return turns
}

func templateHash(want Desired) string { return want.Object.GetAnnotations()[TemplateAnnotation] }

func joinSentences(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
