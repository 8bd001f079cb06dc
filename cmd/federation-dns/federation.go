package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/wire"
	"federation/controllers/dnskeys"
	failoverplan "federation/controllers/failover/plan"
	"federation/controllers/servicedns"
	"federation/controllers/supervisor"
	"federation/dnsprovider"
	"federation/dnsprovider/authoritative"
)

// followFederation keeps the zone in line with the federation until ctx ends. It fails if the federation has another
// zone, and retries while it cannot be reached.
func (o *options) followFederation(ctx context.Context, z *zone) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("--kubeconfig %q: %w", o.kubeconfig, err)
	}
	config.QPS = -1
	from, kube, err := newInformers(config)
	if err != nil {
		return fmt.Errorf("--kubeconfig %q: %w", o.kubeconfig, err)
	}
	info, err := readInfo(ctx, kube)
	if err != nil {
		return nil // shutting down
	}
	if zone, err := dnsprovider.CanonicalName(info.DNSZone); err != nil || zone != o.zone {
		return fmt.Errorf("--zone %q: must be the zone of the federation %s, %q", o.zone, info.Name, info.DNSZone)
	}
	how := servicedns.Options{
		Informers: from.ForResource, Federation: info.Name, Zone: o.zone, TTL: uint32(info.DNSTTL / time.Second),
		Providers: []servicedns.NamedProvider{{Name: "built-in", Provider: z, Local: true}},
		Held: func(clusters []*v1beta1.Cluster) map[string]bool {
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
	go supervisor.Keep(ctx, "dns", func(ctx context.Context) { watchAway(ctx, askReady(kube), z.server.SetAway) })
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

func newInformers(config *rest.Config) (*wire.Informers, kubernetes.Interface, error) {
	custom, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	kube, err := kubernetes.NewForConfig(wire.Protobuf(config))
	if err != nil {
		return nil, nil, err
	}
	slim := func(o metav1.Object) { o.SetManagedFields(nil) }
	return wire.NewInformers(wire.Source{Kube: kube, Dynamic: custom, Slim: slim}), kube, nil
}

// readInfo waits until the federation publishes its configuration. It fails when ctx ends.
func readInfo(ctx context.Context, kube kubernetes.Interface) (info v1beta1.Info, err error) {
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		found, err := kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(ctx, v1beta1.InfoConfigMap, metav1.GetOptions{})
		if err == nil {
			info, err = v1beta1.ParseInfo(found.Data)
		}
		if err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Waiting for the federation to publish its configuration")
		}
		return err == nil, nil
	})
	return info, err
}
