package policy

import (
	"k8s.io/apiserver/pkg/registry/generic"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/status"
	"federation/apiserver/registry/store"
)

// NewREST returns the storage of placementpolicies and of their status. It records what it stores in index.
func NewREST(options generic.RESTOptionsGetter, index *Index) (*store.REST, *status.REST, error) {
	s := newStrategy()
	r, err := store.New(store.Kind{
		Object: &v1beta1.PlacementPolicy{}, List: &v1beta1.PlacementPolicyList{}, Resource: v1beta1.PoliciesResource, ShortName: "pp", Strategy: s, Tables: tables,
	}, options)
	if err != nil {
		return nil, nil, err
	}
	index.hook(r.Store)
	return r, status.New(r.Store, statusStrategy{strategy: s}), nil
}
