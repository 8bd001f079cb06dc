package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry"
	"federation/clusterregistry/wire"
	"federation/controllers/crosscluster"
	"federation/controllers/customkinds"
	customkindsplan "federation/controllers/customkinds/plan"
	"federation/controllers/propagation"
	propagationplan "federation/controllers/propagation/plan"
	"federation/controllers/shards/plan"
	"federation/controllers/supervisor"
	"federation/controllers/writegate"
)

// propagate brings members to what the federation says of the objects of the shards that are held.
func (c *controllers) propagate(ctx context.Context, from *wire.Informers, held plan.Set) error {
	group, ctx := errgroup.WithContext(ctx)
	if err := c.runParts(ctx, group, from, held, map[string]maker{
		"propagation": func(_ context.Context, from *wire.Informers) (func(context.Context) error, error) {
			return c.propagateBuiltIn(from, held)
		},
		"mcs": func(_ context.Context, from *wire.Informers) (func(context.Context) error, error) {
			return c.multiClusterServices(from, held)
		},
		"customkinds": func(ctx context.Context, from *wire.Informers) (func(context.Context) error, error) {
			custom, err := customkinds.New(customkinds.Options{Informers: from.ForResource, Work: func(ctx context.Context, k customkindsplan.Kind) error {
				return c.parts.Run(ctx, "propagation of "+k.Definition, func(ctx context.Context) error { return c.propagateKind(ctx, from, held, k) })
			}})
			if err != nil {
				return nil, err
			}
			return custom.Run, nil
		},
	}); err != nil {
		return err
	}
	return group.Wait()
}

// propagateBuiltIn has the built-in kinds propagated, and members learn of each other.
func (c *controllers) propagateBuiltIn(from *wire.Informers, held plan.Set) (func(context.Context) error, error) {
	builtIn, err := c.propagation(from.ForResource, held, nil)
	if err != nil {
		return nil, err
	}
	others := crosscluster.New(crosscluster.Options{
		Offers: c.offers, Federation: c.federation, Recorder: c.recorder, Workers: c.writes,
		Owns:     func(namespace, name string) bool { return held.Has(v1beta1.Shard(namespace, name)) },
		Withdraw: !c.endpoints,
	})
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		c.registry.Follow(ctx, c.engager(builtIn, others, held))
		group.Go(supervisor.Protected(ctx, "propagation", builtIn.Run))
		group.Go(supervisor.Protected(ctx, "crosscluster", others.Run))
		return group.Wait()
	}, nil
}

// propagation makes one for some kinds, or all that are built in, and the shards that are held.
func (c *controllers) propagation(from propagation.Informers, held plan.Set, kinds []propagationplan.Kind) (*propagation.Controller, error) {
	return propagation.New(propagation.Options{
		Client: c.client, Informers: from, Federation: c.federation, Recorder: c.recorder, Workers: c.writes, Reports: c.reports, Unmade: c.unschedulable, Kinds: kinds, Shared: held != plan.All,
		Owns: func(_ *propagationplan.Kind, namespace, name string) bool {
			return held.Has(v1beta1.Shard(namespace, name))
		},
	})
}

// propagateKind propagates the objects of a custom kind, and its definition before them. The informer of the kind is its own, and
// ends with it: when the definition is deleted and made again, it is another one's.
func (c *controllers) propagateKind(ctx context.Context, from *wire.Informers, held plan.Set, k customkindsplan.Kind) error {
	definition, err := propagation.New(propagation.Options{
		Client: c.client, Informers: from.ForResource, Federation: c.federation, Recorder: c.recorder, Workers: 1,
		Kinds: []propagationplan.Kind{propagationplan.CustomResourceDefinitions}, Shared: true, // with those of other custom kinds
		Owns: func(_ *propagationplan.Kind, namespace, name string) bool {
			return name == k.Definition && held.Has(v1beta1.Shard(namespace, name))
		},
	})
	if err != nil {
		return err
	}
	own := from.Another()
	objects, err := c.propagation(func(r schema.GroupVersionResource) cache.SharedIndexInformer {
		if r == k.Resource {
			return own.ForResource(r)
		}
		return from.ForResource(r)
	}, held, []propagationplan.Kind{propagationplan.CustomKind(k.Resource, k.Kind)})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	own.Start(ctx.Done())
	c.registry.Follow(ctx, c.engager(definition, nil, held))
	c.registry.Follow(ctx, once{c.engager(objects, nil, held), k.Resource})
	group.Go(supervisor.Protected(ctx, "propagation", definition.Run))
	group.Go(supervisor.Protected(ctx, "propagation", objects.Run))
	return group.Wait()
}

// engager passes members of the registry on to controllers, which do not know the registry.
type engager struct {
	*propagation.Controller
	others *crosscluster.Controller // may be nil
	held   plan.Set
	gate   *writegate.Gate // nil where one process has all shards
}

func (c *controllers) engager(to *propagation.Controller, others *crosscluster.Controller, held plan.Set) engager {
	e := engager{Controller: to, others: others, held: held}
	if c.several {
		e.gate = c.shards
	}
	return e
}

// client is one of the member that writes only while the gate is open.
func (e engager) client(m *clusterregistry.Member) (dynamic.Interface, error) {
	if e.gate == nil {
		return m.Dynamic, nil
	}
	return m.Through(e.gate.Wrap)
}

// Engage gives the controllers informers that nobody else has, and that end with them. They hold the copies of
// the shards that are held.
func (e engager) Engage(ctx context.Context, m *clusterregistry.Member) error {
	client, err := e.client(m)
	if err != nil {
		return err
	}
	all, startAll := m.NewInformers(ctx, "")
	ours, startOurs := m.NewInformers(ctx, shardSelector(e.held))
	err = e.Controller.Engage(ctx, propagation.Member{
		Name: m.Name, Client: client, HeartbeatsStale: m.HeartbeatsStale,
		Informers: func(gvr schema.GroupVersionResource) cache.SharedIndexInformer {
			if propagation.OfAllShards(gvr) {
				return all.ForResource(gvr)
			}
			return ours.ForResource(gvr)
		},
	})
	if err == nil && e.others != nil {
		err = e.others.Engage(ctx, crosscluster.Member{Name: m.Name, Client: client, Informers: ours.ForResource})
	}
	if err != nil {
		return err
	}
	startAll()
	startOurs()
	return nil
}

// once engages a member as soon as it serves a custom kind, whose definition has to get there first.
type once struct {
	engager
	resource schema.GroupVersionResource
}

// Between two looks whether a member serves a kind, first and at most.
const (
	servedFirst = 200 * time.Millisecond
	servedLast  = 10 * time.Second
)

// Engage returns at once.
func (o once) Engage(ctx context.Context, m *clusterregistry.Member) error {
	go supervisor.Keep(ctx, "propagation", func(ctx context.Context) {
		wait := servedFirst
		for !o.served(ctx, m) {
			select {
			case <-ctx.Done():
				m.SetForbidden(o.resource.GroupResource().String(), false) // nobody asks any more
				return
			case <-time.After(wait):
			}
			wait = min(2*wait, servedLast)
		}
		if err := o.engager.Engage(ctx, m); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to engage a cluster for a custom kind, will retry when it reconnects", "cluster", m.Name, "resource", o.resource)
		}
	})
	return nil
}

// served reports whether a member serves the kind and lets us list it. That it forbids us to goes to the Cluster's status.
func (o once) served(ctx context.Context, m *clusterregistry.Member) bool {
	ctx, cancel := context.WithTimeout(ctx, servedLast)
	defer cancel()
	_, err := m.Dynamic.Resource(o.resource).List(ctx, metav1.ListOptions{Limit: 1, ResourceVersion: "0"})
	if err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		m.SetForbidden(o.resource.GroupResource().String(), apierrors.IsForbidden(err))
	}
	return err == nil
}

// shardSelector selects the copies of the objects of some shards; "" all copies.
func shardSelector(held plan.Set) string {
	if held == plan.All {
		return ""
	}
	values := make([]string, 0, held.Len())
	for _, shard := range held.Shards() {
		values = append(values, strconv.Itoa(shard))
	}
	return fmt.Sprintf("%s in (%s)", v1beta1.ShardLabel, strings.Join(values, ","))
}
