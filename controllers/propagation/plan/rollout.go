package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// TemplateAnnotation is, on a copy whose policy says how changes roll out, the hash of the pod template that the
// federation applied last.
const TemplateAnnotation = "federation.kubernetes.io/template-hash"

// Turn is how one cluster stands in a rollout.
type Turn struct {
	Cluster string
	// Reachable: something can be known and done there. A cluster that is not is passed over.
	Reachable bool
	// Holds: it has a copy, and is to have one.
	Holds bool
	// Updated: its copy has the new pod template.
	Updated bool
	// Healthy: all of its copy runs as the copy says.
	Healthy bool
}

// MayUpdate reports whether a cluster may get the new pod template now and, where not, what it waits for. Clusters
// go in the policy's order, then by name; each when those before it are healthy with the new template and nobody
// else is under way.
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

// paces reports whether changes of the pod template reach the clusters in an order.
func (s Source) paces() bool {
	return s.Kind.Healthy != nil && s.Policy != nil && s.Policy.Spec.Rollout != nil &&
		(s.Policy.Spec.Rollout.Paused || s.Policy.Spec.Rollout.Strategy == v1beta1.RolloutOneClusterAtATime)
}

// Rollout returns the policy by which changes of the pod template reach the clusters; nil: all at once.
func (s Source) Rollout() *v1beta1.RolloutPolicy {
	if !s.paces() {
		return nil
	}
	return s.Policy.Spec.Rollout
}

// Updated reports whether a copy has the pod template that is desired.
func Updated(d Desired, copy *unstructured.Unstructured) bool {
	want, found := d.Object.GetAnnotations()[TemplateAnnotation]
	if have, ok := copy.GetAnnotations()[TemplateAnnotation]; ok && found {
		return want == have
	}
	return SameTemplate(d, copy)
}

// SameTemplate reports whether all that is desired of the pod template stands in a copy.
func SameTemplate(d Desired, copy *unstructured.Unstructured) bool {
	return contains(templateOf(d.Object), templateOf(copy))
}

func templateOf(u *unstructured.Unstructured) any {
	template, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "template")
	return template
}

// TurnOf is how a cluster stands in a rollout; d is what it would have if it were its turn. One without a copy is passed over: its copy will be
// made with the new template. One whose overrides do not apply is not: it gets the change when they do, as one that refuses it.
func TurnOf(k *Kind, d Desired, t Target) Turn {
	turn := Turn{Cluster: t.Cluster.Name, Reachable: true, Holds: t.Have != nil && (d.Object != nil || d.Refusal != "")}
	if turn.Holds && d.Object != nil {
		turn.Updated, turn.Healthy = Updated(d, t.Have), k.Healthy(t.Have) && !t.HeartbeatsStale
	}
	return turn
}
