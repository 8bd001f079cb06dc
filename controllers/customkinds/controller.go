// Package customkinds has the objects of custom kinds federated: it sees which kinds PlacementPolicies name
// and CustomResourceDefinitions define, and keeps a propagation running for each.
//
//	c, err := customkinds.New(customkinds.Options{Informers: …, Work: func(ctx context.Context, k plan.Kind) error { … }})
//	err = c.Run(ctx)
//
// The definitions themselves are asked, not discovery: they are watched, so a kind is known the moment it is
// there, and nothing is ever asked again. Kinds of aggregated APIs, which have no definition, can't be federated.
package customkinds

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/customkinds/plan"
	"federation/controllers/supervisor"
)

// Definitions is the resource of CustomResourceDefinitions.
var Definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Options are what a Controller needs; all are required.
type Options struct {
	// Informers hands out the federation's informers, which others start.
	Informers func(schema.GroupVersionResource) cache.SharedIndexInformer
	// Work has the objects of one kind propagated until ctx is done. If it ends by itself, so does Run.
	Work func(ctx context.Context, kind plan.Kind) error
}

// Controller keeps the work running for each kind that is federated.
type Controller struct {
	Options
	wake     supervisor.Wake
	unlisten []func() error
}

// New makes a controller and subscribes it to the informers.
func New(o Options) (*Controller, error) {
	c := &Controller{Options: o, wake: supervisor.NewWake()}
	for _, gvr := range []schema.GroupVersionResource{Definitions, v1beta1.PoliciesResource} {
		informer := o.Informers(gvr)
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: c.look, UpdateFunc: func(_, is any) { c.look(is) }, DeleteFunc: c.look,
		})
		if err != nil {
			return nil, errors.Join(err, c.leave())
		}
		c.unlisten = append(c.unlisten, func() error { return informer.RemoveEventHandler(handler) })
	}
	return c, nil
}

func (c *Controller) look(any) { c.wake.Signal() }

func (c *Controller) leave() (err error) {
	for _, undo := range c.unlisten {
		err = errors.Join(err, undo())
	}
	return err
}

// Run works until ctx is done, or the work with a kind has failed. All work has ended when it returns.
func (c *Controller) Run(ctx context.Context) error {
	defer func() { _ = c.leave() }() // of informers that have ended already
	definitions, policies := c.Informers(Definitions), c.Informers(v1beta1.PoliciesResource)
	if !cache.WaitForCacheSync(ctx.Done(), definitions.HasSynced, policies.HasSynced) {
		return nil
	}
	ctx, fail := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer fail(nil)
	running := map[plan.Kind]*work{}
	for {
		c.turn(ctx, running, func(k plan.Kind, w *work) {
			all.Go(func() {
				defer close(w.ended)
				if err := supervisor.Protect(w.ctx, "customkinds", func() error { return c.Work(w.ctx, k) }); w.ctx.Err() == nil {
					fail(errors.Join(errors.New("the propagation of "+k.Definition+" has ended by itself"), err))
				}
			})
		})
		select {
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		case <-c.wake:
		}
	}
}

// work is that with one kind.
type work struct {
	ctx   context.Context
	end   context.CancelFunc
	ended chan struct{}
}

// turn ends the work with kinds that are federated no more, or served as another version now, and then starts
// that with the others.
func (c *Controller) turn(ctx context.Context, running map[plan.Kind]*work, start func(plan.Kind, *work)) {
	wanted := map[plan.Kind]bool{}
	for _, k := range plan.Wanted(read(c.Informers(Definitions).GetStore()), readPolicies(ctx, c.Informers(v1beta1.PoliciesResource).GetStore())) {
		wanted[k] = true
	}
	for k, w := range running {
		if !wanted[k] {
			klog.FromContext(ctx).Info("Objects of a custom kind are federated no more", "kind", k.Definition)
			w.end()
			<-w.ended
			delete(running, k)
		}
	}
	for k := range wanted {
		if running[k] == nil {
			klog.FromContext(ctx).Info("Objects of a custom kind are federated", "kind", k.Definition, "version", k.Resource.Version)
			w := &work{ended: make(chan struct{})}
			w.ctx, w.end = context.WithCancel(ctx)
			running[k] = w
			start(k, w)
		}
	}
}

// Resolver finds, in the cache of the definitions, what a kind that a policy names is served as.
func Resolver(definitions cache.SharedIndexInformer) func(apiVersion, kind string) (resource schema.GroupVersionResource, namespaced bool, err error) {
	return func(apiVersion, kind string) (schema.GroupVersionResource, bool, error) {
		k, err := plan.Resolve(read(definitions.GetStore()), apiVersion, kind)
		return k.Resource, k.Namespaced, err
	}
}

// Finder finds, in the cache of the definitions, what a kind is served as.
func Finder(definitions cache.SharedIndexInformer) func(schema.GroupKind) (schema.GroupVersionResource, error) {
	return func(kind schema.GroupKind) (schema.GroupVersionResource, error) {
		k, err := plan.Find(read(definitions.GetStore()), kind)
		return k.Resource, err
	}
}

// read reads all definitions in the cache.
func read(store cache.Store) (definitions []plan.Definition) {
	for _, obj := range store.List() {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			definitions = append(definitions, plan.Read(u))
		}
	}
	return definitions
}

func readPolicies(ctx context.Context, store cache.Store) (policies []*v1beta1.PlacementPolicy) {
	for _, obj := range store.List() {
		p := &v1beta1.PlacementPolicy{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.(*unstructured.Unstructured).Object, p); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot read a PlacementPolicy")
			continue
		}
		policies = append(policies, p)
	}
	return policies
}
