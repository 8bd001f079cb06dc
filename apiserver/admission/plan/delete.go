package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// MarkForOrphaning puts v1beta1.OrphanMarkFinalizer on a federated object that is not yet marked as deleted.
func MarkForOrphaning(object metav1.Object) {
	finalizers := object.GetFinalizers()
	if object.GetDeletionTimestamp() != nil || !slices.Contains(finalizers, v1beta1.DeleteFromClustersFinalizer) {
		return
	}
	if !slices.Contains(finalizers, v1beta1.OrphanMarkFinalizer) {
		object.SetFinalizers(append(slices.Clone(finalizers), v1beta1.OrphanMarkFinalizer))
	}
}

// LeavesCopies reports whether a delete leaves copies alone: by its options, else by the finalizers if that is the default.
func LeavesCopies(finalizers []string, options *metav1.DeleteOptions, byDefault bool) bool {
	if options != nil && options.OrphanDependents != nil { //nolint:staticcheck // SA1019: old clients send it
		return *options.OrphanDependents //nolint:staticcheck // SA1019: old clients send it
	}
	if options != nil && options.PropagationPolicy != nil {
		return *options.PropagationPolicy == metav1.DeletePropagationOrphan
	}
	return byDefault && slices.Contains(finalizers, metav1.FinalizerOrphanDependents)
}
