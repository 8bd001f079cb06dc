// Package federated makes the storage of federated kinds remember how an object was deleted.
//
// "Orphan" is requested with the finalizer of that name, which the garbage collector removes as soon as it sees it: the
// federation, which needs it to know that the members' copies stay, could come too late. So the write that marks the object as
// deleted also adds v1beta1.OrphanMarkFinalizer, which only the federation removes. (For custom kinds, whose storage is not
// ours, admission does so in a write just before.)
package federated

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"federation/apiserver/admission/plan"
	"federation/apiserver/apis/federation/v1beta1"
)

// NamespaceGetter reads namespaces.
type NamespaceGetter interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Namespace, error)
}

// DeleteStrategy wraps the delete strategy of a federated kind. The result has a default garbage collection policy if,
// and only if, the wrapped one has. orphanByDefault: a delete without a propagation policy leaves the copies and, as
// the finalizer orphan says, dependents; otherwise it deletes both.
func DeleteStrategy(wrapped rest.RESTDeleteStrategy, namespaces NamespaceGetter, orphanByDefault bool) rest.RESTDeleteStrategy {
	s := strategy{wrapped, namespaces, orphanByDefault}
	if gc, ok := wrapped.(rest.GarbageCollectionDeleteStrategy); ok {
		return gcStrategy{s, gc}
	}
	return s
}

type strategy struct {
	rest.RESTDeleteStrategy
	namespaces      NamespaceGetter
	orphanByDefault bool
}

type gcStrategy struct {
	strategy
	rest.GarbageCollectionDeleteStrategy
}

// CheckGracefulDelete marks an object whose copies stay. It is called inside the transaction that sets the deletion
// timestamp, before the storage itself looks at the delete options. None of our kinds has a grace period.
func (s strategy) CheckGracefulDelete(ctx context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	cascade(options, s.orphanByDefault)
	object, err := meta.Accessor(obj)
	if err == nil && CopiesStay(ctx, s.namespaces, object, options, s.orphanByDefault) {
		plan.MarkForOrphaning(object)
	}
	return false
}

// cascade sets the propagation policy of a delete that has none.
func cascade(options *metav1.DeleteOptions, orphanByDefault bool) {
	if !orphanByDefault && options != nil && options.PropagationPolicy == nil && options.OrphanDependents == nil { //nolint:staticcheck // SA1019: old clients send it
		options.PropagationPolicy = new(metav1.DeletePropagationBackground)
	}
}

// CopiesStay reports whether a delete of an object, by the user of ctx, leaves its copies in the members. If a person
// deletes, the options decide. If the server itself does, they do not: the garbage collector honours the finalizer that
// every federated object has from its creation, and the namespace controller knows of no orphans. Then the copies stay
// only if those of the whole namespace do, or if that cannot be found out, because what stays can still be deleted.
func CopiesStay(ctx context.Context, namespaces NamespaceGetter, object metav1.Object, options *metav1.DeleteOptions, orphanByDefault bool) bool {
	if who, ok := request.UserFrom(ctx); !ok || who.GetName() != user.APIServerUser {
		return plan.LeavesCopies(object.GetFinalizers(), options, orphanByDefault)
	}
	namespace, err := namespaces.Get(ctx, object.GetNamespace(), metav1.GetOptions{})
	return err != nil || slices.Contains(namespace.Finalizers, v1beta1.OrphanMarkFinalizer)
}
