package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry"
	"federation/controllers/propagation"
	propagationplan "federation/controllers/propagation/plan"
	"federation/controllers/shards/plan"
)

// propagate brings members to what the federation says of the objects of the shards that are held.
func (c *controllers) propagate(ctx context.Context, from *caches, held plan.Set) error {
	p, err := propagation.New(propagation.Options{
		Client: c.client, Informers: from.informer, Federation: c.federation, Recorder: c.recorder, Workers: c.writes,
		Owns: func(_ *propagationplan.Kind, namespace, name string) bool {
			return held.Has(v1beta1.Shard(namespace, name))
		},
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	from.start(ctx)
	c.registry.Follow(ctx, engager{p, held})
	group.Go(func() error { return p.Run(ctx) })
	return group.Wait()
}

// engager passes members of the registry on to a propagation, which does not know the registry.
type engager struct {
	*propagation.Controller
	held plan.Set
}

// namespaces in members are watched whatever their shard: what goes into one waits for it.
var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Engage gives the propagation informers that nobody else has, and that end with it. They hold the copies of
// the shards that are held.
func (e engager) Engage(ctx context.Context, m *clusterregistry.Member) error {
	all, startAll := m.NewInformers(ctx, "")
	ours, startOurs := m.NewInformers(ctx, shardSelector(e.held))
	err := e.Controller.Engage(ctx, propagation.Member{
		Name: m.Name, Client: m.Dynamic,
		Informers: func(gvr schema.GroupVersionResource) cache.SharedIndexInformer {
			if gvr == namespaces {
				return all.ForResource(gvr).Informer()
			}
			return ours.ForResource(gvr).Informer()
		},
	})
	if err != nil {
		return err
	}
	startAll()
	startOurs()
	return nil
}

// shardSelector selects the copies of the objects of some shards; "" all copies.
func shardSelector(held plan.Set) string {
	if held == plan.All {
		return ""
	}
	values := make([]string, 0, held.Len())
	for _, shard := range held.Shards() {
		values = append(values, strconv.Itoa(shard))
	}
	return fmt.Sprintf("%s in (%s)", v1beta1.ShardLabel, strings.Join(values, ","))
}
