// Package service stores Services as users write them.
//
// Kubernetes' own storage allocates cluster IPs, node ports and IP families, which at a federation
// mean nothing: each member has its own. So the store is built anew over Kubernetes' strategy, which
// brings the validation, and nothing is filled in: what is not set stays unset.
package service

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"
	printerstorage "k8s.io/kubernetes/pkg/printers/storage"
	upstreamservice "k8s.io/kubernetes/pkg/registry/core/service"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// REST serves services.
type REST struct {
	*genericregistry.Store
}

var (
	_ rest.ShortNamesProvider = &REST{}
	_ rest.CategoriesProvider = &REST{}
	_ rest.Patcher            = &StatusREST{}
)

// ShortNames returns the short name that kubectl knows.
func (*REST) ShortNames() []string { return []string{"svc"} }

// Categories says that services are in "kubectl get all".
func (*REST) Categories() []string { return []string{"all"} }

// NewREST returns the storage of services and of services/status.
func NewREST(options generic.RESTOptionsGetter) (*REST, *StatusREST, error) {
	s := newStrategy()
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &core.Service{} },
		NewListFunc:               func() runtime.Object { return &core.ServiceList{} },
		PredicateFunc:             upstreamservice.Matcher,
		DefaultQualifiedResource:  core.Resource("services"),
		SingularQualifiedResource: core.Resource("service"),
		ReturnDeletedObject:       true,
		CreateStrategy:            s,
		UpdateStrategy:            s,
		DeleteStrategy:            s,
		ResetFieldsStrategy:       s,
		TableConvertor:            printerstorage.TableConvertor{TableGenerator: printers.NewTableGenerator().With(printersinternal.AddHandlers)},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: upstreamservice.GetAttrs}); err != nil {
		return nil, nil, err
	}
	status := *store
	status.UpdateStrategy = upstreamservice.StatusStrategy
	status.ResetFieldsStrategy = upstreamservice.StatusStrategy
	return &REST{store}, &StatusREST{&status}, nil
}

// StatusREST serves services/NAME/status.
type StatusREST struct {
	store *genericregistry.Store
}

// New returns an empty Service.
func (*StatusREST) New() runtime.Object { return &core.Service{} }

// Destroy does nothing: the store belongs to the main resource.
func (*StatusREST) Destroy() {}

// Get returns a Service.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update changes the status of a Service that exists.
func (r *StatusREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, onCreate rest.ValidateObjectFunc,
	onUpdate rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, info, onCreate, onUpdate, false, options)
}

// GetResetFields names what users cannot set here.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable makes a table.
func (r *StatusREST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, options)
}
