// Package service stores Services as users write them.
//
// Kubernetes' own storage allocates cluster IPs, node ports and IP families, which mean nothing at a federation: each member
// has its own. So the store is built over Kubernetes' strategy, which has the validation. It fills in only cluster IPs, which
// clients wait for and no member gets (ADR 112): other unset fields stay unset.
package service

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"
	printerstorage "k8s.io/kubernetes/pkg/printers/storage"
	upstreamservice "k8s.io/kubernetes/pkg/registry/core/service"

	"federation/apiserver/registry/status"
)

// REST serves services.
type REST struct {
	*genericregistry.Store
}

var (
	_ rest.ShortNamesProvider = &REST{}
	_ rest.CategoriesProvider = &REST{}
)

// ShortNames returns the short name that kubectl knows.
func (*REST) ShortNames() []string { return []string{"svc"} }

// Categories adds services to "kubectl get all".
func (*REST) Categories() []string { return []string{"all"} }

// NewREST returns the storage of services and of services/status.
func NewREST(options generic.RESTOptionsGetter) (*REST, *status.REST, error) {
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
	return &REST{store}, status.New(store, upstreamservice.StatusStrategy), nil
}
