package main

import (
	"context"

	"k8s.io/client-go/kubernetes"

	"federation/clusterregistry/wire"
	"federation/controllers/manager"
	"federation/controllers/placementdecision"
)

// placementDecisions publishes where objects go that ask for it. It has informers of these alone: others cost nothing.
func (c *controllers) placementDecisions(_ context.Context, from manager.Informers) (func(context.Context) error, error) {
	kube, err := kubernetes.NewForConfig(wire.Protobuf(c.config))
	if err != nil {
		return nil, err
	}
	asking := wire.NewInformers(wire.Source{Kube: kube, Dynamic: c.client, Slim: manager.DropManagedFields, Select: placementdecision.Select})
	decisions, err := placementdecision.New(placementdecision.Options{Client: c.client, Informers: from.ForResource, Asking: asking.ForResource})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		asking.Start(ctx.Done())
		return decisions.Run(ctx)
	}, nil
}
