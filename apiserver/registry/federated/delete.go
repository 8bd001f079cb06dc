// Package federated makes the storage of federated kinds remember how an object was deleted.
//
// "Orphan" is asked for with the finalizer of that name, which the garbage collector takes off again
// as soon as it sees it: the federation, which needs it to know that the members' copies are to stay,
// could come too late. So the very write that marks the object as deleted also puts on
// v1beta1.OrphanMarkFinalizer, which only the federation takes off.
package federated

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"federation/apiserver/apis/federation/v1beta1"
)

// DeleteStrategy wraps the delete strategy of a federated kind. The result has a default garbage
// collection policy if, and only if, the wrapped one has.
func DeleteStrategy(wrapped rest.RESTDeleteStrategy) rest.RESTDeleteStrategy {
	if gc, ok := wrapped.(rest.GarbageCollectionDeleteStrategy); ok {
		return gcStrategy{strategy{wrapped}, gc}
	}
	return strategy{wrapped}
}

type strategy struct {
	rest.RESTDeleteStrategy
}

type gcStrategy struct {
	strategy
	rest.GarbageCollectionDeleteStrategy
}

// CheckGracefulDelete marks an object whose copies are to stay. It is called inside the transaction
// that sets the deletion timestamp, before the storage itself looks at the delete options. None of our
// kinds has a grace period.
func (strategy) CheckGracefulDelete(_ context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	if object, err := meta.Accessor(obj); err == nil {
		MarkOrphan(object, options)
	}
	return false
}

// MarkOrphan puts v1beta1.OrphanMarkFinalizer on an object that is about to be marked as deleted, if
// its copies in the members are to stay.
func MarkOrphan(object metav1.Object, options *metav1.DeleteOptions) {
	finalizers := object.GetFinalizers()
	if object.GetDeletionTimestamp() != nil || !slices.Contains(finalizers, v1beta1.DeleteFromClustersFinalizer) {
		return
	}
	if !orphans(finalizers, options) || slices.Contains(finalizers, v1beta1.OrphanMarkFinalizer) {
		return
	}
	object.SetFinalizers(append(slices.Clone(finalizers), v1beta1.OrphanMarkFinalizer))
}

// orphans tells, as the storage does, whether a delete leaves dependents alone: what the options say,
// else what the finalizers say.
func orphans(finalizers []string, options *metav1.DeleteOptions) bool {
	if options != nil && options.OrphanDependents != nil { //nolint:staticcheck // SA1019: old clients send it
		return *options.OrphanDependents //nolint:staticcheck // SA1019: old clients send it
	}
	if options != nil && options.PropagationPolicy != nil {
		return *options.PropagationPolicy == metav1.DeletePropagationOrphan
	}
	return slices.Contains(finalizers, metav1.FinalizerOrphanDependents)
}
