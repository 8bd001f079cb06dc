package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// What moves a workload to other clusters often moves what its pods need, too. The pods stay until others are ready: what they need leaves
// after them, and what bears addresses when another cluster has some.

// Leaves reports whether a copy of a kind that pods need is to leave a cluster while its federated object stays.
func (s Source) Leaves(t Target) bool {
	if !s.Kind.NeededByPods || s.Object == nil || s.leaving() || t.Have == nil || Outlived(SourceOf(s.Object), t.Have) {
		return false
	}
	presence, _, _ := s.Wanted(t)
	return presence == Absent
}

// Workload is a paced object of the namespace, as it is in a cluster that an object is to leave.
type Workload struct {
	Kind *Kind
	Name string
	// Placement of the federated object; nil where it has none.
	Placement *v1beta1.Placement
	// Copy is what the cluster has of it; nil: nothing.
	Copy *unstructured.Unstructured
}

// MayBeFor reports whether a workload that leaves a cluster may need an object that leaves it, as far as can be said without its copy. Of one
// that stays there it is taken that it does without; but for a moment, since what moves together is not decided in one write.
func (s Source) MayBeFor(w Workload, cluster string, justNow bool) bool {
	if w.Placement == nil || !justNow && w.Placement.Clusters[cluster]+w.Placement.Overflow[cluster] > 0 {
		return false
	}
	return s.governs(w) || referable[s.Kind.Kind]
}

// governs reports whether one policy governs object and workload.
func (s Source) governs(w Workload) bool {
	return s.Placement != nil && s.Placement.Policy != "" && s.Placement.Policy == w.Placement.Policy
}

// referable are the kinds that pods refer to.
var referable = map[string]bool{"ConfigMap": true, "Secret": true, "ServiceAccount": true}

// NeededBy says what a workload of which MayBeFor is true needs an object for; "" where it does not.
func (s Source) NeededBy(w Workload) string {
	n := Applied(Source{Kind: w.Kind}, w.Copy)
	if n == 0 || !s.governs(w) && !s.refersToIt(w) {
		return ""
	}
	return fmt.Sprintf("stays for %s %s, which has %d replicas there", w.Kind.Kind, w.Name, n)
}

func (s Source) refersToIt(w Workload) bool {
	return w.Copy != nil && slices.Contains(v1beta1.References(w.Kind.GroupKind(), w.Copy.Object), v1beta1.Reference{Kind: s.Kind.Kind, Name: s.Object.GetName()})
}

// Serves reports whether a copy has an address, and something behind it.
func (c Copy) Serves(k *Kind) bool {
	return len(ingressesOf(c.Object)) > 0 && (c.ReadyEndpoints || !k.Endpoints)
}
