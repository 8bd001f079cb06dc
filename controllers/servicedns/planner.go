package servicedns

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/servicedns/plan"
	"federation/controllers/supervisor"
)

// planner remembers plans, and plans again what a change may affect. It belongs to one goroutine.
type planner struct {
	*Controller
	planned  map[string]entry
	claims   *plan.Claims
	known    map[string]*v1beta1.Cluster
	clusters []plan.Cluster
	// ofPods are the offers of a Service that is served by pods and has no settings. Nobody changes them.
	ofPods []plan.Offer
	// balancers are the federation's own.
	balancers []plan.LoadBalancer
	// settings are the policies with DNS settings, by namespace and name.
	settings map[string]map[string]*v1beta1.PlacementPolicy
}

// entry is the plan of one object.
type entry struct {
	plan.Plan
	// clusters are those in the object's annotation.
	clusters []string
	// targets are the keys of its health checks.
	targets []string
	// balanced: it has the addresses of the federation's own load balancers. offered: it had Offers, which are not kept. byPods: all clusters offer it.
	balanced, offered, byPods bool
}

func newPlanner(c *Controller) *planner {
	return &planner{
		Controller: c, planned: map[string]entry{}, claims: plan.NewClaims(plan.Zone{Federation: c.Federation, Name: c.Zone}),
		known: map[string]*v1beta1.Cluster{}, ofPods: plan.OffersOfPods(nil, nil), settings: map[string]map[string]*v1beta1.PlacementPolicy{},
	}
}

// plan plans what the changes affect, and returns its records.
func (p *planner) plan(ctx context.Context, seen seen) records {
	keys := seen.objects
	for _, key := range p.claims.Keep(p.kept.owners()) {
		keys[key] = true
	}
	p.policiesChanged(seen.policies, keys)
	if seen.grants {
		p.grantsChanged(keys)
	}
	if seen.balancers != nil {
		p.balancers = *seen.balancers
		if p.Balancers != nil {
			p.Balancers(p.balancers)
		}
		for key, e := range p.planned {
			if e.balanced {
				keys[key] = true
			}
		}
	}
	moved, places := p.clustersChanged(seen.clusters)
	if len(moved)+len(seen.hosts)+len(seen.targets) > 0 {
		anyMoved := slices.Contains(slices.Collect(maps.Values(moved)), true)
		for key, e := range p.planned {
			if places || e.byPods && anyMoved || containsAny(e.clusters, moved) || containsAny(e.Resolve, seen.hosts) || containsAny(e.targets, seen.targets) {
				keys[key] = true
			}
		}
	}
	objects := p.readObjects(ctx, keys)
	some, offers := make(records, len(keys)), map[string][]plan.Offer{}
	for key := range keys {
		e, err := p.planOne(ctx, objects[key])
		if err != nil {
			delete(keys, key) // it keeps its records
			continue
		}
		some[key] = e.Records
		if name, is := strings.CutPrefix(key, plan.KindService+" "); is {
			offers[name] = p.offersOf(objects[key], &e)
		}
		p.storePlan(key, e)
		p.told.setPlan(key, e.Plan)
	}
	p.hosts.dropUnused()
	if p.Offers != nil {
		p.Offers(offers)
	}
	return some
}

// offersOf takes what clusters have of a Service out of its entry, where it is not kept. Nil is for a Service that is gone.
func (p *planner) offersOf(o *plan.Object, e *entry) []plan.Offer {
	offers := e.Offers
	e.Offers, e.offered = nil, len(offers) > 0
	switch {
	case o == nil:
		return nil
	case o.IsServedByPods() && o.Settings == nil:
		return p.ofPods
	case o.IsServedByPods():
		return plan.OffersOfPods(p.clusters, o.Settings)
	case offers == nil:
		return []plan.Offer{}
	}
	return offers
}

func containsAny(names []string, of map[string]bool) bool {
	return slices.ContainsFunc(names, func(name string) bool { return of[name] })
}

// readObjects reads the objects of the keys, and adds those whose hosts they take or free. An object that cannot be read keeps
// its records and is removed from keys.
func (p *planner) readObjects(ctx context.Context, keys map[string]bool) map[string]*plan.Object {
	objects := map[string]*plan.Object{}
	for todo := slices.Sorted(maps.Keys(keys)); len(todo) > 0; {
		key := todo[0]
		todo = todo[1:]
		others, ok := p.readOne(ctx, key, objects)
		if !ok {
			delete(keys, key)
		}
		for _, other := range others {
			if _, done := objects[other]; !done && !keys[other] {
				keys[other] = true
				todo = append(todo, other)
			}
		}
	}
	return objects
}

// readOne reads an object and its claims; nil if it is gone. It returns the other objects that this may affect.
func (p *planner) readOne(ctx context.Context, key string, objects map[string]*plan.Object) (others []string, ok bool) {
	u := p.object(key)
	if u == nil {
		objects[key] = nil
		return p.claims.Drop(key), true
	}
	var o plan.Object
	if err := supervisor.Protect(ctx, "servicedns", func() (err error) {
		o, err = plan.Read(u, slices.Collect(maps.Values(p.settings[u.GetNamespace()])))
		return err
	}); err != nil {
		klog.ErrorS(err, "Cannot read the object, keeping its DNS records", "object", key)
		return nil, false
	}
	objects[key] = &o
	return p.claims.Set(&o), true
}

// planOne plans one object; nil: one that is gone. An error is a panic over what the object says, which costs no other object anything.
func (p *planner) planOne(ctx context.Context, o *plan.Object) (e entry, err error) {
	if o == nil {
		return entry{}, nil
	}
	if err := supervisor.Protect(ctx, "servicedns", func() error {
		e.Plan = plan.Records(plan.Input{
			Federation: p.Federation, Zone: p.Zone, TTL: p.TTL, Objects: []plan.Object{*o},
			Claims: p.claims, Clusters: p.clusters, Resolved: p.hosts.addressesByHost(), Refuse: p.Refuse, Failing: p.checks.failingByKey(), LoadBalancers: p.balancers,
			Offers: p.Offers != nil, Unnamed: !p.hasNames(),
		})
		return nil
	}); err != nil {
		return entry{}, err
	}
	e.balanced, e.byPods = o.Balanced, p.Offers != nil && o.IsServedByPods()
	for _, t := range e.Targets {
		e.targets = append(e.targets, t.Key())
	}
	if o.Ingresses != nil {
		e.clusters = make([]string, len(o.Ingresses.Items))
		for n, item := range o.Ingresses.Items {
			e.clusters[n] = item.Cluster
			if c := p.known[item.Cluster]; c != nil {
				e.clusters[n] = c.Name // one string for all objects
			}
		}
	}
	return e, nil
}

// storePlan remembers the plan of an object.
func (p *planner) storePlan(key string, e entry) {
	was := p.planned[key]
	if logger := klog.V(2); logger.Enabled() && !slices.Equal(e.Reasons, was.Reasons) {
		logger.InfoS("DNS records explained", "object", key, "reasons", e.Reasons)
	}
	p.hosts.countUses(e.Resolve, +1) // before the -1, so that a kept host does not count as new
	p.hosts.countUses(was.Resolve, -1)
	p.checks.countUses(e.Targets, +1)
	p.checks.countUses(was.Targets, -1)
	if p.planned[key] = e; len(e.clusters) == 0 && len(e.Records) == 0 && !e.offered && !e.balanced && !e.byPods {
		delete(p.planned, key)
	}
}

// clustersChanged takes in changed Clusters. It returns the names of those that differ for DNS, and whether the set of
// places has changed: a Service has names at the places of all clusters, even where it does not run.
func (p *planner) clustersChanged(names map[string]bool) (moved map[string]bool, places bool) {
	if len(names) == 0 {
		return nil, false
	}
	for name := range names {
		delete(p.known, name)
		obj, _, _ := p.stores.clusters.GetStore().GetByKey(name) // never fails for an in-memory store
		if u, ok := obj.(*unstructured.Unstructured); ok {
			if c := clusterOf(u); c != nil {
				p.known[name] = c
			}
		}
	}
	held := p.CutOff(slices.Collect(maps.Values(p.known)))
	moved = map[string]bool{}
	before := make(map[string]plan.Cluster, len(p.clusters))
	for _, c := range p.clusters {
		before[c.Name] = c
		moved[c.Name] = p.known[c.Name] == nil
		places = places || moved[c.Name]
	}
	defer func() { p.told.setClusters(p.clusters) }()
	p.clusters = nil
	for name, cluster := range p.known {
		now := plan.ClusterOf(cluster, held)
		was, there := before[name]
		moved[name] = !there || !reflect.DeepEqual(was, now)
		places = places || was.Region != now.Region || !slices.Equal(was.Zones, now.Zones)
		p.clusters = append(p.clusters, now)
	}
	p.ofPods = plan.OffersOfPods(p.clusters, nil)
	return moved, places
}

// policiesChanged takes in changed policies, and adds the objects of their namespaces to keys if that may matter.
func (p *planner) policiesChanged(names map[string]bool, keys map[string]bool) {
	for name := range names {
		namespace, own, _ := strings.Cut(name, "/")
		was := p.settings[namespace][own]
		is := p.policy(name)
		if (was == nil || was.Spec.DNS == nil) && (is == nil || is.Spec.DNS == nil) && len(p.settings[namespace]) == 0 {
			continue
		}
		if p.settings[namespace] == nil {
			p.settings[namespace] = map[string]*v1beta1.PlacementPolicy{}
		}
		if p.settings[namespace][own] = is; is == nil {
			delete(p.settings[namespace], own)
		}
		for kind, informer := range p.objects {
			for _, key := range informer.GetStore().ListKeys() {
				if strings.HasPrefix(key, namespace+"/") {
					keys[kind+" "+key] = true
				}
			}
		}
	}
}

// grantsChanged takes in all grants, and adds all objects to keys: each may gain or lose hosts.
func (p *planner) grantsChanged(keys map[string]bool) {
	var grants []*v1beta1.DNSNameGrant
	for _, obj := range p.grants.GetStore().List() {
		u, _ := obj.(*unstructured.Unstructured)
		grant := &v1beta1.DNSNameGrant{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, grant); err != nil {
			klog.ErrorS(err, "Cannot decode the DNSNameGrant, ignoring it", "name", u.GetName())
			continue
		}
		grants = append(grants, grant)
	}
	p.claims.Grant(grants)
	for kind, informer := range p.objects {
		for _, key := range informer.GetStore().ListKeys() {
			keys[kind+" "+key] = true
		}
	}
}

// policy decodes a policy, or returns nil.
func (p *planner) policy(name string) *v1beta1.PlacementPolicy {
	obj, _, _ := p.policies.GetStore().GetByKey(name) // never fails for an in-memory store
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	policy := &v1beta1.PlacementPolicy{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, policy); err != nil {
		klog.ErrorS(err, "Cannot decode the policy, ignoring it", "policy", name)
		return nil
	}
	return policy
}
