package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// A move of a workload often moves what its pods need, too. The pods stay until others are ready. What they need leaves
// after them, and what has addresses leaves when another cluster has some.

// Leaves reports whether a copy of a kind that pods need should leave a cluster while its federated object stays.
func (s Source) Leaves(t Target) bool {
	if !s.Kind.NeededByPods || s.Object == nil || s.leaving() || t.Have == nil || Outlived(SourceOf(s.Object), t.Have) {
		return false
	}
	presence, _, _ := s.Wanted(t)
	return presence == Absent
}

// Workload is a paced object of the namespace, as it is in a cluster that an object should leave.
type Workload struct {
	Kind *Kind
	Name string
	// Placement of the federated object, or nil.
	Placement *v1beta1.Placement
	// Copy is its copy in the cluster, or nil.
	Copy *unstructured.Unstructured
}

// Moves of what moves together are not decided in one write. So for a moment after an object has to leave (justNow),
// what is known of where workloads go may be from before.

// MayNeed reports whether a workload that leaves a cluster may need an object that leaves it, as far as that is known
// without its copy. A workload that stays there is assumed not to, unless justNow.
func (w Workload) MayNeed(s Source, cluster string, justNow bool) bool {
	if w.Placement == nil || !justNow && w.Placement.Clusters[cluster]+w.Placement.Overflow[cluster] > 0 {
		return false
	}
	return w.isGovernedWith(s, justNow) || s.Kind.Referable
}

// isGovernedWith reports whether one policy governs both workload and object, or may, because justNow the object's took
// effect.
func (w Workload) isGovernedWith(s Source, justNow bool) bool {
	return s.Placement != nil && s.Placement.Policy != "" && (justNow || s.Placement.Policy == w.Placement.Policy)
}

// Keeps returns why a workload with MayNeed keeps an object in the cluster, or "".
func (w Workload) Keeps(s Source, justNow bool) string {
	n := Applied(Source{Kind: w.Kind}, w.Copy)
	if n == 0 || !w.isGovernedWith(s, justNow) && !w.refersTo(s) {
		return ""
	}
	return fmt.Sprintf("stays for %s %s, which has %d replicas there", w.Kind.Kind, w.Name, n)
}

func (w Workload) refersTo(s Source) bool {
	return w.Copy != nil && slices.Contains(v1beta1.References(w.Kind.GroupKind(), w.Copy.Object), v1beta1.Reference{Kind: s.Kind.Kind, Name: s.Object.GetName()})
}

// Serves reports whether a copy has an address, and something behind it.
func (c Copy) Serves(k *Kind) bool {
	return len(ingressesOf(c.Object)) > 0 && (c.ReadyEndpoints || !k.Endpoints)
}
