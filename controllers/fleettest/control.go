package fleettest

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry"
	"federation/controllers/customkinds"
	customplan "federation/controllers/customkinds/plan"
	"federation/controllers/failover"
	failoverplan "federation/controllers/failover/plan"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/placement"
	"federation/controllers/propagation"
	"federation/controllers/propagation/plan"
	"federation/controllers/servicedns"
)

// control is one run of the federation's process: its controllers, wired as cmd/federation wires them.
type control struct {
	fleet  *Fleet
	client *memapi.Client
	caches *informers
	stop   context.CancelFunc
	ended  sync.WaitGroup

	registry *registry
}

// start runs the controllers.
func (f *Fleet) start() error {
	ctx, stop := context.WithCancel(f.ctx)
	c := &control{fleet: f, stop: stop}
	c.client = f.Federation.Client("federation", f.carry)
	c.caches = newInformers(c.client, "", nil)
	c.registry = &registry{client: c.client, members: f.joined, cluster: f.cluster, room: f.room, keepers: map[string]*keeper{}}
	runs, err := c.controllers(ctx)
	if err != nil {
		stop()
		return err
	}
	c.caches.start(ctx)
	for _, run := range append(runs, c.registry.run) {
		c.ended.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				f.fail(err)
			}
		})
	}
	f.control = c
	return nil
}

// controllers makes them, and returns what runs each.
func (c *control) controllers(ctx context.Context) (runs []func(context.Context) error, err error) {
	f, from := c.fleet, c.caches.get
	placer, err1 := placement.New(placement.Options{
		Client: c.client, Informers: from, Recorder: f.events, Resolve: customkinds.Resolver(from(customkinds.Definitions)), Start: func() {},
	})
	over, err2 := failover.New(failover.Options{Client: c.client, Informers: from, Recorder: f.events, Settings: f.Settings.failover()})
	propagator, err3 := c.propagation(nil, nil)
	custom, err4 := customkinds.New(customkinds.Options{Informers: from, Work: c.propagateKind})
	names, err5 := servicedns.New(servicedns.Options{
		Informers: from, Federation: "fed", Zone: zone, Resolver: noResolver{},
		Providers: []servicedns.NamedProvider{{Name: "fleet", Provider: f.DNS, Local: true}},
		Held: func(clusters []*v1beta1.Cluster) map[string]bool {
			return failoverplan.CutOff(clusters, f.Settings.failover(), time.Now())
		},
	})
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return nil, err
	}
	c.registry.follow(ctx, c.engager(propagator))
	return []func(context.Context) error{placer.Run, over.Run, propagator.Run, custom.Run, names.Run}, nil
}

// propagation makes one for some kinds, or all that are built in.
func (c *control) propagation(kinds []plan.Kind, owns func(*plan.Kind, string, string) bool) (*propagation.Controller, error) {
	return propagation.New(propagation.Options{
		Client: c.client, Informers: c.caches.get, Federation: c.fleet.uid, Recorder: c.fleet.events, Kinds: kinds, Owns: owns,
	})
}

// propagateKind propagates the objects of a custom kind, and its definition before them.
func (c *control) propagateKind(ctx context.Context, k customplan.Kind) error {
	definition, err := c.propagation([]plan.Kind{plan.CustomResourceDefinitions}, func(_ *plan.Kind, _, name string) bool { return name == k.Definition })
	if err != nil {
		return err
	}
	objects, err := c.propagation([]plan.Kind{plan.CustomKind(k.Resource, k.Kind)}, nil)
	if err != nil {
		ended, end := context.WithCancel(ctx)
		end()
		return errors.Join(err, definition.Run(ended)) // for what it has begun
	}
	c.registry.follow(ctx, c.engager(definition))
	c.registry.follow(ctx, func(ctx context.Context, m *Member) error {
		go c.onceServed(ctx, m, k.Resource, c.engager(objects))
		return nil
	})
	var both sync.WaitGroup
	var errs [2]error
	both.Go(func() { errs[0] = definition.Run(ctx) })
	both.Go(func() { errs[1] = objects.Run(ctx) })
	both.Wait()
	return errors.Join(errs[:]...)
}

// onceServed engages a member as soon as it serves a custom kind.
func (c *control) onceServed(ctx context.Context, m *Member, gvr schema.GroupVersionResource, engage engager) {
	for {
		if _, err := m.Wire.client.Resource(gvr).List(ctx, metav1.ListOptions{}); err == nil {
			_ = engage(ctx, m) // it fails only for informers that have ended already
			return
		}
		if sleep(ctx, 500*time.Millisecond) != nil {
			return
		}
	}
}

// engager has a propagation take up work in a member, with informers of its own.
func (c *control) engager(p *propagation.Controller) engager {
	return func(ctx context.Context, m *Member) error {
		i := newInformers(m.Wire.client, v1beta1.ManagedByLabel+"="+c.fleet.uid, func() { c.registry.lookNow(m.Name) })
		if err := p.Engage(ctx, propagation.Member{Name: m.Name, Client: m.Wire.client, Informers: i.get}); err != nil {
			return err
		}
		i.start(ctx)
		return nil
	}
}

// end ends the process and waits until nothing of it is left. What is under way in members may still be carried out.
func (c *control) end() {
	c.stop()
	c.client.Break()
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
