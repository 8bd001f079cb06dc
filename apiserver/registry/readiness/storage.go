package readiness

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/status"
)

// REST serves failoverreadinesses.
type REST struct {
	*genericregistry.Store
}

var (
	_ rest.ShortNamesProvider = &REST{}
	_ rest.CategoriesProvider = &REST{}
)

// ShortNames returns the names that kubectl knows beside the plural: kubectl finds a resource by its singular too.
func (*REST) ShortNames() []string { return []string{"fr"} }

// Categories adds them to "kubectl get federation".
func (*REST) Categories() []string { return []string{"federation"} }

// NewREST returns the storage of failoverreadinesses and of their status.
func NewREST(options generic.RESTOptionsGetter) (*REST, *status.REST, error) {
	s := newStrategy()
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &v1beta1.FailoverReadiness{} },
		NewListFunc:               func() runtime.Object { return &v1beta1.FailoverReadinessList{} },
		DefaultQualifiedResource:  v1beta1.ReadinessResource.GroupResource(),
		SingularQualifiedResource: v1beta1.SchemeGroupVersion.WithResource("failoverreadiness").GroupResource(),
		CreateStrategy:            s,
		UpdateStrategy:            s,
		DeleteStrategy:            s,
		ResetFieldsStrategy:       s,
		TableConvertor:            tables,
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options}); err != nil {
		return nil, nil, err
	}
	return &REST{store}, status.New(store, statusStrategy{s}), nil
}
