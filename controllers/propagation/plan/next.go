package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// Snapshot is all that decides what is done with one object in one member.
type Snapshot struct {
	// Source is the object as the federation has it.
	Source Source
	// Target is the member, with the copy that was observed there.
	Target Target
	// ClusterUnknown: the Cluster of the member is not in the cache yet, or not any more.
	ClusterUnknown bool
	// Settled is what the member made of the last application, see Settle.
	Settled string
	// Namespace is how the namespace of an object stands of which the member has no copy yet.
	Namespace NamespaceState
	// Paused says why a copy is not to be created again for now; "": it may.
	Paused string
	// Members are those that are engaged, and Own is the one of the Target among them. They are needed where DependsOnMembers.
	Members []Standing
	Own     int
	// AutoscalersSynced: the autoscalers of the object have been synced in all Members. Until then nobody knows which of these refuse one,
	// and with it whether less is asked for than the object says.
	AutoscalersSynced bool
}

// NamespaceState is what of the namespace of an object keeps it from being created.
type NamespaceState int

const (
	// NamespaceReady: nothing does.
	NamespaceReady NamespaceState = iota
	// NamespaceTerminating: it is being deleted at the federation, and so will be the object.
	NamespaceTerminating
	// NamespaceMissing: it is to come to the member, and is not there yet.
	NamespaceMissing
)

// Standing is how one member stands with an object that is shared out among several.
type Standing struct {
	Target
	// ClusterUnknown and Unlisted: its Cluster, or its copies of the kind, are not known yet.
	ClusterUnknown, Unlisted bool
	// AutoscalerComes: an autoscaler of the federation is to scale the object there.
	AutoscalerComes bool
	// MostReady is the number of ready replicas that can be counted on at most, since a write of ours is about to take the
	// others; nil: the copy says it.
	MostReady *int64
	// Template is the hash of the pod template that is about to be written there; "": none is.
	Template string
}

// Step is what is done next with one object in one member, and why.
type Step struct {
	Verb Verb
	// Want is what the member is to have now.
	Want Desired
	// WaitsFor says what keeps the member from what it is to have in the end; "": nothing.
	WaitsFor string
	// Replicas is the number to which the step shrinks the copy, as far as it does; nil: it does not. Nobody else is to count on more ready
	// ones there.
	Replicas *int64
	// Template is the hash of the pod template that the step rolls out in its turn; "": none.
	Template string
}

// DependsOnMembers reports whether what is done in one member depends on how all of them stand: its copy shrinks, or changes roll
// out in turns. Then steps of one object are decided one at a time.
func (s Snapshot) DependsOnMembers() bool {
	_, shrinks := s.Source.Shrinks(s.Target)
	return !s.ClusterUnknown && (shrinks || s.Source.Rollout() != nil)
}

// Next decides the one step that brings a member nearer to what it is to have of an object. It makes all decisions of
// propagation: what the copy looks like (Desire), how far it may shrink (Pace), whose turn in a rollout it is (MayUpdate), what
// is done about it (Operate), and what a create waits for.
func Next(s Snapshot) Step {
	if s.ClusterUnknown && s.Source.Object != nil {
		return s.operate(Step{Want: Desired{Reason: "the Cluster has not been seen yet"}})
	}
	step, t := Step{WaitsFor: s.Target.Needed}, s.Target
	if goal, shrinks := s.Source.Shrinks(t); shrinks {
		step.Replicas, step.WaitsFor = s.pace(goal)
		if *step.Replicas != goal {
			t.Number = step.Replicas
		}
	}
	step.Want = Desire(s.Source, t)
	if policy := s.Source.Rollout(); policy != nil && t.Have != nil && step.Want.Object != nil && !Updated(step.Want, t.Have) {
		if may, why := MayUpdate(s.turns(step.Want), t.Cluster.Name, policy); may {
			step.Template = templateHash(step.Want)
		} else {
			t.Template, _, _ = unstructured.NestedMap(t.Have.Object, "spec", "template")
			step.Want, step.WaitsFor = Desire(s.Source, t), join(why, step.WaitsFor)
		}
	}
	return s.operate(step)
}

// operate gives a step its verb.
func (s Snapshot) operate(step Step) Step {
	step.Verb = Operate(step.Want, s.Target.Have, s.Settled)
	if step.Verb != Create {
		return step
	}
	wait := ""
	switch {
	case !s.Source.hasFinalizer(v1beta1.DeleteFromClustersFinalizer): // put on by admission, or by the report for objects older than that
		wait = "waits for its finalizers"
	case s.Namespace == NamespaceTerminating:
		wait = "its namespace is being deleted"
	case s.Namespace == NamespaceMissing:
		wait = "waits for its namespace" // to try before is a write for nothing, and thousands of them would stand before the namespace
	case s.Paused != "":
		wait = s.Paused
	default:
		return step
	}
	step.Verb, step.Want = Wait, Desired{Reason: wait}
	return step
}

// pace returns the number that a copy which is to shrink to goal has for now, by the law, and what it waits for where that is more.
func (s Snapshot) pace(goal int64) (*int64, string) {
	shares := make([]Share, 0, len(s.Members))
	for _, one := range s.Members {
		shares = append(shares, one.share(s.Source))
	}
	own := &shares[s.Own]
	own.Target = goal
	leaving := Leaving(shares)
	for i := range shares {
		shares[i].Target = max(shares[i].Target, s.Source.Floor(shares[i].Cluster, leaving, shares[i].Most))
	}
	asked := s.Source.Asked()
	if s.AutoscalersSynced {
		asked = s.Source.AskedFor(shares)
	}
	now := Pace(shares, s.Own, asked)
	if ScaledByMember(s.Target.Have) && now > goal {
		now = own.Applied // by steps would be a fight with its autoscaler: all at once, when it may
	}
	if now == goal {
		return &now, ""
	}
	return &now, HeldBack(*own, now, Ready(shares), asked)
}

// share is what the member holds of an object. What our own shrinking is about to take counts no more.
func (m Standing) share(s Source) Share {
	share := ShareOf(s, m.Target)
	if m.MostReady != nil {
		share.Ready = min(share.Ready, *m.MostReady)
	}
	share.Unscaled = m.Scaled && !m.AutoscalerComes
	return share
}

// turns returns how the members stand in a rollout; want is what the one that is looked at would get.
func (s Snapshot) turns(want Desired) (turns []Turn) {
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

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
