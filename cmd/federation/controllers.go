package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry"
	"federation/controllers/placement"
	"federation/controllers/propagation"
	"federation/controllers/servicedns"
	"federation/dnsprovider/authoritative"
)

// controllersOptions are the settings of the controllers and of DNS.
type controllersOptions struct {
	name           string
	gracePeriod    time.Duration
	writes         int
	zone           string
	dnsBindAddress string
	dnsTTL         time.Duration
	nameServers    []net.IP
	looks          looks
}

func newControllersOptions() *controllersOptions {
	return &controllersOptions{
		name: "federation", gracePeriod: placement.DefaultGracePeriod, writes: 16,
		zone: "federation.test", dnsBindAddress: "127.0.0.1:5353", dnsTTL: 15 * time.Second,
		looks: newLooks(),
	}
}

func (o *controllersOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.name, "name", o.name, "name of the federation: part of the DNS names of its Services (a DNS label)")
	fs.DurationVar(&o.gracePeriod, "cluster-grace-period", o.gracePeriod, "how long a cluster may be away before its replicas are placed elsewhere; DNS does not wait for it")
	o.looks.addFlags(fs)
	fs.IntVar(&o.writes, "concurrent-member-writes", o.writes, "writes under way at once to each member cluster")
	fs.StringVar(&o.zone, "dns-zone", o.zone, "DNS zone that the names are in: SERVICE.NAMESPACE.FEDERATION.svc[[.ZONE].REGION].DNS-ZONE")
	fs.StringVar(&o.dnsBindAddress, "dns-bind-address", o.dnsBindAddress, "HOST:PORT on which the authoritative DNS server answers, over UDP and TCP")
	fs.IPSliceVar(&o.nameServers, "dns-name-server-ips", nil, "`IP` addresses of the zone's name server ns.DNS-ZONE, as the delegation above the zone has them; without it the address in --dns-bind-address, if it is one")
	fs.Lookup("dns-name-server-ips").DefValue = ""
	fs.DurationVar(&o.dnsTTL, "dns-ttl", o.dnsTTL, "how long resolvers may keep an answer")
}

// validate names the flag, its value and what is allowed.
func (o *controllersOptions) validate() error {
	if errs := validation.IsDNS1123Label(o.name); len(errs) > 0 {
		return fmt.Errorf("--name %q: %s", o.name, errs[0])
	}
	if errs := validation.IsDNS1123Subdomain(o.zone); len(errs) > 0 {
		return fmt.Errorf("--dns-zone %q: %s", o.zone, errs[0])
	}
	if o.gracePeriod <= 0 {
		return fmt.Errorf("--cluster-grace-period %s: must be more than 0", o.gracePeriod)
	}
	if err := o.looks.validate(); err != nil {
		return err
	}
	if o.writes < 1 || o.writes > 1000 {
		return fmt.Errorf("--concurrent-member-writes %d: must be from 1 to 1000", o.writes)
	}
	if o.dnsTTL < time.Second || o.dnsTTL > 24*time.Hour {
		return fmt.Errorf("--dns-ttl %s: must be from 1s to 24h", o.dnsTTL)
	}
	if _, _, err := net.SplitHostPort(o.dnsBindAddress); err != nil {
		return fmt.Errorf("--dns-bind-address %q: must be HOST:PORT (%v)", o.dnsBindAddress, err)
	}
	return nil
}

// withDNS runs the DNS server and, beside it, do. The server answers SERVFAIL until it has been given
// the zone; its port is taken before anything else starts, so that a clash shows at once.
func (o *controllersOptions) withDNS(ctx context.Context, do func(context.Context, *authoritative.Server) error) error {
	servers := make([]netip.Addr, len(o.nameServers))
	for i, ip := range o.nameServers {
		servers[i], _ = netip.AddrFromSlice(ip)
		servers[i] = servers[i].Unmap()
	}
	dns, err := authoritative.New(authoritative.Options{Zone: o.zone, Listen: o.dnsBindAddress, NameServers: servers})
	if err != nil {
		return fmt.Errorf("--dns-bind-address %q: %w", o.dnsBindAddress, err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return dns.Run(ctx) })
	group.Go(func() error { return do(ctx, dns) })
	return group.Wait()
}

// run keeps the zone, and runs the controllers: at once, or when the Lease is ours.
func (o *controllersOptions) run(ctx context.Context, config *rest.Config, dns *authoritative.Server, elect bool) error {
	fmt.Fprintf(os.Stderr, "federation: DNS for %s on %s, over UDP and TCP\n", o.zone, dns.Addr())
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informers := func(gvr schema.GroupVersionResource) cache.SharedIndexInformer {
		informer := factory.ForResource(gvr).Informer()
		_ = informer.SetTransform(slim) // fails only once the informer runs, and then it is set
		return informer
	}
	names, err := servicedns.New(servicedns.Options{
		Informers: informers, Federation: o.name, Zone: o.zone, TTL: uint32(o.dnsTTL / time.Second), Provider: dns,
	})
	if err != nil {
		return err
	}
	control := func(ctx context.Context) error {
		return o.control(ctx, config, client, informers, func() { factory.Start(ctx.Done()) })
	}
	group, ctx := errgroup.WithContext(ctx)
	factory.Start(ctx.Done())
	group.Go(func() error { return names.Run(ctx) })
	group.Go(func() error {
		if elect {
			return lead(ctx, config, control)
		}
		return control(ctx)
	})
	return group.Wait()
}

// control runs the controllers that write to members: one process at a time. start starts informers
// that do not run yet.
func (o *controllersOptions) control(ctx context.Context, config *rest.Config, client dynamic.Interface, informers propagation.Informers, start func()) error {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	federation, err := clientset.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("the federation's UID is that of its namespace kube-system, which could not be read: %w", err)
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "federation"})

	placer, err := placement.New(placement.Options{Client: client, Informers: informers, Recorder: recorder, GracePeriod: o.gracePeriod})
	if err != nil {
		return err
	}
	propagator, err := propagation.New(propagation.Options{
		Client: client, Informers: informers, Federation: string(federation.UID), Recorder: recorder, Workers: o.writes,
	})
	if err != nil {
		return err
	}
	registry, err := clusterregistry.New(clusterregistry.Options{
		Config: config, FederationUID: string(federation.UID), Policy: o.looks.policy(), Timeout: o.looks.timeout,
	})
	if err != nil {
		return err
	}
	registry.Add(engager{propagator})

	group, ctx := errgroup.WithContext(ctx)
	start()
	group.Go(func() error { return placer.Run(ctx) })
	group.Go(func() error { return propagator.Run(ctx) })
	group.Go(func() error { return registry.Run(ctx) })
	return group.Wait()
}

// engager passes members of the registry on to propagation, which does not know the registry.
type engager struct{ *propagation.Controller }

func (e engager) Engage(ctx context.Context, m *clusterregistry.Member) error {
	return e.Controller.Engage(ctx, propagation.Member{
		Name: m.Name, Client: m.Dynamic,
		Informers: func(gvr schema.GroupVersionResource) cache.SharedIndexInformer {
			return m.Informers.ForResource(gvr).Informer()
		},
	})
}

// slim drops what is as large as the rest of an object and nobody here reads.
func slim(obj any) (any, error) {
	if o, err := meta.Accessor(obj); err == nil {
		o.SetManagedFields(nil)
	}
	return obj, nil
}

// lead runs do while the Lease federation-controllers is ours. Losing it ends the process: what is
// under way must not go on beside its successor.
func lead(ctx context.Context, config *rest.Config, do func(context.Context) error) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, v1beta1.FederationNamespace, "federation-controllers",
		resourcelock.ResourceLockConfig{Identity: fmt.Sprintf("%s-%d-%s", host, os.Getpid(), uuid.NewUUID())}, config, 10*time.Second)
	if err != nil {
		return err
	}
	started, result := make(chan struct{}), make(chan error, 1)
	electing, stop := context.WithCancel(ctx)
	defer stop()
	leaderelection.RunOrDie(electing, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				close(started)
				result <- do(ctx)
				stop()
			},
			OnStoppedLeading: func() {},
		},
	})
	select {
	case <-started:
		if err := <-result; err != nil || ctx.Err() != nil {
			return err
		}
		return errors.New("the Lease federation-controllers was lost to another process")
	default:
		return nil
	}
}
