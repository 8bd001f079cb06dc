package fleettest

import (
	"context"
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
	"federation/controllers/drill"
	drillplan "federation/controllers/drill/plan"
	failoverplan "federation/controllers/failover/plan"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/manager"
	readinessplan "federation/controllers/readiness/plan"
	"federation/controllers/servicedns"
	"federation/controllers/shards"
	shardsplan "federation/controllers/shards/plan"
	"federation/controllers/supervisor"
)

// control is one process of the federation. Its controllers are wired by package manager, as cmd/federation's are.
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
		lease: newInformers(c.client, "", nil).ForResource(leasesResource.GroupVersionResource)}
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
	of := &members{control: c, as: as, links: &links{}}
	defer of.links.hangUp()
	group, ctx := errgroup.WithContext(ctx)
	m := c.manager(client, of)
	parts := m.Propagators(held)
	delete(parts, "mcs") // its kinds are not in memory
	group.Go(supervisor.Protected(ctx, "work", func(ctx context.Context) error { return m.Run(ctx, newInformers(client, "", nil), held, parts) }))
	if held.Has(0) {
		as.leads = true
		client := c.dial(as)
		defer c.uplink.hangUp(client)
		m := c.manager(client, of)
		parts := m.Deciders()
		if !c.fleet.readiness.Load() {
			delete(parts, "readiness")
		}
		c.registry.reports.Store(true)
		defer c.registry.reports.Store(false)
		group.Go(supervisor.Protected(ctx, "work", func(ctx context.Context) error {
			return m.Run(ctx, newInformers(client, "", nil), shardsplan.All, parts)
		}))
	}
	return group.Wait()
}

// manager has the controllers that cmd/federation has. client is what they write to the federation with.
func (c *control) manager(client *memapi.Client, of *members) *manager.Manager {
	f := c.fleet
	return &manager.Manager{Options: manager.Options{
		Client: client, Federation: f.uid, Recorder: f.events, Info: f.info(), Members: of, Parts: c.parts,
		NewInformers: func(shardsplan.Set) (manager.Informers, error) { return newInformers(client, "", nil), nil },
		Failover:     f.Settings.failover(), Others: c.stated, Levels: []readinessplan.Level{readinessplan.Zone, readinessplan.Region}, Offers: c.offers,
		Drills: manager.Drills{Process: c.name, Writes: &drill.Writes{}, Leases: leasesOf(client), Records: func(context.Context, []drillplan.Record) (map[drillplan.Record][]string, error) {
			return c.dns.data(), nil
		}},
	}}
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
		Informers: from.ForResource, Federation: "fed", Zone: zone, Resolver: noResolver{}, Offers: c.offers.Set,
		Providers: []servicedns.NamedProvider{{Name: "fleet", Provider: c.dns, Local: true}}, Client: client, Recorder: f.events,
		Held: func(clusters []*v1beta1.Cluster) map[string]bool {
			return failoverplan.CutOff(clusters, f.Settings.failover(), time.Now())
		},
	})
	if err != nil {
		return err
	}
	from.Start(ctx.Done())
	return names.Run(ctx)
}

// members are the members of a process, as its controllers know them.
type members struct {
	*control
	as    sender
	links *links
}

// Follow implements manager.Members.
func (m *members) Follow(ctx context.Context, engage func(context.Context, manager.Member) error) {
	m.registry.follow(ctx, func(ctx context.Context, of *Member) error {
		client := m.links.to(of, m.as)
		return engage(ctx, manager.Member{
			Name: of.Name, Client: client, HeartbeatsStale: func() bool { return m.fleet.silent(of) }, SetForbidden: func(string, bool) {},
			Copies: func(ctx context.Context, selector string) (func(schema.GroupVersionResource) cache.SharedIndexInformer, func()) {
				ours := v1beta1.ManagedByLabel + "=" + m.fleet.uid
				if selector != "" {
					ours += "," + selector
				}
				i := newInformers(client, ours, func() { m.registry.lookNow(of.Name) })
				return i.ForResource, func() { i.Start(ctx.Done()) }
			},
		})
	})
}

// Client implements manager.Members.
func (m *members) Client(name string) (dynamic.Interface, error) {
	of := m.registry.connected(name)
	if of == nil {
		return nil, fmt.Errorf("cluster %q: %w", name, clusterregistry.ErrNotConnected)
	}
	return m.links.to(of, m.as), nil
}

// Probes implements manager.Members.
func (m *members) Probes() map[string]failoverplan.Probe { return m.registry.probes() }

// Isolated implements manager.Members.
func (m *members) Isolated() ([]string, bool) { return m.registry.isolated() }

// DeadBehind implements manager.Members.
func (m *members) DeadBehind() []string { return m.registry.deadBehind() }

// Blackholed implements manager.Members.
func (m *members) Blackholed() []string { return m.registry.blackholed() }

// NodeAgents implements manager.Members.
func (m *members) NodeAgents(ctx context.Context, cluster string) drillplan.NodeAgents {
	return agents(ctx, cluster)
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

// end ends the process and waits until nothing of it is left. What is under way in members may still be carried out.
func (c *control) end() {
	c.stop()
	c.uplink.disconnect()
	c.ended.Wait()
}

// informers are a view of one API.
type informers struct {
	client   dynamic.Interface
	selector string
	broken   func()
	factory  dynamicinformer.DynamicSharedInformerFactory

	mu    sync.Mutex
	known map[schema.GroupVersionResource]bool
}

func newInformers(client dynamic.Interface, selector string, broken func()) *informers {
	return &informers{client: client, selector: selector, broken: broken, known: map[schema.GroupVersionResource]bool{}, factory: dynamicinformer.NewFilteredDynamicSharedInformerFactory(
		client, 0, metav1.NamespaceAll, func(o *metav1.ListOptions) { o.LabelSelector = selector })}
}

// ForResource implements manager.Informers.
func (i *informers) ForResource(gvr schema.GroupVersionResource) cache.SharedIndexInformer {
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
	return informer
}

// Another implements manager.Informers.
func (i *informers) Another() manager.Informers { return newInformers(i.client, i.selector, i.broken) }

// Start implements manager.Informers.
func (i *informers) Start(done <-chan struct{}) { i.factory.Start(done) }

// slim keeps of an object what the federation's caches do.
func slim(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		clusterregistry.Slim(o)
	}
	return obj, nil
}

// tick is how often the world goes on by itself.
const tick = 100 * time.Millisecond
