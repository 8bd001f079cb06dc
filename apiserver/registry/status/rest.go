// Package status serves the subresource status of a kind: reads and updates of an existing object, with a strategy that
// leaves the rest of it alone.
package status

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Strategy handles updates of an object's status.
type Strategy interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}

// REST serves RESOURCE/NAME/status.
type REST struct {
	store genericregistry.Store
}

var _ rest.Patcher = &REST{}

// New returns the storage of the status of store's objects. store must be complete.
func New(store *genericregistry.Store, strategy Strategy) *REST {
	r := &REST{*store}
	r.store.UpdateStrategy = strategy
	r.store.ResetFieldsStrategy = strategy
	return r
}

// New returns an empty object.
func (r *REST) New() runtime.Object { return r.store.New() }

// Destroy does nothing: the store belongs to the main resource.
func (*REST) Destroy() {}

// Get returns an object.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update changes the status of an object that exists.
func (r *REST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, onCreate rest.ValidateObjectFunc,
	onUpdate rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, info, onCreate, onUpdate, false, options)
}

// GetResetFields returns what users cannot set here.
func (r *REST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable makes a table.
func (r *REST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, options)
}
