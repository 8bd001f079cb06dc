package cluster

import (
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/status"
	"federation/apiserver/registry/store"
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
	of, err := store.New(store.Kind{Object: &v1beta1.Cluster{}, List: &v1beta1.ClusterList{}, Resource: v1beta1.ClustersResource, Strategy: s, Tables: tables}, options)
	if err != nil {
		return nil, err
	}
	clusters := of.Store
	proxy := &ProxyREST{clusters: clusters, secrets: secrets, tunnel: tunnel}
	return &Storage{
		Cluster: clusters,
		Status:  status.New(clusters, statusStrategy{strategy: s}),
		Drain:   status.New(clusters, drainStrategy{s}),
		Proxy:   proxy,
		Inspect: &InspectREST{proxy},
		Connect: &ConnectREST{clusters: clusters, tunnel: tunnel},
	}, nil
}
