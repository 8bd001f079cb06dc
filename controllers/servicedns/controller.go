package servicedns

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
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
	// Provider holds the zone.
	Provider dnsprovider.Provider
	// Resolver looks up host names of load balancers. Default: net.DefaultResolver.
	Resolver Resolver
}

const (
	// applyTimeout bounds one call of the provider.
	applyTimeout = 30 * time.Second
	// After a failure we wait for minBackoff, twice as long each time, and maxBackoff at most.
	minBackoff, maxBackoff = 100 * time.Millisecond, 30 * time.Second
)

var servicesResource = schema.GroupVersionResource{Version: "v1", Resource: "services"}

// Controller keeps the names of one federation in DNS. Make it with New.
type Controller struct {
	Options
	services, clusters cache.SharedIndexInformer
	changed            *changed
	hosts              *hosts

	// The rest belongs to the goroutine of Run.

	// world is what was applied last, by the Service's key.
	world map[string]entry
	// trusted is false while the provider's zone may not be what world says.
	trusted bool
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
		Options: o, changed: newChanged(), world: map[string]entry{},
		services: o.Informers(servicesResource), clusters: o.Informers(v1beta1.ClustersResource),
	}
	c.hosts = newHosts(o.Resolver, time.Duration(o.TTL)*time.Second, c.changed.host)
	return c, nil
}

// Run keeps DNS right until the context ends, and returns nil then. It leaves the records.
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
	go c.hosts.run(ctx)
	c.trusted = false
	c.changed.wakeUp()
	for backoff := minBackoff; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-c.changed.wake:
		}
		if err := c.pass(ctx); err == nil {
			backoff = minBackoff
			continue
		} else if ctx.Err() == nil {
			klog.ErrorS(err, "DNS records could not be applied", "zone", c.Zone, "retryAfter", backoff)
		}
		pause(ctx, backoff)
		backoff = min(2*backoff, maxBackoff)
		c.changed.wakeUp()
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// pass plans what has changed, and applies the difference.
func (c *Controller) pass(ctx context.Context) error {
	seen := c.changed.take()
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	var have, want []dnsprovider.RRSet
	keys := c.affected(seen)
	if !c.trusted {
		var err error
		if have, err = c.owned(ctx); err != nil {
			return err
		}
	}
	next := c.plan(keys)
	for key, e := range next {
		if c.trusted {
			have = append(have, c.world[key].Records...)
		}
		want = append(want, e.Records...)
	}
	changes := dnsprovider.Diff(have, want)
	if len(changes) > 0 || !c.trusted {
		if err := c.apply(ctx, changes, seen.since); err != nil {
			c.trusted = false
			return err
		}
	}
	c.commit(next)
	return nil
}

func (c *Controller) apply(ctx context.Context, changes dnsprovider.ChangeSet, since time.Time) error {
	started := time.Now()
	err := c.Provider.Apply(ctx, c.Zone, changes)
	observeApply(started, since, err)
	if err == nil {
		klog.V(2).InfoS("DNS records applied", "zone", c.Zone, "names", len(changes))
		klog.V(4).InfoS("DNS records changed", "zone", c.Zone, "changes", changes)
	}
	return err
}

// owned reads from the provider what is this federation's.
func (c *Controller) owned(ctx context.Context) ([]dnsprovider.RRSet, error) {
	all, err := c.Provider.Records(ctx, c.Zone)
	return slices.DeleteFunc(all, func(s dnsprovider.RRSet) bool {
		return !plan.Owns(c.Federation, c.Zone, s.Name)
	}), err
}

// affected returns the keys of the Services whose plan may be another one now.
func (c *Controller) affected(seen seen) map[string]bool {
	keys := seen.services
	if !c.trusted {
		for _, key := range c.services.GetStore().ListKeys() {
			keys[key] = true
		}
	}
	for key, e := range c.world {
		isSeen := func(names map[string]bool) func(string) bool { return func(n string) bool { return names[n] } }
		if !c.trusted || slices.ContainsFunc(e.clusters, isSeen(seen.clusters)) || slices.ContainsFunc(e.Resolve, isSeen(seen.hosts)) {
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
			next[key] = c.world[key]
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
		if logger := klog.V(2); logger.Enabled() && !slices.Equal(e.Reasons, c.world[key].Reasons) {
			logger.InfoS("DNS records explained", "service", key, "reasons", e.Reasons)
		}
		recordCount.Add(float64(len(e.Records) - len(c.world[key].Records)))
		c.hosts.count(e.Resolve, +1) // before -1, so that one that stays is not a new one
		c.hosts.count(c.world[key].Resolve, -1)
		if c.world[key] = e; len(e.clusters) == 0 && len(e.Records) == 0 {
			delete(c.world, key)
		}
	}
	c.trusted = true
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
