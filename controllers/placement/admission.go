package placement

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler"
)

// seenAfter is how long a capacity report may take to count the pods of a new object.
const seenAfter = 30 * time.Second

// Admitter places new objects in the very write that creates them, in the apiserver's process: by the function by
// which the placement controller would, which then finds nothing to change (ADR 15). What people have to be told
// about is left to the controller, and all of it until Clusters and policies have been read.
type Admitter struct {
	now func() time.Time
	// SecretsEverywhere is scheduler.World's; it is set before Follow.
	SecretsEverywhere bool

	mu       sync.Mutex
	synced   bool
	clusters map[types.NamespacedName]*v1beta1.Cluster
	policies map[types.NamespacedName]*v1beta1.PlacementPolicy
	grants   map[types.NamespacedName]*v1beta1.DNSNameGrant
	world    *scheduler.World // nil: to be made again
	given    []given          // by time: what the world's ledger is without
}

// given is a decision whose pods are not in the capacity reports yet.
type given struct {
	at       time.Time
	requests corev1.ResourceList
	pods     map[string]int64 // by cluster
}

// NewAdmitter makes one that knows no Clusters yet.
func NewAdmitter() *Admitter {
	return &Admitter{
		now:      time.Now,
		clusters: map[types.NamespacedName]*v1beta1.Cluster{}, policies: map[types.NamespacedName]*v1beta1.PlacementPolicy{},
		grants: map[types.NamespacedName]*v1beta1.DNSNameGrant{},
	}
}

// Follow keeps Clusters, policies and grants in sight until ctx is done, by informers that start starts. It returns when they have
// been read.
func (p *Admitter) Follow(ctx context.Context, informers func(schema.GroupVersionResource) cache.SharedIndexInformer, start func(stop <-chan struct{})) error {
	allClusters, err := keep(p, informers(v1beta1.ClustersResource), p.clusters)
	if err != nil {
		return err
	}
	allPolicies, err := keep(p, informers(v1beta1.PoliciesResource), p.policies)
	if err != nil {
		return err
	}
	allGrants, err := keep(p, informers(v1beta1.DNSNameGrantsResource), p.grants)
	if err != nil {
		return err
	}
	start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), allClusters.HasSynced, allPolicies.HasSynced, allGrants.HasSynced) {
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.synced = true
	return nil
}

// Clusters returns all Clusters, nil until they have been read.
func (p *Admitter) Clusters() (all []*v1beta1.Cluster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.synced {
		return nil
	}
	return slices.Collect(maps.Values(p.clusters))
}

// DNSNameGrants returns those that have been read.
func (p *Admitter) DNSNameGrants() []*v1beta1.DNSNameGrant {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.grants))
}

// Zones returns "ZONE.REGION" of the Clusters that have been read.
func (p *Admitter) Zones() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.clusters {
		for _, zone := range c.Status.Zones {
			all = append(all, zone+"."+c.Status.Region)
		}
	}
	return all
}

// keep keeps the objects of an informer in a map of the Admitter. One that cannot be read is as good as none.
func keep[T any](p *Admitter, informer cache.SharedIndexInformer, all map[types.NamespacedName]*T) (cache.ResourceEventHandlerRegistration, error) {
	put := func(obj any) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return
		}
		one, name := new(T), types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, one)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.world, all[name] = nil, one; err != nil {
			delete(all, name)
		}
	}
	return informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, is any) { put(is) },
		DeleteFunc: func(obj any) {
			key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
			if err != nil {
				return
			}
			namespace, name, _ := cache.SplitMetaNamespaceKey(key)
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(all, types.NamespacedName{Namespace: namespace, Name: name})
			p.world = nil
		},
	})
}

// CountClusters returns in how many clusters an object may be at once, by its annotations and policies; 0 while that is unknown.
func (p *Admitter) CountClusters(u *unstructured.Unstructured) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	o, err := scheduler.Read(u)
	if err != nil || !p.synced {
		return 0
	}
	return p.look(p.now()).MostClusters(&o)
}

// Place returns the placement annotation of a new object, or "" to leave it to the placement controller.
func (p *Admitter) Place(u *unstructured.Unstructured) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.synced || len(p.clusters) == 0 {
		return ""
	}
	o, err := scheduler.Read(u)
	if err != nil {
		return "" // validation refuses it
	}
	now := p.now()
	w := p.look(now)
	d := scheduler.Decide(o, w, now)
	if d.None || d.Wait || d.Placement.Unschedulable > 0 || len(d.Notes) > 0 || !o.Divided && !d.Placement.Everywhere {
		return ""
	}
	p.give(given{now, o.Requests(), d.Placement.Clusters})
	return d.Value()
}

// give takes from the world what a new object gets, where room is limited, and keeps that in mind.
func (p *Admitter) give(g given) {
	if p.world.Ledger.Limits() {
		p.take(g)
		p.given = append(p.recent(g.at), g)
	}
}

func (p *Admitter) take(g given) {
	demand := p.world.Ledger.Demand(g.requests)
	for cluster, n := range g.pods {
		p.world.Ledger.Take(cluster, demand, n)
	}
}

// recent returns what was given so lately that reports may not know of it.
func (p *Admitter) recent(now time.Time) []given {
	old := 0
	for old < len(p.given) && now.Sub(p.given[old].at) > seenAfter {
		old++
	}
	return p.given[old:]
}

// look returns the world as it is. A new one has the room that reports say, less what was given since.
func (p *Admitter) look(now time.Time) *scheduler.World {
	if p.world != nil {
		return p.world
	}
	var clusters []*v1beta1.Cluster
	for _, c := range p.clusters {
		clusters = append(clusters, c)
	}
	var policies []*v1beta1.PlacementPolicy
	for _, policy := range p.policies {
		policies = append(policies, policy)
	}
	p.world = scheduler.NewWorld(clusters, policies)
	p.world.Terse, p.world.SecretsEverywhere = true, p.SecretsEverywhere
	p.given = p.recent(now)
	for _, g := range p.given {
		p.take(g)
	}
	return p.world
}
