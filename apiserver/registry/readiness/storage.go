package readiness

import (
	"k8s.io/apiserver/pkg/registry/generic"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/status"
	"federation/apiserver/registry/store"
)

// NewREST returns the storage of failoverreadinesses and of their status.
func NewREST(options generic.RESTOptionsGetter) (*store.REST, *status.REST, error) {
	s := newStrategy()
	r, err := store.New(store.Kind{
		Object: &v1beta1.FailoverReadiness{}, List: &v1beta1.FailoverReadinessList{}, Resource: v1beta1.ReadinessResource, ShortName: "fr", Strategy: s, Tables: tables,
	}, options)
	if err != nil {
		return nil, nil, err
	}
	return r, status.New(r.Store, statusStrategy{strategy: s}), nil
}
