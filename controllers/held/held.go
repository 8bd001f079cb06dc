// Package held takes what informers hand out: objects unstructured, or packed as the informer holds them, of which little can be
// asked until they are unpacked (ADR 18). What it needs of them it declares here, for controllers do not know who packs.
package held

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Named is what is known of any object that an informer brings. To unpack one costs more than most events are worth.
type Named interface {
	GetNamespace() string
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
	GetDeletionTimestamp() *metav1.Time
	GetFinalizers() []string
}

// Packed is an object as an informer may hold it.
type Packed interface {
	Unpack() *unstructured.Unstructured
	// OnlyStatusDiffers reports whether another version surely has the same metadata and asks for the same; false where that takes
	// unpacking.
	OnlyStatusDiffers(other any) bool
}

// By has an informer hand out objects as it holds them, if it holds them packed.
func By(informer cache.SharedIndexInformer) cache.SharedIndexInformer {
	if holds, ok := informer.(interface {
		Packed() cache.SharedIndexInformer
	}); ok {
		return holds.Packed()
	}
	return informer
}

// About is what is known of an object without unpacking it. The last that was known of a deleted one counts.
func About(obj any) Named { return last(obj).(Named) }

// Object returns an object unpacked; nil where it is none.
func Object(obj any) *unstructured.Unstructured {
	obj = last(obj)
	if p, ok := obj.(Packed); ok {
		return p.Unpack()
	}
	u, _ := obj.(*unstructured.Unstructured)
	return u
}

// OnlyStatusDiffers reports whether two versions surely ask for the same, without unpacking either.
func OnlyStatusDiffers(was, is any) bool {
	p, ok := is.(Packed)
	return ok && p.OnlyStatusDiffers(was)
}

// last is the object that is meant where a watch missed a deletion.
func last(obj any) any {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}
	return obj
}
