package propagation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"federation/controllers/propagation/plan"
)

// named is what is known of any object that an informer brings. To unpack one costs more than most events are worth.
type named interface {
	GetNamespace() string
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
	GetDeletionTimestamp() *metav1.Time
	GetFinalizers() []string
}

// packed is an object as an informer may hold it.
type packed interface {
	Unpack() *unstructured.Unstructured
	// OnlyStatusDiffers tells whether another version surely asks for the same; false where that takes unpacking.
	OnlyStatusDiffers(other any) bool
}

// answer is an object as a write of ours may have left it.
type answer interface {
	packed
	// Typed returns it as one of Kubernetes' own types.
	Typed() any
}

// asHeld has an informer hand out objects as it holds them, if it holds them packed.
func asHeld(informer cache.SharedIndexInformer) cache.SharedIndexInformer {
	if holds, ok := informer.(interface {
		Packed() cache.SharedIndexInformer
	}); ok {
		return holds.Packed()
	}
	return informer
}

func about(obj any) named {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	return obj.(named)
}

func object(obj any) *unstructured.Unstructured {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if p, ok := obj.(packed); ok {
		return p.Unpack()
	}
	u, _ := obj.(*unstructured.Unstructured)
	return u
}

// sameSource is plan.SameSource of what an informer brings.
func sameSource(was, is any) bool {
	if p, ok := is.(packed); ok && p.OnlyStatusDiffers(was) {
		return true
	}
	return plan.SameSource(object(was), object(is))
}

func keyOf(k *plan.Kind, o named) key {
	return key{k, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
}
