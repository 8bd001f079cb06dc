package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/wire"
	"federation/controllers/manager"
	"federation/controllers/shards/plan"
)

// newCaches makes informers of the federation's API for the shards that are held: of others' objects they have only the
// metadata. client reads what is not Kubernetes' own.
func newCaches(config *rest.Config, client dynamic.Interface, held plan.Set) (manager.Informers, error) {
	config = wire.Protobuf(config)
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	from := wire.Source{Kube: kube, Dynamic: client, Slim: dropManagedFields, Select: func(o *metav1.ListOptions) { o.LabelSelector = v1beta1.NotRevisions }}
	if held != plan.All {
		from.Whole = func(kind string, o metav1.Object) bool {
			return whole[kind] || o.GetNamespace() == v1beta1.FederationNamespace || held.Has(v1beta1.Shard(o.GetNamespace(), o.GetName()))
		}
	}
	return caches{wire.NewInformers(from)}, nil
}

// caches are informers of the federation's API.
type caches struct{ *wire.Informers }

// Another implements manager.Informers.
func (c caches) Another() manager.Informers { return caches{c.Informers.Another()} }

// newClient makes a client of the federation's API that is not throttled, and whose objects come without what is as
// large as the rest of them and nobody here reads.
func newClient(config *rest.Config) (dynamic.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return wire.NewDynamic(config, client, dropManagedFields)
}

// newClients makes clients of the federation's API that are not throttled.
func newClients(config *rest.Config) (dynamic.Interface, kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := newClient(config)
	if err != nil {
		return nil, nil, err
	}
	kube, err := kubernetes.NewForConfig(config)
	return client, kube, err
}

func dropManagedFields(o metav1.Object) { o.SetManagedFields(nil) }

// whole are the resources whose objects every replica needs, whoever's shard they are in: they say where
// others go, or hold them. What is in the federation's own namespace is whole too.
var whole = map[string]bool{"Cluster": true, "PlacementPolicy": true, "Namespace": true, "HorizontalPodAutoscaler": true, "CustomResourceDefinition": true}
