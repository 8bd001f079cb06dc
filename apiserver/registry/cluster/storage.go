package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"federation/apiserver/apis/federation/v1beta1"
)

// Storage is what is served of Clusters.
type Storage struct {
	Cluster *genericregistry.Store
	Status  *StatusREST
	Proxy   *ProxyREST
}

// NewStorage returns the storage of Clusters. secrets reads the members' credentials for the proxy.
func NewStorage(options generic.RESTOptionsGetter, secrets SecretGetter) (*Storage, error) {
	s := newStrategy()
	resource := v1beta1.ClustersResource.GroupResource()
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &v1beta1.Cluster{} },
		NewListFunc:               func() runtime.Object { return &v1beta1.ClusterList{} },
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: v1beta1.SchemeGroupVersion.WithResource("cluster").GroupResource(),
		CreateStrategy:            s,
		UpdateStrategy:            s,
		DeleteStrategy:            s,
		ResetFieldsStrategy:       s,
		TableConvertor:            tables{},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options}); err != nil {
		return nil, err
	}
	status := *store
	status.UpdateStrategy = statusStrategy{s}
	status.ResetFieldsStrategy = statusStrategy{s}
	return &Storage{
		Cluster: store,
		Status:  &StatusREST{store: &status},
		Proxy:   &ProxyREST{clusters: store, secrets: secrets},
	}, nil
}

// StatusREST serves clusters/NAME/status.
type StatusREST struct {
	store *genericregistry.Store
}

var _ rest.Patcher = &StatusREST{}

// New returns an empty Cluster.
func (*StatusREST) New() runtime.Object { return &v1beta1.Cluster{} }

// Destroy does nothing: the store belongs to the main resource.
func (*StatusREST) Destroy() {}

// Get returns a Cluster.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update changes the status of a Cluster that exists.
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
