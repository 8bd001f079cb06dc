package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/dnskeys"
	"federation/controllers/dnskeys/plan"
	"federation/controllers/supervisor"
	"federation/dnsprovider"
	"federation/dnsprovider/authoritative"
	"federation/dnsprovider/delegation"
	"federation/dnsprovider/dnssec"
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
	group.Go(supervisor.Protected(ctx, "dns-keys", keys.Run))
	select {
	case <-signed:
	case <-ctx.Done():
	}
	return nil
}

// keepKeys rolls the keys of the zone until ctx ends, where it is signed.
func (o *controllersOptions) keepKeys(ctx context.Context, kube kubernetes.Interface, recorder record.EventRecorder) error {
	if !o.dnssec {
		return nil
	}
	zone, err := dnsprovider.CanonicalName(o.zone)
	if err != nil {
		return err
	}
	settings := plan.DefaultSettings(dnssec.KeyTTL * time.Second)
	settings.Lifetime = o.keyLifetime
	dnskeys.Keeper{
		Secrets: kube.CoreV1().Secrets(v1beta1.FederationNamespace), Zone: zone, Settings: settings,
		Above: delegation.Asker{Servers: o.parentServers}.DS, Recorder: recorder,
	}.Run(ctx)
	return nil
}
