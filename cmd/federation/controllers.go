package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/apiserver"
	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry"
	"federation/clusterregistry/capacity"
	"federation/cmd/internal/logformat"
	"federation/controllers/crosscluster"
	"federation/controllers/drill"
	"federation/controllers/drill/clients"
	"federation/controllers/election"
	failoverplan "federation/controllers/failover/plan"
	"federation/controllers/federationinfo"
	"federation/controllers/manager"
	"federation/controllers/manager/served"
	"federation/controllers/readiness"
	"federation/controllers/servicedns"
	"federation/controllers/shards"
	"federation/controllers/shards/plan"
	"federation/controllers/supervisor"
	"federation/controllers/tracing/export"
	"federation/controllers/writegate"
	"federation/dnsprovider/authoritative"
)

// withDNS runs the DNS server and, beside it, do. The server answers SERVFAIL until it has been given
// the zone; its port is taken before anything else starts, so that a clash shows at once.
func (o *controllersOptions) withDNS(ctx context.Context, do func(context.Context, *authoritative.Server) error) error {
	options := authoritative.Options{Zone: o.zone, Listen: o.dnsBindAddress}
	if err := o.dnsServer.Fill(&options); err != nil {
		return err
	}
	if o.dnssec && len(options.Transfers.Keys) > 0 {
		return errors.New("--dns-transfer-key-file: must not be beside --dnssec: a signed zone cannot be transferred (ADR 32)")
	}
	dns, err := authoritative.New(options)
	if err != nil {
		return fmt.Errorf("--dns-bind-address %q: %w", o.dnsBindAddress, err)
	}
	dns.SpareProcessor()
	registry := legacyregistry.Registerer()
	if err := registry.Register(dns); err != nil {
		return fmt.Errorf("metrics of the DNS server: %w", err)
	}
	defer registry.Unregister(dns)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(supervisor.Protected(ctx, "dns", dns.Run))
	group.Go(supervisor.Protected(ctx, "dns", func(ctx context.Context) error { o.dnsServer.Follow(ctx); return nil }))
	group.Go(supervisor.Protected(ctx, "controllers", func(ctx context.Context) error { return do(ctx, dns) }))
	return group.Wait()
}

// keepRunning is run, again after a pause whenever it fails: API and DNS of this process go on.
func (o *controllersOptions) keepRunning(ctx context.Context, config *rest.Config, dns *authoritative.Server, several bool) error {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := federationinfo.Claim(ctx, kube, o.info()); err != nil {
		if ctx.Err() != nil {
			return nil // asked to end
		}
		return err
	}
	traces, err := apiserver.ReadTracing(o.tracingConfig)
	if err != nil {
		return err
	}
	var endTraces func()
	if o.spans, endTraces, err = export.Start(ctx, traces, election.ProcessName()); err != nil {
		return err
	}
	defer endTraces()
	go supervisor.Keep(ctx, "components", func(ctx context.Context) { federationinfo.ReportComponents(ctx, kube, election.HostName(), o.parts) })
	return o.parts.Run(ctx, "controllers", func(ctx context.Context) error { return o.run(ctx, config, dns, several) })
}

// run keeps the zone, and runs the controllers: all of them, or what is this process's share among several.
func (o *controllersOptions) run(ctx context.Context, config *rest.Config, dns *authoritative.Server, several bool) error {
	logformat.Announce("federation: DNS for %s on %s, over UDP and TCP", o.zone, dns.Addr())
	config = rest.CopyConfig(config)
	config.QPS = -1
	took := &drill.Writes{}
	config.Wrap(took.Wrap)
	client, err := manager.NewClient(config)
	if err != nil {
		return err
	}
	shared, err := manager.InformersOf(config, client, plan.All)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "federation"})
	status, offers := servicedns.NewProviderStatus(), crosscluster.NewOffers()
	how := servicedns.Options{
		Informers: shared.ForResource, Federation: o.name, Zone: o.zone, TTL: uint32(o.dnsTTL / time.Second),
		Providers: append([]servicedns.NamedProvider{{Name: "built-in", Provider: dns, Local: true}}, o.others...),
		CutOff: func(clusters []*v1beta1.Cluster) map[string]bool {
			return failoverplan.CutOff(clusters, o.failover.Settings, time.Now())
		},
		Spans: o.spans, Report: status.Report, Kube: kube, Client: client, Recorder: recorder, Offers: offers.Set,
	}
	leader := writegate.New(election.GateAfter, writegate.BootTime)
	if several {
		if how.Client, how.Kube, err = manager.NewClientsBehind(leader, config); err != nil {
			return err
		}
		how.Fence = leader.Check
	}
	o.lookups.Fill(&how)
	names, err := servicedns.New(how)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	shared.Start(ctx.Done())
	group.Go(supervisor.Protected(ctx, "servicedns", func(ctx context.Context) error {
		if err := o.sign(ctx, config, dns, group); err != nil {
			return err
		}
		return names.Run(ctx)
	}))
	group.Go(supervisor.Protected(ctx, "controllers", func(ctx context.Context) error {
		c := &controllers{controllersOptions: o, process: election.ProcessName(), took: took, config: config, client: client, kube: kube, recorder: recorder, names: names, offers: offers, dnsStatus: status, served: dns, several: several, leader: leader, shards: writegate.New(shards.DefaultTiming().Deadline, writegate.BootTime)}
		return c.run(ctx, shared)
	}))
	return group.Wait()
}

// controllers are those of one process.
type controllers struct {
	*controllersOptions
	config    *rest.Config
	client    dynamic.Interface
	names     *servicedns.Controller
	offers    *crosscluster.Offers
	dnsStatus *servicedns.ProviderStatus
	served    *authoritative.Server
	several   bool // processes share the work
	leads     atomic.Bool
	leader    *writegate.Gate // of what only the leader writes
	process   string          // its name, as Leases have it
	took      *drill.Writes   // how long its writes at the federation take
	shards    *writegate.Gate // of what only the holder of a shard writes

	kube       kubernetes.Interface
	federation string // its UID
	recorder   record.EventRecorder
	registry   *clusterregistry.Registry
	statements *shards.Statements // of the processes; nil where there is one
}

// run runs the controllers until ctx is done. shared are the caches of who is alone.
func (c *controllers) run(ctx context.Context, shared manager.Informers) (err error) {
	if c.federation, err = federationinfo.UID(ctx, c.kube); err != nil {
		return nil // asked to end
	}
	c.registry, err = clusterregistry.New(clusterregistry.Options{
		Config: c.config, Recorder: c.recorder, FederationUID: c.federation, Policy: c.healthCheck.Policy(), Timeout: c.healthCheck.Timeout, Limits: c.memberLimits.Limits(), Tunnel: c.tunnel, TokenLifetime: c.memberTokens,
		Report: func() bool { return !c.several || c.leads.Load() && c.leader.Open() },
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(supervisor.Protected(ctx, "registry", c.registry.Run))
	if c.several {
		c.statements = shards.NewStatements(c.found, nil)
		c.share(ctx, group)
	} else {
		group.Go(supervisor.Protected(ctx, "controllers", func(ctx context.Context) error { return c.decide(ctx, shared) }))
		group.Go(supervisor.Protected(ctx, "controllers", func(ctx context.Context) error { return c.propagate(ctx, shared, plan.All) }))
	}
	return group.Wait()
}

// share runs what is this process's share: if it leads, the decisions; and the shards that it holds.
func (c *controllers) share(ctx context.Context, group *errgroup.Group) {
	group.Go(c.part(ctx, "leader", func(ctx context.Context) error {
		return election.Lead(ctx, c.kube.CoordinationV1(), c.process, c.leader, func(ctx context.Context) error {
			c.leads.Store(true)
			defer c.leads.Store(false)
			leader, err := c.behind(c.leader)
			if err != nil {
				return err
			}
			from, err := manager.InformersOf(c.config, c.client, plan.All)
			if err != nil {
				return err
			}
			return leader.decide(ctx, from)
		})
	}))
	group.Go(c.part(ctx, "shards", func(ctx context.Context) error {
		err := shards.Run(ctx, shards.Options{
			Leases: c.kube.CoordinationV1().Leases(v1beta1.FederationNamespace), Name: c.process, Renewed: c.shards.Renewed, Statements: c.statements,
			Work: func(ctx context.Context, held plan.Set) error {
				holder, err := c.behind(c.shards)
				if err != nil {
					return err
				}
				from, err := manager.InformersOf(c.config, c.client, held)
				if err != nil {
					return err
				}
				return holder.propagate(ctx, from, held)
			},
		})
		if errors.Is(err, shards.ErrStuck) {
			return supervisor.Fatal(err)
		}
		return err
	}))
}

// behind returns the same controllers with clients that write only while a gate is open.
func (c *controllers) behind(gate *writegate.Gate) (*controllers, error) {
	client, kube, err := manager.NewClientsBehind(gate, c.config)
	if err != nil {
		return nil, err
	}
	return &controllers{
		controllersOptions: c.controllersOptions, process: c.process, took: c.took, config: c.config, client: client, kube: kube, names: c.names, offers: c.offers, dnsStatus: c.dnsStatus, served: c.served,
		several: c.several, leader: c.leader, shards: c.shards, federation: c.federation, recorder: c.recorder, registry: c.registry, statements: c.statements,
	}, nil
}

// part returns what runs a part of the process until ctx is done, whatever becomes of it meanwhile.
func (c *controllers) part(ctx context.Context, name string, run func(context.Context) error) func() error {
	return func() error { return c.parts.Run(ctx, name, run) }
}

// manager has the controllers that all processes have, real or simulated.
func (c *controllers) manager() *manager.Manager {
	asks := clients.New(clients.Options{Resolve: clients.Server(c.served.Addr()), Refuse: c.lookups.Refuse(), TTL: c.dnsTTL, Federation: c.name, Zone: c.zone, Observe: drill.ObserveProbe})
	return &manager.Manager{Options: manager.Options{
		Client: c.client, Federation: c.federation, Recorder: c.recorder, Info: c.info(), Members: c.members(), Parts: c.parts,
		NewInformers: func(held plan.Set) (manager.Informers, error) { return manager.InformersOf(c.config, c.client, held) },
		Failover:     c.failoverSettings(), Others: c.stated, SecretsEverywhere: c.propagateSecrets == secretsAll, Levels: c.levels, Spent: readiness.ThreadTime,
		Drills: manager.Drills{Process: c.process, Writes: c.took, Leases: c.kube.CoordinationV1().Leases(v1beta1.FederationNamespace), Clients: asks, Records: manager.RecordsServed(c.served.RecordsOf)},
		Writes: c.writes, Reports: c.reports, Spans: c.spans, ObjectMetrics: c.objectMetricsSeries(), Unschedulable: c.unschedulable, Offers: c.offers, Withdraw: !c.endpoints,
	}}
}

func (c *controllers) members() manager.Connections {
	m := manager.Connections{Registry: manager.Registry{Registry: c.registry}}
	if c.several {
		m.Gate = c.shards
	}
	return m
}

// decide runs what looks at all objects, in one process at a time.
func (c *controllers) decide(ctx context.Context, from manager.Informers) error {
	group, ctx := errgroup.WithContext(ctx)
	m := c.manager()
	parts := m.Deciders()
	own := served.Options{
		Config: c.config, Client: c.client, Kube: c.kube, Recorder: c.recorder, Federation: c.name, Ranges: c.ranges, UID: c.federation, Member: c.members().Kube,
	}
	maps.Copy(parts, own.Deciders())
	c.registry.Follow(ctx, capacity.New(capacity.Options{Client: c.client, Unschedulable: c.unschedulable}))
	group.Go(supervisor.Protected(ctx, "controllers", func(ctx context.Context) error { return m.Run(ctx, from, plan.All, parts) }))
	group.Go(c.part(ctx, "dns-conditions", func(ctx context.Context) error { c.names.Lead(ctx); return nil }))
	group.Go(c.part(ctx, "dns-providers", func(ctx context.Context) error { c.dnsStatus.Run(ctx, c.kube); return nil }))
	if c.dnssec {
		group.Go(c.part(ctx, "dns-keys", func(ctx context.Context) error { return c.keepKeys(ctx, c.kube, c.recorder) }))
	}
	group.Go(supervisor.Protected(ctx, "controllers", func(ctx context.Context) error { federationinfo.Publish(ctx, c.kube, c.info()); return nil }))
	return group.Wait()
}

// propagate brings members to what the federation says of the objects of the shards that are held.
func (c *controllers) propagate(ctx context.Context, from manager.Informers, held plan.Set) error {
	m := c.manager()
	return m.Run(ctx, from, held, m.Propagators(held))
}

// failoverSettings are those of the flags, with the age that a probe may have: three periods and the time that one may take.
func (c *controllers) failoverSettings() failoverplan.Settings {
	s := c.failover.Settings
	s.ProbeAge = 3*c.healthCheck.Period + c.healthCheck.Timeout
	return s
}

// found are the clusters that this process has probed lately, and whether they are well.
func (c *controllers) found() map[string]bool {
	return failoverplan.Found(c.members().Probes(), c.failoverSettings().ProbeAge, time.Now())
}

// stated is what the other processes say of clusters.
func (c *controllers) stated() map[string]failoverplan.Statement {
	said := map[string]failoverplan.Statement{}
	if c.statements == nil {
		return said
	}
	for process, s := range c.statements.Others() {
		said[process] = failoverplan.Statement(s)
	}
	return said
}
