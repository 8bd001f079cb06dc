package fleettest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/failover"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/placement"
	"federation/controllers/propagation"
	"federation/controllers/servicedns"
)

// control is one run of the federation's process: its controllers, wired as cmd/federation wires them.
type control struct {
	fleet  *Fleet
	client *memapi.Client
	stop   context.CancelFunc
	ended  sync.WaitGroup

	registry *registry
}

// start runs the controllers.
func (f *Fleet) start() error {
	ctx, stop := context.WithCancel(f.ctx)
	c := &control{fleet: f, stop: stop}
	c.client = f.Federation.Client("federation", f.carry)
	informers := newInformers(c.client, "", nil)
	propagator, runs, err := c.controllers(informers)
	if err != nil {
		stop()
		return err
	}
	c.registry = &registry{
		client: c.client, members: f.joined, keepers: map[string]*keeper{},
		engage: func(ctx context.Context, m *Member) error { return c.engage(ctx, propagator, m) },
	}
	informers.start(ctx)
	for _, run := range runs {
		c.ended.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				f.fail(err)
			}
		})
	}
	c.ended.Go(func() { c.registry.run(ctx) })
	f.control = c
	return nil
}

// controllers makes them, and returns what runs each.
func (c *control) controllers(informers *informers) (p *propagation.Controller, runs []func(context.Context) error, err error) {
	f := c.fleet
	placer, err1 := placement.New(placement.Options{
		Client: c.client, Informers: informers.get, Recorder: f.events, Resolve: f.resolve, Start: informers.more,
	})
	propagator, err2 := propagation.New(propagation.Options{Client: c.client, Informers: informers.get, Federation: f.uid, Recorder: f.events})
	names, err3 := servicedns.New(servicedns.Options{Informers: informers.get, Federation: "fed", Zone: zone, Provider: f.DNS, Resolver: noResolver{}})
	over, err4 := failover.New(failover.Options{Client: c.client, Informers: informers.get, Recorder: f.events, Settings: f.Settings.failover()})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, nil, err
	}
	return propagator, []func(context.Context) error{placer.Run, over.Run, propagator.Run, names.Run}, nil
}

// resolve finds the resource of a kind that the federation's API serves, as discovery does.
func (f *Fleet) resolve(apiVersion, kind string) (schema.GroupVersionResource, bool, error) {
	r, ok := resourceOf(f.Federation, schema.FromAPIVersionAndKind(apiVersion, kind))
	if !ok {
		return schema.GroupVersionResource{}, false, fmt.Errorf("no kind %s is served in %s", kind, apiVersion)
	}
	return r.GroupVersionResource, r.Namespaced, nil
}

// engage takes up work in a member, as clusterregistry does it.
func (c *control) engage(ctx context.Context, p *propagation.Controller, m *Member) error {
	i := newInformers(m.Wire.client, v1beta1.ManagedByLabel+"="+c.fleet.uid, func() { c.registry.lookNow(m.Name) })
	if err := p.Engage(ctx, propagation.Member{Name: m.Name, Client: m.Wire.client, Informers: i.get}); err != nil {
		return err
	}
	i.start(ctx)
	return nil
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

// more starts informers that were asked for late: get has done so.
func (i *informers) more() {}

// slim drops what nobody reads.
func slim(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return obj, nil
}

// tick is how often the world goes on by itself.
const tick = 100 * time.Millisecond
