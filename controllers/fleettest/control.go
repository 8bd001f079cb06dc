package fleettest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry"
	"federation/controllers/crosscluster"
	"federation/controllers/customkinds"
	customkindsplan "federation/controllers/customkinds/plan"
	"federation/controllers/drain"
	"federation/controllers/drill"
	drillplan "federation/controllers/drill/plan"
	"federation/controllers/failover"
	failoverplan "federation/controllers/failover/plan"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/placement"
	"federation/controllers/propagation"
	"federation/controllers/propagation/plan"
	standing "federation/controllers/readiness"
	readinessplan "federation/controllers/readiness/plan"
	"federation/controllers/servicedns"
	"federation/controllers/shards"
	shardsplan "federation/controllers/shards/plan"
	"federation/controllers/supervisor"
)

// control is one process of the federation: its controllers, wired as cmd/federation wires them.
type control struct {
	fleet  *Fleet
	name   string
	slot   int // 1, 2, …
	uplink *uplink
	client *memapi.Client
	dns    *DNS
	offers *crosscluster.Offers
	stop   context.CancelFunc
	ended  sync.WaitGroup
	dead   atomic.Bool // it has died, and nobody has noticed

	registry   *registry
	statements *shards.Statements
	parts      *supervisor.Supervisor
	// holds are the shards that it works with now.
	holds atomic.Uint64
}

// carry is the wire between the process and the federation's API.
func (c *control) carry(ctx context.Context, r memapi.Request, do func() error) error {
	return c.send(ctx, sender{process: c.slot}, r, do)
}

func (c *control) send(ctx context.Context, from sender, r memapi.Request, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.fleet.sends(from, r)
	return c.uplink.through(ctx, r, do, func(r memapi.Request, err error) { c.fleet.wrote("federation", from, r, err) })
}

// dial makes a client of the federation's API for what somebody in the process sends.
func (c *control) dial(from sender) *memapi.Client {
	return c.uplink.client(c.fleet.Federation, "federation", func(ctx context.Context, r memapi.Request, do func() error) error {
		c.fleet.panics.countDown(from.process)
		return c.send(ctx, from, r, do)
	}, false)
}

// newControl starts a process. The first has the fleet's DNS, others their own, as each process has.
func (f *Fleet) newControl(i int) *control {
	ctx, stop := context.WithCancel(f.ctx)
	f.started++
	c := &control{fleet: f, name: fmt.Sprintf("process-%d", f.started), dns: &DNS{}, offers: crosscluster.NewOffers(), stop: stop, slot: i + 1, uplink: f.uplinks[i], parts: supervisor.New()}
	if i == 0 {
		c.dns = f.DNS
	}
	c.client = c.uplink.client(f.Federation, "federation", c.carry, true)
	c.registry = &registry{process: c.slot, client: c.client, events: f.events, members: f.joined, cluster: f.cluster, room: f.room, silent: f.silent, keepers: map[string]*keeper{},
		lease: newInformers(c.client, "", nil).get(leasesResource.GroupVersionResource)}
	c.statements = shards.NewStatements(func() map[string]bool {
		return failoverplan.Found(c.registry.probes(), failoverplan.DefaultSettings().ProbeAge, time.Now())
	}, c.clock)
	run := func(ctx context.Context) error { return c.work(ctx, shardsplan.All) }
	if f.processes > 1 {
		run = c.share
	}
	for part, run := range map[string]func(context.Context) error{"work": run, "registry": c.registry.run, "names": c.names} {
		c.ended.Go(func() {
			if err := c.keepRunning(ctx, part, run); err != nil && ctx.Err() == nil {
				f.fail(err)
			}
		})
	}
	return c
}

// work works with some shards until ctx is done, and decides if the first is among them.
func (c *control) work(ctx context.Context, held shardsplan.Set) error {
	as := sender{process: c.slot, session: c.fleet.sessions.Add(1)}
	client := c.dial(as)
	defer c.uplink.hangUp(client)
	c.holds.Store(uint64(held))
	defer c.holds.Store(0)
	from := newInformers(client, "", nil)
	group, ctx := errgroup.WithContext(ctx)
	p := propagators{control: c, as: as, client: client, from: from, held: held, links: &links{}}
	defer p.links.hangUp()
	runs, err := p.all(ctx)
	if held.Has(0) {
		as.leads = true
		client := c.dial(as)
		defer c.uplink.hangUp(client)
		deciders, err2 := p.deciders(client, from.get)
		runs, err = append(runs, deciders...), errors.Join(err, err2)
		c.registry.reports.Store(true)
		defer c.registry.reports.Store(false)
	}
	if err != nil {
		return err
	}
	from.start(ctx)
	for _, run := range runs {
		group.Go(supervisor.Protected(ctx, "work", run))
	}
	return group.Wait()
}

// deciders are the controllers that look at all objects.
func (p propagators) deciders(client *memapi.Client, from func(schema.GroupVersionResource) cache.SharedIndexInformer) (runs []func(context.Context) error, err error) {
	f, c := p.fleet, p.control
	placer, err1 := placement.New(placement.Options{
		Client: client, Informers: from, Recorder: f.events, Definitions: from(customkinds.Definitions), Resolve: customkinds.Resolver(from(customkinds.Definitions)), Start: func() {},
	})
	over, err2 := failover.New(failover.Options{Client: client, Informers: from, Recorder: f.events, Settings: f.Settings.failover(), Probes: c.registry.probes, Others: c.stated})
	drills, err3 := drill.New(drill.Options{Client: client, Informers: from, Recorder: f.events, Info: f.info(),
		Process: c.name, Writes: &drill.Writes{}, Leases: leasesOf(client), Isolated: c.registry.isolated, DeadBehind: c.registry.deadBehind, Blackholed: c.registry.blackholed, NodeAgents: agents,
		Records: func(context.Context, []drillplan.Record) (map[drillplan.Record][]string, error) {
			return c.dns.data(), nil
		}})
	schedules, err4 := drill.NewSchedules(client, from, f.events)
	drains, err5 := drain.New(drain.Options{Client: client, Informers: from, Recorder: f.events, Federation: f.uid, TTL: f.info().DNSTTL, Member: p.member, Resolve: customkinds.Resolver(from(customkinds.Definitions))})
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return nil, err
	}
	runs = append(runs, placer.Run, over.Run, drills.Run, schedules.Run, drains.Run)
	if !f.readiness.Load() {
		return runs, nil
	}
	ready, err := standing.New(standing.Options{
		Client: client, Informers: from, Recorder: f.events, Info: f.info(), Settings: f.Settings.failover(), Levels: []readinessplan.Level{readinessplan.Zone, readinessplan.Region},
	})
	return append(runs, ready.Run), err
}

// member is a client of a member that is connected.
func (p propagators) member(name string) (dynamic.Interface, error) {
	m := p.registry.connected(name)
	if m == nil {
		return nil, fmt.Errorf("cluster %q: %w", name, clusterregistry.ErrNotConnected)
	}
	return p.links.to(m, p.as), nil
}

// stated is what the other processes say of clusters.
func (c *control) stated() map[string]failoverplan.Statement {
	said := map[string]failoverplan.Statement{}
	for process, s := range c.statements.Others() {
		said[process] = failoverplan.Statement(s)
	}
	return said
}

// names keeps the zone, and what clusters have of Services. Each process does.
func (c *control) names(ctx context.Context) error {
	f, client := c.fleet, c.dial(sender{process: c.slot})
	defer c.uplink.hangUp(client)
	from := newInformers(client, "", nil)
	names, err := servicedns.New(servicedns.Options{
		Informers: from.get, Federation: "fed", Zone: zone, Resolver: noResolver{}, Offers: c.offers.Set,
		Providers: []servicedns.NamedProvider{{Name: "fleet", Provider: c.dns, Local: true}}, Client: client, Recorder: f.events,
		Held: func(clusters []*v1beta1.Cluster) map[string]bool {
			return failoverplan.CutOff(clusters, f.Settings.failover(), time.Now())
		},
	})
	if err != nil {
		return err
	}
	from.start(ctx)
	return names.Run(ctx)
}

// all are the controllers that bring members to what the federation says of the objects of the shards.
func (p propagators) all(ctx context.Context) (runs []func(context.Context) error, err error) {
	builtIn, err1 := p.propagation(nil, nil)
	custom, err2 := customkinds.New(customkinds.Options{Informers: p.from.get, Work: p.propagateKind})
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	others := crosscluster.New(crosscluster.Options{
		Offers: p.offers, Federation: p.fleet.uid, Recorder: p.fleet.events,
		Owns: func(namespace, name string) bool { return p.held.Has(v1beta1.Shard(namespace, name)) },
	})
	p.registry.follow(ctx, p.engager(builtIn, others))
	return []func(context.Context) error{builtIn.Run, others.Run, custom.Run}, nil
}

// propagators make the propagations of some shards.
type propagators struct {
	*control
	as     sender
	client *memapi.Client
	from   *informers
	held   shardsplan.Set
	links  *links
}

// links are the clients of members that somebody has.
type links struct {
	mu      sync.Mutex
	clients map[*Member]*memapi.Client
}

func (l *links) to(m *Member, as sender) *memapi.Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clients[m] == nil {
		if l.clients == nil {
			l.clients = map[*Member]*memapi.Client{}
		}
		l.clients[m] = m.Wire.dial(as)
	}
	return l.clients[m]
}

func (l *links) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for m, c := range l.clients {
		m.Wire.hangUp(c)
	}
	l.clients = nil
}

// propagation makes one for some kinds, or all that are built in.
func (p propagators) propagation(kinds []plan.Kind, owns func(name string) bool) (*propagation.Controller, error) {
	return propagation.New(propagation.Options{
		Client: p.client, Informers: p.from.get, Federation: p.fleet.uid, Recorder: p.fleet.events, Kinds: kinds, Shared: p.held != shardsplan.All || owns != nil,
		Owns: func(_ *plan.Kind, namespace, name string) bool {
			return p.held.Has(v1beta1.Shard(namespace, name)) && (owns == nil || owns(name))
		},
	})
}

// propagateKind propagates the objects of a custom kind, and its definition before them.
func (p propagators) propagateKind(ctx context.Context, k customkindsplan.Kind) error {
	definition, err := p.propagation([]plan.Kind{plan.CustomResourceDefinitions}, func(name string) bool { return name == k.Definition })
	if err != nil {
		return err
	}
	objects, err := p.propagation([]plan.Kind{plan.CustomKind(k.Resource, k.Kind)}, nil)
	if err != nil {
		ended, end := context.WithCancel(ctx)
		end()
		return errors.Join(err, definition.Run(ended)) // for what it has begun
	}
	p.registry.follow(ctx, p.engager(definition, nil))
	p.registry.follow(ctx, func(ctx context.Context, m *Member) error {
		go supervisor.Keep(ctx, "propagation", func(ctx context.Context) { p.onceServed(ctx, m, k.Resource, p.engager(objects, nil)) })
		return nil
	})
	var both sync.WaitGroup
	var errs [2]error
	both.Go(func() { errs[0] = supervisor.Protect(ctx, "propagation", func() error { return definition.Run(ctx) }) })
	both.Go(func() { errs[1] = supervisor.Protect(ctx, "propagation", func() error { return objects.Run(ctx) }) })
	both.Wait()
	return errors.Join(errs[:]...)
}

// onceServed engages a member as soon as it serves a custom kind.
func (p propagators) onceServed(ctx context.Context, m *Member, gvr schema.GroupVersionResource, engage engager) {
	for {
		if _, err := p.links.to(m, p.as).Resource(gvr).List(ctx, metav1.ListOptions{}); err == nil {
			_ = engage(ctx, m) // it fails only for informers that have ended already
			return
		}
		if sleep(ctx, 500*time.Millisecond) != nil {
			return
		}
	}
}

// engager has a propagation take up work in a member, with informers of its own, some of which have the copies
// of all shards. others, if they are not nil, work with the same.
func (p propagators) engager(c *propagation.Controller, others *crosscluster.Controller) engager {
	return func(ctx context.Context, m *Member) error {
		broken := func() { p.registry.lookNow(m.Name) }
		client := p.links.to(m, p.as)
		all, ours := newInformers(client, p.selector(shardsplan.All), broken), newInformers(client, p.selector(p.held), broken)
		err := c.Engage(ctx, propagation.Member{Name: m.Name, Client: client, HeartbeatsStale: func() bool { return p.fleet.silent(m) }, Informers: func(gvr schema.GroupVersionResource) cache.SharedIndexInformer {
			if propagation.OfAllShards(gvr) {
				return all.get(gvr)
			}
			return ours.get(gvr)
		}})
		if err == nil && others != nil {
			err = others.Engage(ctx, crosscluster.Member{Name: m.Name, Client: client, Informers: ours.get})
		}
		if err != nil {
			return err
		}
		all.start(ctx)
		ours.start(ctx)
		return nil
	}
}

// end ends the process and waits until nothing of it is left. What is under way in members may still be carried out.
func (c *control) end() {
	c.stop()
	c.uplink.disconnect()
	c.ended.Wait()
}

// informers are a process's view of one API.
type informers struct {
	factory dynamicinformer.DynamicSharedInformerFactory
	broken  func()

	mu    sync.Mutex
	known map[schema.GroupVersionResource]bool
	ctx   context.Context // of the informers that run; nil before the start
}

func newInformers(client dynamic.Interface, selector string, broken func()) *informers {
	return &informers{broken: broken, known: map[schema.GroupVersionResource]bool{}, factory: dynamicinformer.NewFilteredDynamicSharedInformerFactory(
		client, 0, metav1.NamespaceAll, func(o *metav1.ListOptions) { o.LabelSelector = selector })}
}

func (i *informers) get(gvr schema.GroupVersionResource) cache.SharedIndexInformer {
	i.mu.Lock()
	defer i.mu.Unlock()
	informer := i.factory.ForResource(gvr).Informer()
	if i.known[gvr] {
		return informer
	}
	i.known[gvr] = true
	// Both fail only on an informer that runs already.
	_ = informer.SetTransform(slim)
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, _ error) {
		if i.broken != nil && ctx.Err() == nil {
			i.broken()
		}
	})
	if i.ctx != nil {
		i.factory.Start(i.ctx.Done())
	}
	return informer
}

func (i *informers) start(ctx context.Context) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ctx = ctx
	i.factory.Start(ctx.Done())
}

// slim keeps of an object what the federation's caches do.
func slim(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		clusterregistry.Slim(o)
	}
	return obj, nil
}

// tick is how often the world goes on by itself.
const tick = 100 * time.Millisecond
