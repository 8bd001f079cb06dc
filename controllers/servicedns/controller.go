package servicedns

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/servicedns/plan"
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
	// Providers hold the zone, each for itself.
	Providers []NamedProvider
	// Report, if set, is called after each pass over a provider, by that provider's goroutine.
	Report func(ProviderState)
	// Resolver looks up host names of load balancers. Default: net.DefaultResolver.
	Resolver Resolver
}

var servicesResource = schema.GroupVersionResource{Version: "v1", Resource: "services"}

// Controller keeps the names of one federation in DNS. Make it with New.
type Controller struct {
	Options
	services, clusters cache.SharedIndexInformer
	changed            *changed
	hosts              *hosts

	world *world

	// planned is what was planned last, by the Service's key. It belongs to the goroutine of Run.
	planned map[string]entry
}

// entry is one Service's part of the world.
type entry struct {
	plan.Plan
	// clusters are those that the Service's annotation names.
	clusters []string
}

// New makes a controller. It takes its informers, so that their owner starts them; Run subscribes.
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
	c := &Controller{
		Options: o, changed: newChanged(), world: newWorld(), planned: map[string]entry{},
		services: o.Informers(servicesResource), clusters: o.Informers(v1beta1.ClustersResource),
	}
	c.hosts = newHosts(o.Resolver, time.Duration(o.TTL)*time.Second, c.changed.host)
	return c, nil
}

// Run plans, and keeps the Local providers right, until the context ends, and returns nil then. It leaves the records.
func (c *Controller) Run(ctx context.Context) error {
	registerMetrics()
	unsubscribe, synced, err := c.subscribe()
	if err != nil {
		return fmt.Errorf("watching Services and Clusters for DNS: %w", err)
	}
	defer unsubscribe()
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { c.hosts.run(ctx) })
	running.Go(func() { c.publish(ctx, true) })
	c.changed.wakeUp()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.changed.wake:
			c.pass()
		}
	}
}

// Lead keeps the providers right that are not Local, until the context ends, and returns then. It is for one process at a
// time, in which Run must run, too.
func (c *Controller) Lead(ctx context.Context) { c.publish(ctx, false) }

// publish keeps some of the providers right, each in a goroutine of its own.
func (c *Controller) publish(ctx context.Context, local bool) {
	var running sync.WaitGroup
	for _, p := range c.Providers {
		if p.Local == local {
			running.Go(func() { newPublisher(p, plan.Zone{Federation: c.Federation, Name: c.Zone}, c.world, c.report).run(ctx) })
		}
	}
	running.Wait()
}

func (c *Controller) report(s ProviderState) {
	observeState(s)
	if c.Report != nil {
		c.Report(s)
	}
}

// pass plans what has changed, and hands it to the providers.
func (c *Controller) pass() {
	seen := c.changed.take()
	next := c.plan(c.affected(seen))
	some := make(records, len(next))
	for key, e := range next {
		some[key] = e.Records
	}
	c.world.set(some, seen.since)
	c.commit(next)
}

// affected returns the keys of the Services whose plan may be another one now.
func (c *Controller) affected(seen seen) map[string]bool {
	keys := seen.services
	for key, e := range c.planned {
		isSeen := func(names map[string]bool) func(string) bool { return func(n string) bool { return names[n] } }
		if slices.ContainsFunc(e.clusters, isSeen(seen.clusters)) || slices.ContainsFunc(e.Resolve, isSeen(seen.hosts)) {
			keys[key] = true
		}
	}
	return keys
}

// plan plans each of the Services from what the informers have now.
func (c *Controller) plan(keys map[string]bool) map[string]entry {
	in := plan.Input{
		Federation: c.Federation, Zone: c.Zone, TTL: c.TTL,
		Clusters: clustersOf(c.clusters.GetStore().List()), Resolved: c.hosts.known(),
	}
	next := make(map[string]entry, len(keys))
	for key := range keys {
		obj, exists, err := c.services.GetStore().GetByKey(key)
		if err != nil || !exists {
			next[key] = entry{}
			continue
		}
		service, err := serviceOf(obj)
		if err != nil {
			klog.ErrorS(err, "DNS records stay as they are", "service", key)
			next[key] = c.planned[key]
			continue
		}
		in.Services = []plan.Service{service}
		next[key] = entry{Plan: plan.Records(in), clusters: clusterNames(service)}
	}
	return next
}

// commit remembers what is applied now.
func (c *Controller) commit(next map[string]entry) {
	for key, e := range next {
		if logger := klog.V(2); logger.Enabled() && !slices.Equal(e.Reasons, c.planned[key].Reasons) {
			logger.InfoS("DNS records explained", "service", key, "reasons", e.Reasons)
		}
		c.hosts.count(e.Resolve, +1) // before -1, so that one that stays is not a new one
		c.hosts.count(c.planned[key].Resolve, -1)
		if c.planned[key] = e; len(e.clusters) == 0 && len(e.Records) == 0 {
			delete(c.planned, key)
		}
	}
	c.hosts.forget()
}

func clusterNames(s plan.Service) []string {
	names := map[string]bool{}
	if s.Ingresses != nil {
		for _, item := range s.Ingresses.Items {
			names[item.Cluster] = true
		}
	}
	return slices.Collect(maps.Keys(names))
}
