package servicedns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/servicedns/plan"
	"federation/controllers/supervisor"
	"federation/controllers/tracing"
	"federation/dnsprovider"
)

// Informers hands out informers of the federation that are shared with others and started by them.
type Informers func(schema.GroupVersionResource) cache.SharedIndexInformer

// Options are what a Controller needs.
type Options struct {
	Informers Informers
	// Federation is the federation's name, a DNS label.
	Federation string
	// Zone is the name of the DNS zone.
	Zone string
	// TTL of the records in seconds. Default: 15.
	TTL uint32
	// Providers hold the zone, each independently.
	Providers []NamedProvider
	// CutOff, if set, returns the names of the Clusters whose addresses stay though they are unreachable: they vanished
	// together with most others, so the federation itself may be cut off.
	CutOff func([]*v1beta1.Cluster) map[string]bool
	// Report, if set, is called after each pass over a provider, by that provider's goroutine.
	Report func(ProviderState)
	// Offers, if set, is called after each pass with what clusters have of the Services in that pass, by
	// namespace/name; the first time with all Services. Nil means that the Service does not exist. Services that cannot
	// be parsed are left out. Who has neither Providers nor a Client gets these alone: no names are planned.
	Offers func(map[string][]plan.Offer)
	// Kept, if set, is called with the owners of hosts when these have changed. The map is not changed in place.
	Kept func(map[string]plan.Keep)
	// Balancers, if set, is called with the federation's own load balancers when they have changed.
	Balancers func([]plan.LoadBalancer)
	// Kube, if set, is a client of the federation to read and write which load balancers fail their health checks.
	// Without it nothing is checked.
	Kube kubernetes.Interface
	// Client and Recorder, if both are set, write conditions and events about the state in DNS.
	Client   dynamic.Interface
	Recorder record.EventRecorder
	// Fence, if set, is asked before each change of a provider that is not Local. It returns an error when another process
	// may lead by now.
	Fence func() error
	// Spans records what becomes of traced writes; nil: none are.
	Spans *tracing.Spans
	// Resolver looks up host names of load balancers. Default: net.DefaultResolver.
	Resolver Resolver
	// Refuse returns an error for load balancer addresses that are not used. Default: v1beta1.RefuseAddress.
	Refuse func(netip.Addr) error
}

// Controller keeps the names of one federation in DNS. Make it with New.
type Controller struct {
	Options
	stores
	changed *changes
	hosts   *hosts
	checks  *checks
	kept    *ownedHosts
	told    *conditions
	world   *desiredRecords
	planner *planner
}

// New makes a controller. It requests its informers, so that their owner can start them; Run subscribes.
func New(o Options) (*Controller, error) {
	if errs := validation.IsDNS1123Label(o.Federation); len(errs) > 0 {
		return nil, fmt.Errorf("federation name %q: %s", o.Federation, strings.Join(errs, "; "))
	}
	zone, err := dnsprovider.CanonicalName(o.Zone)
	if err != nil {
		return nil, fmt.Errorf("DNS zone: %w", err)
	}
	o.Zone = zone
	if o.TTL == 0 {
		o.TTL = 15
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.CutOff == nil {
		o.CutOff = func([]*v1beta1.Cluster) map[string]bool { return nil }
	}
	c := &Controller{Options: o, stores: newStores(o.Informers, o.hasNames()), changed: newChanged(), world: newWorld()}
	c.hosts = newHosts(o.Resolver, time.Duration(o.TTL)*time.Second, c.changed.addHost)
	c.checks = newChecks(o.Kube, o.Refuse, c.changed.addChecked)
	c.kept = newKept(o.Kube, func() {
		if o.Kept != nil {
			o.Kept(c.kept.owners())
		}
		c.changed.wake.Signal()
	})
	c.told = newConditions(o, &c.stores)
	c.planner = newPlanner(c)
	return c, nil
}

// hasNames reports whether anybody wants names. If not, what clusters offer is decided alone.
func (o *Options) hasNames() bool { return len(o.Providers) > 0 || o.Client != nil }

// Run plans and keeps the Local providers up to date until the context ends, and then returns nil. It leaves the
// records.
func (c *Controller) Run(ctx context.Context) error {
	registerMetrics()
	unsubscribe, synced, err := c.subscribe(c.changed, c.told)
	defer unsubscribe()
	if err != nil {
		return fmt.Errorf("watching what has names in DNS: %w", err)
	}
	var running sync.WaitGroup
	defer running.Wait()
	if c.Kube != nil {
		synced = append(synced, c.checks.watchConfigMap(ctx, &running), c.kept.watchConfigMap(ctx, &running),
			followConfigMap(ctx, &running, c.Kube, v1beta1.LoadBalancersConfigMap, c.changed.setBalancers))
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil
	}
	running.Go(supervisor.Kept(ctx, "servicedns", c.hosts.run))
	running.Go(supervisor.Kept(ctx, "servicedns", func(ctx context.Context) { c.publish(ctx, true) }))
	c.changed.wake.Signal()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.changed.wake:
			c.planChanges(ctx)
		}
	}
}

// Lead keeps the other providers up to date, checks load balancers, and reports the DNS state on objects, until the
// context ends. It must run in one process at a time, next to Run.
func (c *Controller) Lead(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	if c.Kube != nil {
		running.Go(supervisor.Kept(ctx, "servicedns", c.checks.runLeader))
		running.Go(supervisor.Kept(ctx, "servicedns", c.kept.runLeader))
	}
	if c.Client != nil && c.Recorder != nil {
		running.Go(supervisor.Kept(ctx, "servicedns", c.told.runLeader))
	}
	c.publish(ctx, false)
}

// publish keeps the local or the other providers up to date, each in its own goroutine.
func (c *Controller) publish(ctx context.Context, local bool) {
	var running sync.WaitGroup
	for _, p := range c.Providers {
		if p.Local == local {
			publisher := newPublisher(p, plan.Zone{Federation: c.Federation, Name: c.Zone}, c.world, c.reportProvider)
			publisher.kube = c.Kube
			publisher.published = func(changed map[string]time.Time, all records) { c.tracePublished(p.Name, changed, all) }
			if !local {
				publisher.fence = c.Fence
			}
			running.Go(supervisor.Kept(ctx, "servicedns", publisher.run))
		}
	}
	running.Wait()
}

// tracePublished records for traced objects that a provider has their names, from when the change was seen on.
func (c *Controller) tracePublished(provider string, changed map[string]time.Time, all records) {
	if c.Spans == nil {
		return
	}
	for key, since := range changed {
		if u := c.object(key); u != nil && len(all[key]) > 0 {
			c.Spans.Record(u.GetAnnotations(), tracing.Span{
				Name: "Publish in DNS", Started: since, About: []string{"kind", u.GetKind(), "namespace", u.GetNamespace(), "name", u.GetName(), "provider", provider},
			})
		}
	}
}

func (c *Controller) reportProvider(s ProviderState) {
	observeState(s)
	c.told.setProvider(s)
	if c.Report != nil {
		c.Report(s)
	}
}

// planChanges plans what has changed and hands it to the providers. What cannot be planned is planned again later.
func (c *Controller) planChanges(ctx context.Context) {
	seen := c.changed.drain()
	if supervisor.Protect(ctx, "servicedns", func() error {
		c.world.set(c.planner.plan(ctx, seen), seen.since)
		c.kept.setWanted(c.planner.claims)
		c.checks.settle()
		c.told.handlePlanned()
		return nil
	}) != nil {
		time.AfterFunc(againAfter, func() { c.changed.again(seen) })
	}
}

// againAfter is the delay before what could not be planned is planned again.
const againAfter = 5 * time.Second
