package main

import (
	"context"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/dnskeys"
	"federation/dnsprovider/authoritative"
)

// sign has the zone signed from now on, where that is asked for. It returns when the zone is signed or ctx
// ends: so nobody is answered from a zone that is not signed yet.
func (o *controllersOptions) sign(ctx context.Context, config *rest.Config, dns *authoritative.Server, group *errgroup.Group) error {
	if !o.dnssec {
		return nil
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	signed := make(chan struct{})
	keys := dnskeys.Options{
		Secrets: kube.CoreV1().Secrets(v1beta1.FederationNamespace), Zone: dns.Zone(), Make: true,
		Use: dns.Sign, Ready: func() { close(signed) },
	}
	group.Go(func() error { return keys.Run(ctx) })
	select {
	case <-signed:
	case <-ctx.Done():
	}
	return nil
}
