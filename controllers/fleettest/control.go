package fleettest

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

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
	"federation/controllers/election"
	failoverplan "federation/controllers/failover/plan"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/manager"
	readinessplan "federation/controllers/readiness/plan"
	"federation/controllers/servicedns"
	"federation/controllers/shards"
	shardsplan "federation/controllers/shards/plan"
	"federation/controllers/supervisor"
	"federation/controllers/writegate"
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

	done       <-chan struct{} // closed when it ends
	registry   manager.Registry
	statements *shards.Statements
	parts      *supervisor.Supervisor
	leads      atomic.Bool     // it decides, and reports what its registry finds
	leader     *writegate.Gate // of what only the leader writes; nil where one process does all
	shards     *writegate.Gate // of what only the holder of a shard writes
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
	if err := from.mayWrite(r); err != nil {
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
func (p *processes) newControl(i int) *control {
	f := p.fleet
	ctx, stop := context.WithCancel(f.ctx)
	p.started++
	c := &control{fleet: f, name: fmt.Sprintf("process-%d", p.started), dns: &DNS{}, offers: crosscluster.NewOffers(), stop: stop, done: ctx.Done(), slot: i + 1, uplink: f.uplinks[i], parts: supervisor.New()}
	if i == 0 {
		c.dns = f.DNS
	}
	c.client = c.uplink.client(f.Federation, "federation", c.carry, true)
	c.registry.Registry = c.newRegistry()
	c.statements = shards.NewStatements(func() map[string]bool {
		return failoverplan.Found(c.registry.Probes(), failoverplan.DefaultSettings().ProbeAge, time.Now())
	}, c.clock)
	parts := map[string]func(context.Context) error{
		"decide": c.decide, "work": func(ctx context.Context) error { return c.work(ctx, shardsplan.All) },
		"registry": c.watchOver, "isolation": c.isolate, "capacity": c.countRoom, "names": c.names,
	}
	if p.count > 1 {
		c.leader, c.shards = writegate.New(election.GateAfter, c.clock), writegate.New(shards.DefaultTiming().Deadline, c.clock)
		parts["decide"], parts["work"] = c.lead, c.share
	}
	for part, run := range parts {
		c.ended.Go(func() {
			if err := c.keepRunning(ctx, part, run); err != nil && ctx.Err() == nil {
				f.fail(err)
			}
		})
	}
	return c
}

// work works with some shards until ctx is done.
func (c *control) work(ctx context.Context, held shardsplan.Set) error {
	c.holds.Store(uint64(held))
	defer c.holds.Store(0)
	return c.as(sender{process: c.slot, gate: c.shards}, func(client *memapi.Client, of *members) error {
		m := c.manager(client, of)
		parts := m.Propagators(held)
		delete(parts, "mcs") // its kinds are not in memory
		return m.Run(ctx, newInformers(client, "", nil), held, parts)
	})
}

// decide decides until ctx is done: one process at a time does.
func (c *control) decide(ctx context.Context) error {
	c.leads.Store(true)
	defer c.leads.Store(false)
	return c.as(sender{process: c.slot, gate: c.leader, leads: true}, func(client *memapi.Client, of *members) error {
		m := c.manager(client, of)
		parts := m.Deciders()
		if !c.fleet.readiness.Load() {
			delete(parts, "readiness")
		}
		return m.Run(ctx, newInformers(client, "", nil), shardsplan.All, parts)
	})
}

// as runs do with clients of its own: all that it sends is of one session.
func (c *control) as(from sender, do func(client *memapi.Client, of *members) error) error {
	from.session = c.fleet.processes.sessions.Add(1)
	client := c.dial(from)
	defer c.uplink.hangUp(client)
	of := &members{control: c, Registry: c.registry, as: from, links: &links{}}
	defer of.links.hangUp()
	return do(client, of)
}

// reports reports whether what the registry finds is to be written.
func (c *control) reports() bool { return c.leads.Load() && (c.leader == nil || c.leader.Open()) }

// manager has the controllers that cmd/federation has. client is what they write to the federation with.
func (c *control) manager(client *memapi.Client, of *members) *manager.Manager {
	f := c.fleet
	return &manager.Manager{Options: manager.Options{
		Client: client, Federation: f.uid, Recorder: f.events, Info: infoOf(f), Members: of, Parts: c.parts,
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
		CutOff: func(clusters []*v1beta1.Cluster) map[string]bool {
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
	manager.Registry
	as    sender
	links *links
}

// Follow implements manager.Members.
func (m *members) Follow(ctx context.Context, engage func(context.Context, manager.Member) error) {
	m.FollowConnections(ctx, func(ctx context.Context, connection *clusterregistry.Member) error {
		of := m.fleet.Member(connection.Name)
		if of == nil { // it has just left
			return nil
		}
		context.AfterFunc(connection.Context(), func() { of.Wire.disconnect(m.slot) })
		client := m.links.to(of, m.as)
		return engage(ctx, manager.Member{
			Name: of.Name, Client: client, HeartbeatsStale: connection.HeartbeatsStale, SetForbidden: connection.SetForbidden,
			Copies: func(ctx context.Context, selector string) (func(schema.GroupVersionResource) cache.SharedIndexInformer, func()) {
				ours := v1beta1.ManagedByLabel + "=" + m.fleet.uid
				if selector != "" {
					ours += "," + selector
				}
				i := newInformers(client, ours, func(ctx context.Context, resource string, err error) { connection.WatchFailed(ctx, resource, err) })
				return i.ForResource, func() { i.Start(ctx.Done()) }
			},
		})
	})
}

// Client implements manager.Members.
func (m *members) Client(name string) (dynamic.Interface, error) {
	_, err := m.Member(name)
	of := m.fleet.Member(name)
	if err != nil || of == nil { // it has just left
		return nil, cmp.Or(err, clusterregistry.ErrNotConnected)
	}
	return m.links.to(of, m.as), nil
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
	broken   func(ctx context.Context, resource string, err error) // told of each list and watch that ends with an error
	factory  dynamicinformer.DynamicSharedInformerFactory

	mu    sync.Mutex
	known map[schema.GroupVersionResource]bool
}

func newInformers(client dynamic.Interface, selector string, broken func(context.Context, string, error)) *informers {
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
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		if i.broken != nil {
			i.broken(ctx, gvr.GroupResource().String(), err)
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
