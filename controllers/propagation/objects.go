package propagation

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

// answer is an object as the response to our write has it.
type answer interface {
	held.Packed
	// Typed returns it as one of Kubernetes' own types.
	Typed() any
}

// sameSource is plan.SameSource for objects of an informer.
func sameSource(was, is any) bool {
	return held.OnlyStatusDiffers(was, is) || plan.SameSource(held.Object(was), held.Object(is))
}

func keyOf(k *plan.Kind, o held.Named) key {
	return key{Kind: k, NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// OfAllShards reports whether a Member's informers of a resource must include copies of all shards, because copies of
// other objects depend on them.
func OfAllShards(r schema.GroupVersionResource) bool { return r == namespaces || r == autoscalers }
