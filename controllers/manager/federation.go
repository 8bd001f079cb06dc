package manager

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/wire"
	"federation/controllers/shards/plan"
	"federation/controllers/writegate"
)

// InformersOf makes informers of the federation's API for the shards that are held: of others' objects they have only the
// metadata. client reads what is not Kubernetes' own.
func InformersOf(config *rest.Config, client dynamic.Interface, held plan.Set) (Informers, error) {
	config = wire.Protobuf(config)
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	from := wire.Source{Kube: kube, Dynamic: client, Slim: DropManagedFields, Select: func(o *metav1.ListOptions) { o.LabelSelector = v1beta1.NotRevisions }}
	if held != plan.All {
		from.Whole = func(kind string, o metav1.Object) bool {
			return whole[kind] || o.GetNamespace() == v1beta1.FederationNamespace || held.Has(v1beta1.Shard(o.GetNamespace(), o.GetName()))
		}
	}
	return caches{wire.NewInformers(from)}, nil
}

// caches are informers of the federation's API.
type caches struct{ *wire.Informers }

// Another implements Informers.
func (c caches) Another() Informers { return caches{c.Informers.Another()} }

// NewClient makes a client of the federation's API that is not throttled, and whose objects come without what is as
// large as the rest of them and nobody here reads.
func NewClient(config *rest.Config) (dynamic.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return wire.NewDynamic(config, client, DropManagedFields)
}

// NewClients makes clients of the federation's API that are not throttled.
func NewClients(config *rest.Config) (dynamic.Interface, kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := NewClient(config)
	if err != nil {
		return nil, nil, err
	}
	kube, err := kubernetes.NewForConfig(config)
	return client, kube, err
}

// NewClientsBehind makes clients of the federation's API that are not throttled, and write only while a gate is open.
func NewClientsBehind(gate *writegate.Gate, config *rest.Config) (dynamic.Interface, kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.Wrap(gate.Wrap)
	return NewClients(config)
}

// DropManagedFields drops what is as large as the rest of an object and nobody here reads.
func DropManagedFields(o metav1.Object) { o.SetManagedFields(nil) }

// whole are the resources whose objects every replica needs, whoever's shard they are in: they say where
// others go, or hold them. What is in the federation's own namespace is whole too.
var whole = map[string]bool{"Cluster": true, "PlacementPolicy": true, "Namespace": true, "HorizontalPodAutoscaler": true, "CustomResourceDefinition": true}
