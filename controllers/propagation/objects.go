package propagation

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	return key{Kind: k, NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// OfAllShards reports whether copies of a resource are to be in the informers of a Member whoever makes them, since copies of
// other objects depend on them.
func OfAllShards(r schema.GroupVersionResource) bool { return r == namespaces || r == autoscalers }
