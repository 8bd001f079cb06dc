package main

import (
	"context"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry"
	"federation/clusterregistry/wire"
	failoverplan "federation/controllers/failover/plan"
	"federation/controllers/mcs"
	"federation/controllers/shards/plan"
)

// multiClusterServices imports into members what is exported in others, of the shards that are held.
func (c *controllers) multiClusterServices(from *wire.Informers, held plan.Set) (func(context.Context) error, error) {
	exported, err := mcs.New(mcs.Options{
		Client: c.client, Informers: from.ForResource, Federation: c.federation, Recorder: c.recorder, Workers: c.writes,
		Held: func(clusters []*v1beta1.Cluster) map[string]bool {
			return failoverplan.CutOff(clusters, c.failover.settings, time.Now())
		},
		Owns: func(namespace, name string) bool { return held.Has(v1beta1.Shard(namespace, name)) },
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		c.registry.Follow(ctx, mcsEngager{exported, c.engager(nil, nil, held)})
		return exported.Run(ctx)
	}, nil
}

// mcsEngager passes members of the registry on.
type mcsEngager struct {
	*mcs.Controller
	members engager
}

// Engage gives the controller informers that nobody else has, and that end with them.
func (e mcsEngager) Engage(ctx context.Context, m *clusterregistry.Member) error {
	client, err := e.members.client(m)
	if err != nil {
		return err
	}
	return e.Controller.Engage(ctx, mcs.Member{
		Name: m.Name, Client: client,
		Ours: func(ctx context.Context, selector string) (mcs.Informers, func()) {
			i, start := m.NewInformers(ctx, both(shardSelector(e.members.held), selector))
			return i.ForResource, start
		},
		All: func(ctx context.Context, namespace string) (mcs.Informers, func()) {
			i, start := m.NewInformersOfAll(ctx, namespace)
			return i.ForResource, start
		},
	})
}

// both is a selector of what two select; "" selects all.
func both(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "," + b
}
