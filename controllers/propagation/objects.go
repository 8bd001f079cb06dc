package propagation

import (
	"k8s.io/apimachinery/pkg/types"

	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

// answer is an object as a write of ours may have left it.
type answer interface {
	held.Packed
	// Typed returns it as one of Kubernetes' own types.
	Typed() any
}

// sameSource is plan.SameSource of what an informer brings.
func sameSource(was, is any) bool {
	return held.OnlyStatusDiffers(was, is) || plan.SameSource(held.Object(was), held.Object(is))
}

func keyOf(k *plan.Kind, o held.Named) key {
	return key{k, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
}
