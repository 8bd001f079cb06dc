package main

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/wire"
	"federation/controllers/shards/plan"
)

// caches are informers of the federation's API, one for a resource.
type caches struct {
	factory   dynamicinformer.DynamicSharedInformerFactory
	transform cache.TransformFunc
}

func newCaches(client dynamic.Interface, transform cache.TransformFunc) *caches {
	return &caches{dynamicinformer.NewDynamicSharedInformerFactory(client, 0), transform}
}

// informer returns the informer of a resource. It runs once start has been called after that.
func (c *caches) informer(gvr schema.GroupVersionResource) cache.SharedIndexInformer {
	informer := c.factory.ForResource(gvr).Informer()
	_ = informer.SetTransform(c.transform) // fails only once the informer runs, and then it is set
	return informer
}

// start starts what has been asked for and does not run yet.
func (c *caches) start(ctx context.Context) { c.factory.Start(ctx.Done()) }

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

func dropManagedFields(o metav1.Object) { o.SetManagedFields(nil) }

// slim is dropManagedFields for the objects of informers.
func slim(obj any) (any, error) {
	if o, err := meta.Accessor(obj); err == nil {
		dropManagedFields(o)
	}
	return obj, nil
}

// whole are the resources whose objects every replica needs, whoever's shard they are in: they say where
// others go, or hold them. What is in the federation's own namespace is whole too.
var whole = map[string]bool{"Cluster": true, "PlacementPolicy": true, "Namespace": true, "HorizontalPodAutoscaler": true, "CustomResourceDefinition": true}

// slimTo returns a transform that leaves of the objects of others' shards only the metadata.
func slimTo(held plan.Set) cache.TransformFunc {
	if held == plan.All {
		return slim
	}
	return func(obj any) (any, error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return slim(obj)
		}
		u.SetManagedFields(nil)
		if whole[u.GetKind()] || u.GetNamespace() == v1beta1.FederationNamespace || held.Has(v1beta1.Shard(u.GetNamespace(), u.GetName())) {
			return u, nil
		}
		for field := range u.Object {
			if field != "apiVersion" && field != "kind" && field != "metadata" {
				delete(u.Object, field)
			}
		}
		u.SetAnnotations(nil) // among them is what kubectl applied: the whole object once more
		return u, nil
	}
}
