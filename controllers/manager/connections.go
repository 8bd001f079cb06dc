package manager

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"federation/clusterregistry"
	"federation/controllers/writegate"
)

// Connections are Members that a process reaches over its registry's connections.
type Connections struct {
	Registry
	// Gate is passed by writes to members; nil where one process has all shards.
	Gate *writegate.Gate
}

// Follow implements Members.
func (c Connections) Follow(ctx context.Context, engage func(context.Context, Member) error) {
	c.FollowConnections(ctx, func(ctx context.Context, of *clusterregistry.Member) error {
		client := of.Dynamic
		if c.Gate != nil {
			var err error
			if client, err = of.Through(c.Gate.Wrap); err != nil {
				return err
			}
		}
		return engage(ctx, Member{
			Name: of.Name, Client: client, HeartbeatsStale: of.HeartbeatsStale, SetForbidden: of.SetForbidden,
			Copies: informersFrom(of.NewInformers), All: informersFrom(of.NewInformersOfAll),
		})
	})
}

// informersFrom returns what a Member has of a function that makes informers.
func informersFrom(make func(context.Context, string) (clusterregistry.Informers, func())) func(context.Context, string) (func(schema.GroupVersionResource) cache.SharedIndexInformer, func()) {
	return func(ctx context.Context, which string) (func(schema.GroupVersionResource) cache.SharedIndexInformer, func()) {
		i, start := make(ctx, which)
		return i.ForResource, start
	}
}

// Client implements Members.
func (c Connections) Client(name string) (dynamic.Interface, error) {
	of, err := c.Member(name)
	if err != nil {
		return nil, err
	}
	return of.Dynamic, nil
}

// Kube returns a client of a connected member for kinds of Kubernetes' own.
func (c Connections) Kube(name string) (kubernetes.Interface, error) {
	of, err := c.Member(name)
	if err != nil {
		return nil, err
	}
	return of.Core, nil
}
