package main

import (
	"context"

	"k8s.io/client-go/rest"

	"federation/controllers/clusterprofile"
	"federation/controllers/clusterprofile/plan"
	"federation/controllers/manager"
)

// clusterProfiles keeps a ClusterProfile for each Cluster. Clients reach the clusters through this server, by the address
// that is in its kubeconfig.
func (c *controllers) clusterProfiles(_ context.Context, from manager.Informers) (func(context.Context) error, error) {
	config := rest.CopyConfig(c.config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	profiles, err := clusterprofile.New(clusterprofile.Options{
		Client: c.client, Informers: from.ForResource, Federation: plan.Federation{Name: c.name, Server: config.Host, CA: config.CAData},
	})
	if err != nil {
		return nil, err
	}
	return profiles.Run, nil
}
