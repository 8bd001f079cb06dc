package main

import (
	"context"

	"k8s.io/client-go/kubernetes"

	"federation/clusterregistry/wire"
	"federation/controllers/manager"
	"federation/controllers/revisions"
)

// revisionsController keeps revisions of workloads. It has informers of its own for these, for nobody else reads any.
func (c *controllers) revisionsController(_ context.Context, from manager.Informers) (func(context.Context) error, error) {
	kube, err := kubernetes.NewForConfig(wire.Protobuf(c.config))
	if err != nil {
		return nil, err
	}
	kept := wire.NewInformers(wire.Source{Kube: kube, Dynamic: c.client, Slim: revisions.Slim, Select: revisions.Select})
	keeper, err := revisions.New(revisions.Options{Client: c.client, Informers: from.ForResource, Kept: kept.ForResource, Recorder: c.recorder})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		kept.Start(ctx.Done())
		return keeper.Run(ctx)
	}, nil
}
