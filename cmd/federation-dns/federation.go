package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/cmd/internal/connection"
	"federation/controllers/dnskeys"
	failoverplan "federation/controllers/failover/plan"
	"federation/controllers/servicedns"
	"federation/controllers/supervisor"
	"federation/dnsprovider"
	"federation/dnsprovider/authoritative"
)

// followFederation keeps the zone in line with the federation until ctx ends. It fails if the federation has another
// zone, and retries while it cannot be reached.
func (o *options) followFederation(ctx context.Context, z *zone, heard *lastHeard) error {
	from, kube, err := connection.New(o.kubeconfig)
	if err != nil {
		return err
	}
	info, err := connection.WaitForInfo(ctx, kube)
	if err != nil {
		return nil // shutting down
	}
	if zone, err := dnsprovider.CanonicalName(info.DNSZone); err != nil || zone != o.zone {
		return fmt.Errorf("--zone %q: must be the zone of the federation %s, %q", o.zone, info.Name, info.DNSZone)
	}
	how := servicedns.Options{
		Informers: from.ForResource, Federation: info.Name, Zone: o.zone, TTL: uint32(info.DNSTTL / time.Second),
		Providers: []servicedns.NamedProvider{{Name: "built-in", Provider: z, Local: true}},
		CutOff: func(clusters []*v1beta1.Cluster) map[string]bool {
			return failoverplan.CutOff(clusters, failoverplan.SettingsOf(info), time.Now())
		},
		Kube: kube, Report: reportChanges(),
	}
	o.lookups.Fill(&how)
	names, err := servicedns.New(how)
	if err != nil {
		return err
	}
	if o.federationKeys && !waitSigned(ctx, kube, z.server) {
		return nil // shutting down
	}
	go supervisor.Keep(ctx, "dns", func(ctx context.Context) { watchAway(ctx, askReady(kube, heard), z.server.SetAway) })
	from.Start(ctx.Done())
	return names.Run(ctx)
}

// reportChanges returns a function that logs the zone's state when it changes.
func reportChanges() func(servicedns.ProviderState) {
	var last string
	return func(s servicedns.ProviderState) { // by one goroutine
		if text := s.Reason + s.Message; text != last {
			last = text
			klog.InfoS("Serving the federation's names", "published", s.Published, "reason", s.Reason, "message", s.Message)
		}
	}
}

// waitSigned has the zone signed with the federation's keys from now on. It returns false if ctx ends before.
func waitSigned(ctx context.Context, kube kubernetes.Interface, server *authoritative.Server) bool {
	signed := make(chan struct{})
	keys := dnskeys.Options{
		Secrets: kube.CoreV1().Secrets(v1beta1.FederationNamespace), Zone: server.Zone(), Use: server.Sign, Ready: sync.OnceFunc(func() { close(signed) }), // keys.Run may be called again
	}
	go supervisor.Keep(ctx, "dns-keys", func(ctx context.Context) { _ = keys.Run(ctx) }) // it ends with ctx, without an error
	select {
	case <-signed:
		return true
	case <-ctx.Done():
		return false
	}
}
