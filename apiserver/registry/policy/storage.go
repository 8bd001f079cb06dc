package policy

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/status"
)

// REST serves placementpolicies.
type REST struct {
	*genericregistry.Store
}

var (
	_ rest.ShortNamesProvider = &REST{}
	_ rest.CategoriesProvider = &REST{}
)

// ShortNames returns the short name that kubectl knows.
func (*REST) ShortNames() []string { return []string{"pp"} }

// Categories adds policies to "kubectl get federation".
func (*REST) Categories() []string { return []string{"federation"} }

// NewREST returns the storage of placementpolicies and of their status. It records what it stores in index.
func NewREST(options generic.RESTOptionsGetter, index *Index) (*REST, *status.REST, error) {
	s := newStrategy()
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &v1beta1.PlacementPolicy{} },
		NewListFunc:               func() runtime.Object { return &v1beta1.PlacementPolicyList{} },
		DefaultQualifiedResource:  v1beta1.PoliciesResource.GroupResource(),
		SingularQualifiedResource: v1beta1.SchemeGroupVersion.WithResource("placementpolicy").GroupResource(),
		CreateStrategy:            s,
		UpdateStrategy:            s,
		DeleteStrategy:            s,
		ResetFieldsStrategy:       s,
		TableConvertor:            tables,
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options}); err != nil {
		return nil, nil, err
	}
	index.hook(store)
	return &REST{store}, status.New(store, statusStrategy{s}), nil
}
