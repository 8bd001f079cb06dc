package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// TemplateAnnotation is on a copy whose policy orders rollouts: the hash of the pod template that the federation
// applied last.
const TemplateAnnotation = "federation.kubernetes.io/template-hash"

// Turn is the state of one cluster in a rollout.
type Turn struct {
	Cluster string
	// Reachable: its state is known and it can be written to. Unreachable clusters are skipped.
	Reachable bool
	// Holds: it has a copy, and should have one.
	Holds bool
	// Updated: its copy has the new pod template.
	Updated bool
	// Healthy: all of its copy runs as the copy says.
	Healthy bool
}

// MayUpdate reports whether a cluster may get the new pod template now and, if not, what it waits for. Clusters go in
// the policy's order, then by name: each when those before it are healthy with the new template and no other is in
// progress.
func MayUpdate(turns []Turn, cluster string, policy *v1beta1.RolloutPolicy) (bool, string) {
	if policy.Paused {
		return false, "the rollout is paused"
	}
	if policy.Strategy != v1beta1.RolloutOneClusterAtATime {
		return true, ""
	}
	turns = slices.Clone(turns)
	slices.SortFunc(turns, func(a, b Turn) int {
		return 2*(rank(policy.Order, a.Cluster)-rank(policy.Order, b.Cluster)) + strings.Compare(a.Cluster, b.Cluster)
	})
	before := true
	for _, t := range turns {
		switch {
		case t.Cluster == cluster:
			before = false
		case !t.Reachable || !t.Holds || t.Updated && t.Healthy:
		case t.Updated:
			return false, fmt.Sprintf("waits for its turn in the rollout: %s is not healthy with the change yet", t.Cluster)
		case before:
			return false, fmt.Sprintf("waits for its turn in the rollout: after %s", t.Cluster)
		}
	}
	return true, ""
}

func rank(order []string, cluster string) int {
	if i := slices.Index(order, cluster); i >= 0 {
		return i
	}
	return len(order)
}

// pacesRollout reports whether changes of the pod template reach the clusters in order.
func (s Source) pacesRollout() bool {
	return s.Kind.Healthy != nil && s.Policy != nil && s.Policy.Spec.Rollout != nil &&
		(s.Policy.Spec.Rollout.Paused || s.Policy.Spec.Rollout.Strategy == v1beta1.RolloutOneClusterAtATime)
}

// Rollout returns the policy for changes of the pod template; nil: all clusters at once.
func (s Source) Rollout() *v1beta1.RolloutPolicy {
	if !s.pacesRollout() {
		return nil
	}
	return s.Policy.Spec.Rollout
}

// Updated reports whether a copy has the desired pod template.
func Updated(d Desired, copy *unstructured.Unstructured) bool {
	want, found := d.Object.GetAnnotations()[TemplateAnnotation]
	if have, ok := copy.GetAnnotations()[TemplateAnnotation]; ok && found {
		return want == have
	}
	return SameTemplate(d, copy)
}

// SameTemplate reports whether a copy has all desired values of the pod template.
func SameTemplate(d Desired, copy *unstructured.Unstructured) bool {
	return contains(templateOf(d.Object), templateOf(copy))
}

func templateOf(u *unstructured.Unstructured) any {
	template, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "template")
	return template
}

// TurnOf returns a cluster's state in a rollout; d is what it would get in its turn. A cluster without a copy is
// skipped: its copy will be created with the new template. A cluster whose overrides do not apply is not: it gets the
// change when they do, like one that refuses it.
func TurnOf(k *Kind, d Desired, t Target) Turn {
	turn := Turn{Cluster: t.Cluster.Name, Reachable: true, Holds: t.Have != nil && (d.Object != nil || d.Refusal != "")}
	if turn.Holds && d.Object != nil {
		turn.Updated, turn.Healthy = Updated(d, t.Have), k.Healthy(t.Have) && !t.HeartbeatsStale
	}
	return turn
}
