package cluster

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/status"
)

// Storage is what is served of Clusters.
type Storage struct {
	Cluster *genericregistry.Store
	Status  *status.REST
	Drain   *status.REST
	Proxy   *ProxyREST
	Inspect *InspectREST
	Connect *ConnectREST
}

// NewStorage returns the storage of Clusters. secrets reads the members' credentials for the proxy; tunnel, which may be nil, has the connections
// of agents.
func NewStorage(options generic.RESTOptionsGetter, secrets SecretGetter, tunnel Tunnel) (*Storage, error) {
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
		TableConvertor:            tables,
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options}); err != nil {
		return nil, err
	}
	proxy := &ProxyREST{clusters: store, secrets: secrets, tunnel: tunnel}
	return &Storage{
		Cluster: store,
		Status:  status.New(store, statusStrategy{s}),
		Drain:   status.New(store, drainStrategy{s}),
		Proxy:   proxy,
		Inspect: &InspectREST{proxy},
		Connect: &ConnectREST{clusters: store, tunnel: tunnel},
	}, nil
}
