package manager

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/crosscluster"
	"federation/controllers/customkinds"
	customkindsplan "federation/controllers/customkinds/plan"
	failoverplan "federation/controllers/failover/plan"
	"federation/controllers/mcs"
	"federation/controllers/propagation"
	propagationplan "federation/controllers/propagation/plan"
	"federation/controllers/shards/plan"
	"federation/controllers/supervisor"
)

// Propagators returns the parts that bring members to what the federation says of the objects of some shards.
func (m *Manager) Propagators(held plan.Set) map[string]Part {
	p := propagators{m, held}
	return map[string]Part{"propagation": p.builtInKinds, "mcs": p.exportedServices, "customkinds": p.customKinds}
}

// propagators are those of the shards that are held.
type propagators struct {
	*Manager
	held plan.Set
}

func (p propagators) owns(namespace, name string) bool {
	return p.held.Has(v1beta1.Shard(namespace, name))
}

// builtInKinds propagates the built-in kinds, and writes to members what others have of their Services.
func (p propagators) builtInKinds(_ context.Context, from Informers) (func(context.Context) error, error) {
	builtIn, err := p.propagation(from.ForResource, nil)
	if err != nil {
		return nil, err
	}
	others := crosscluster.New(crosscluster.Options{Offers: p.Offers, Federation: p.Federation, Recorder: p.Recorder, Workers: p.Writes, Owns: p.owns, Withdraw: p.Withdraw})
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		p.Members.Follow(ctx, func(ctx context.Context, m Member) error { return p.engage(ctx, m, builtIn, others) })
		group.Go(supervisor.Protected(ctx, "propagation", builtIn.Run))
		group.Go(supervisor.Protected(ctx, "crosscluster", others.Run))
		return group.Wait()
	}, nil
}

// propagation makes a controller of some kinds, or of all built-in ones.
func (p propagators) propagation(from propagation.Informers, kinds []propagationplan.Kind) (*propagation.Controller, error) {
	series := p.ObjectMetrics
	if kinds != nil {
		series = 0 // the kinds that have these metrics are built-in
	}
	return propagation.New(propagation.Options{
		Client: p.Client, Informers: from, Federation: p.Federation, Recorder: p.Recorder, Workers: p.Writes, Reports: p.Reports, Unmade: p.Unschedulable, Kinds: kinds, Shared: p.held != plan.All, Spans: p.Spans, ObjectMetrics: series,
		Owns: func(_ *propagationplan.Kind, namespace, name string) bool { return p.owns(namespace, name) },
	})
}

// engage gives controllers informers of a member that nobody else has. They hold the copies of the shards that are held, and of few
// resources all. others may be nil.
func (p propagators) engage(ctx context.Context, m Member, to *propagation.Controller, others *crosscluster.Controller) error {
	all, startAll := m.Copies(ctx, "")
	ours, startOurs := m.Copies(ctx, shardSelector(p.held))
	err := to.Engage(ctx, propagation.Member{
		Name: m.Name, Client: m.Client, HeartbeatsStale: m.HeartbeatsStale,
		Informers: func(r schema.GroupVersionResource) cache.SharedIndexInformer {
			if propagation.OfAllShards(r) {
				return all(r)
			}
			return ours(r)
		},
	})
	if err == nil && others != nil {
		err = others.Engage(ctx, crosscluster.Member{Name: m.Name, Client: m.Client, Informers: ours})
	}
	if err != nil {
		return err
	}
	startAll()
	startOurs()
	return nil
}

// exportedServices imports into members what is exported in others.
func (p propagators) exportedServices(_ context.Context, from Informers) (func(context.Context) error, error) {
	c, err := mcs.New(mcs.Options{
		Client: p.Client, Informers: from.ForResource, Federation: p.Federation, Recorder: p.Recorder, Workers: p.Writes, Owns: p.owns,
		Held: func(clusters []*v1beta1.Cluster) map[string]bool {
			return failoverplan.CutOff(clusters, p.Failover, time.Now())
		},
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		p.Members.Follow(ctx, func(ctx context.Context, m Member) error {
			return c.Engage(ctx, mcs.Member{
				Name: m.Name, Client: m.Client,
				Ours: func(ctx context.Context, selector string) (mcs.Informers, func()) {
					return m.Copies(ctx, both(shardSelector(p.held), selector))
				},
				All: func(ctx context.Context, namespace string) (mcs.Informers, func()) { return m.All(ctx, namespace) },
			})
		})
		return c.Run(ctx)
	}, nil
}

// customKinds propagates the custom kinds, each as long as its definition is there.
func (p propagators) customKinds(_ context.Context, from Informers) (func(context.Context) error, error) {
	c, err := customkinds.New(customkinds.Options{Informers: from.ForResource, Work: func(ctx context.Context, k customkindsplan.Kind) error {
		return p.Parts.Run(ctx, "propagation of "+k.Definition, func(ctx context.Context) error { return p.customKind(ctx, from, k) })
	}})
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

// customKind propagates the objects of a custom kind, and its definition before them. The informer of the kind is its own, and ends with
// it: when the definition is deleted and made again, it is another one's.
func (p propagators) customKind(ctx context.Context, from Informers, k customkindsplan.Kind) error {
	definition, err := propagation.New(propagation.Options{
		Client: p.Client, Informers: from.ForResource, Federation: p.Federation, Recorder: p.Recorder, Workers: 1,
		Kinds: []propagationplan.Kind{propagationplan.CustomResourceDefinitions}, Shared: true, // with those of other custom kinds
		Owns: func(_ *propagationplan.Kind, namespace, name string) bool {
			return name == k.Definition && p.owns(namespace, name)
		},
	})
	if err != nil {
		return err
	}
	row, own := propagationplan.CustomKind(k.Resource, k.Kind), from.Another()
	if k.Scale != (customkindsplan.Scale{}) {
		row.Scale = &propagationplan.Scale{Replicas: k.Scale.Replicas, Selector: k.Scale.Selector}
	}
	objects, err := p.propagation(func(r schema.GroupVersionResource) cache.SharedIndexInformer {
		if r == k.Resource {
			return own.ForResource(r)
		}
		return from.ForResource(r)
	}, []propagationplan.Kind{row})
	if err != nil {
		ended, end := context.WithCancel(ctx)
		end()
		return errors.Join(err, definition.Run(ended)) // which has begun
	}
	group, ctx := errgroup.WithContext(ctx)
	own.Start(ctx.Done())
	p.Members.Follow(ctx, func(ctx context.Context, m Member) error { return p.engage(ctx, m, definition, nil) })
	p.Members.Follow(ctx, func(ctx context.Context, m Member) error {
		go supervisor.Keep(ctx, "propagation", func(ctx context.Context) { p.engageOnceServed(ctx, m, k.Resource, objects) })
		return nil
	})
	group.Go(supervisor.Protected(ctx, "propagation", definition.Run))
	group.Go(supervisor.Protected(ctx, "propagation", objects.Run))
	return group.Wait()
}

// Between two tries whether a member serves a kind: at first, and at most.
const (
	servedFirst = 200 * time.Millisecond
	servedLast  = 10 * time.Second
)

// engageOnceServed engages a member as soon as it serves a custom kind, whose definition has to get there first.
func (p propagators) engageOnceServed(ctx context.Context, m Member, r schema.GroupVersionResource, to *propagation.Controller) {
	wait := servedFirst
	for !isServed(ctx, m, r) {
		select {
		case <-ctx.Done():
			m.SetForbidden(r.GroupResource().String(), false) // nobody asks any more
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, servedLast)
	}
	if err := p.engage(ctx, m, to, nil); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Failed to engage a cluster for a custom kind, will retry when it reconnects", "cluster", m.Name, "resource", r)
	}
}

// isServed reports whether a member serves a resource and lets us list it. That it forbids us to goes to the Cluster's status.
func isServed(ctx context.Context, m Member, r schema.GroupVersionResource) bool {
	ctx, cancel := context.WithTimeout(ctx, servedLast)
	defer cancel()
	_, err := m.Client.Resource(r).List(ctx, metav1.ListOptions{Limit: 1, ResourceVersion: "0"})
	if err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		m.SetForbidden(r.GroupResource().String(), apierrors.IsForbidden(err))
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

// both is a selector of what two select; "" selects all.
func both(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "," + b
}
