package federated

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	namespacestore "k8s.io/kubernetes/pkg/registry/core/namespace/storage"

	"federation/apiserver/admission/plan"
)

// Namespaces is the storage of namespaces, whose own delete bypasses the strategy.
type Namespaces struct {
	*namespacestore.REST
	// OrphanByDefault: see DeleteStrategy.
	OrphanByDefault bool
}

// Delete starts or ends the deletion of a namespace. The validation is called with the stored object, inside the
// transaction and before the finalizers are looked at: it adds the mark.
func (n *Namespaces) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	markAfter := func(ctx context.Context, obj runtime.Object) error {
		if err := validate(ctx, obj); err != nil {
			return err
		}
		if object, err := meta.Accessor(obj); err == nil && plan.LeavesCopies(object.GetFinalizers(), options, n.OrphanByDefault) {
			plan.MarkForOrphaning(object)
		}
		return nil
	}
	cascade(options, n.OrphanByDefault)
	return n.REST.Delete(ctx, name, markAfter, options)
}
