package main

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"federation/clusterregistry"
	"federation/controllers/manager"
	"federation/controllers/writegate"
)

// members are those of the registry, as the controllers know them.
type members struct {
	manager.Registry
	gate *writegate.Gate // writes to members pass it; nil where one process has all shards
}

// Follow implements manager.Members.
func (m members) Follow(ctx context.Context, engage func(context.Context, manager.Member) error) {
	m.FollowConnections(ctx, func(ctx context.Context, of *clusterregistry.Member) error {
		client := of.Dynamic
		if m.gate != nil {
			var err error
			if client, err = of.Through(m.gate.Wrap); err != nil {
				return err
			}
		}
		return engage(ctx, manager.Member{
			Name: of.Name, Client: client, HeartbeatsStale: of.HeartbeatsStale, SetForbidden: of.SetForbidden,
			Copies: informersFrom(of.NewInformers), All: informersFrom(of.NewInformersOfAll),
		})
	})
}

// informersFrom returns what a manager.Member has of a function that makes informers.
func informersFrom(make func(context.Context, string) (clusterregistry.Informers, func())) func(context.Context, string) (func(schema.GroupVersionResource) cache.SharedIndexInformer, func()) {
	return func(ctx context.Context, which string) (func(schema.GroupVersionResource) cache.SharedIndexInformer, func()) {
		i, start := make(ctx, which)
		return i.ForResource, start
	}
}

// Client implements manager.Members.
func (m members) Client(name string) (dynamic.Interface, error) {
	of, err := m.Member(name)
	if err != nil {
		return nil, err
	}
	return of.Dynamic, nil
}
