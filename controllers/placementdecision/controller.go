// Package placementdecision publishes where federated objects go, as PlacementDecisions: SIG Multicluster's API (KEP-5313) for
// tools such as Argo CD, Flux and Kueue. An object asks for it by the API's own label, placement-key.
//
//	decisions, err := placementdecision.New(placementdecision.Options{Client: client, Informers: informers, Asking: asking})
//	err = decisions.Run(ctx)   // in the process that leads
//
// What is to be written is decided in package plan. PlacementDecisions of other schedulers are left alone.
package placementdecision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
	"federation/controllers/placementdecision/plan"
	"federation/controllers/supervisor"
)

const (
	fieldManager = "federation-placementdecisions"
	writeTimeout = 30 * time.Second
	// settle is how long an object may go on changing until its PlacementDecisions follow.
	settle  = 200 * time.Millisecond
	workers = 4
)

// byOwner is the index of PlacementDecisions by the object that they are about.
const byOwner = "owner"

// Options are what a Controller needs.
type Options struct {
	// Client writes to the federation.
	Client dynamic.Interface
	// Informers are the federation's, shared with others and started by them.
	Informers func(schema.GroupVersionResource) cache.SharedIndexInformer
	// Asking are informers of objects that Select selects.
	Asking func(schema.GroupVersionResource) cache.SharedIndexInformer
}

// Select selects the objects that ask for PlacementDecisions.
func Select(o *metav1.ListOptions) {
	o.LabelSelector = v1beta1.NotRevisions + "," + v1beta1.PlacementKeyLabel
}

// key is a federated object or, without a kind, a PlacementDecision that is about none.
type key struct {
	kind string
	types.NamespacedName
}

// Controller keeps the PlacementDecisions. Make it with New.
type Controller struct {
	Options
	kinds               map[string]cache.SharedIndexInformer // of objects that ask
	clusters, decisions cache.SharedIndexInformer
	queue               workqueue.TypedRateLimitingInterface[key]
}

// New returns a Controller. It must be called before the informers start.
func New(o Options) (*Controller, error) {
	c := &Controller{
		Options: o, kinds: map[string]cache.SharedIndexInformer{}, clusters: o.Informers(v1beta1.ClustersResource), decisions: o.Informers(v1beta1.PlacementDecisionsResource),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[key](settle, time.Minute)),
	}
	var errs []error
	for _, k := range v1beta1.FederatedKinds {
		if k.Kind == "Namespace" { // it goes where what is in it goes
			continue
		}
		c.kinds[k.Kind] = o.Asking(k.Resource)
		add := func(obj any) { c.add(k.Kind, held.About(obj)) }
		_, err := held.By(c.kinds[k.Kind]).AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, DeleteFunc: add, UpdateFunc: func(was, is any) {
			if !held.OnlyStatusDiffers(was, is) {
				add(is)
			}
		}})
		errs = append(errs, err)
	}
	errs = append(errs, c.decisions.AddIndexers(cache.Indexers{byOwner: func(obj any) ([]string, error) {
		u := held.Object(obj)
		return []string{ownerKey(u).String()}, nil
	}}))
	decision := func(obj any) {
		if u := held.Object(obj); plan.IsOurs(u) {
			c.queue.AddAfter(ownerKey(u), settle)
		}
	}
	_, err := c.decisions.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: decision, DeleteFunc: decision, UpdateFunc: func(was, is any) {
		decision(was)
		decision(is)
	}})
	return c, errors.Join(append(errs, err, c.watchClusters())...)
}

func (c *Controller) add(kind string, o held.Named) {
	c.queue.AddAfter(key{kind, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}, settle)
}

// watchClusters enqueues all objects when there are other clusters to select, or others select them.
func (c *Controller) watchClusters() error {
	all := func(any) {
		for kind, asking := range c.kinds {
			for _, name := range asking.GetStore().ListKeys() {
				if namespace, name, err := cache.SplitMetaNamespaceKey(name); err == nil {
					c.queue.AddAfter(key{kind, types.NamespacedName{Namespace: namespace, Name: name}}, settle)
				}
			}
		}
	}
	_, err := c.clusters.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: all, DeleteFunc: all, UpdateFunc: func(was, is any) {
		before, after := cluster(was), cluster(is)
		if !maps.Equal(before.Labels, after.Labels) || !slices.Equal(before.Spec.AllowedNamespaces, after.Spec.AllowedNamespaces) {
			all(is)
		}
	}})
	return err
}

// ownerKey returns what a PlacementDecision is about.
func ownerKey(u *unstructured.Unstructured) key {
	owner := plan.Owner(u)
	if owner.Kind == "" {
		return key{"", types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}}
	}
	return key{owner.Kind, types.NamespacedName{Namespace: u.GetNamespace(), Name: owner.Name}}
}

// String returns the key as the index has it.
func (k key) String() string { return k.kind + "/" + k.NamespacedName.String() }

// Run keeps the PlacementDecisions until ctx is done.
func (c *Controller) Run(ctx context.Context) error {
	var work sync.WaitGroup
	defer work.Wait()
	defer c.queue.ShutDown()
	synced := []cache.InformerSynced{c.clusters.HasSynced, c.decisions.HasSynced}
	for _, asking := range c.kinds {
		synced = append(synced, asking.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil
	}
	for range workers {
		work.Go(func() { supervisor.ProcessQueue(ctx, "placementdecisions", c.queue, c.sync) })
	}
	<-ctx.Done()
	return nil
}

// sync makes the PlacementDecisions of one object as they should be.
func (c *Controller) sync(ctx context.Context, k key) error {
	asking := c.kinds[k.kind]
	var want []*unstructured.Unstructured
	if asking != nil {
		if u := find(asking, k.NamespacedName); u != nil && federated(u) {
			var decided bool
			if want, decided = plan.Decisions(u, c.allClusters()); !decided {
				return nil
			}
		}
	}
	have, err := c.have(k, want)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	to := c.Client.Resource(v1beta1.PlacementDecisionsResource).Namespace(k.Namespace)
	apply, remove := plan.Changes(want, have)
	for _, w := range apply {
		if _, err := to.Apply(ctx, w.GetName(), w, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
			return err
		}
	}
	for _, h := range remove {
		uid := h.GetUID()
		err := to.Delete(ctx, h.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// have returns the federation's PlacementDecisions that are about an object, and those of the names that it wants.
func (c *Controller) have(k key, want []*unstructured.Unstructured) (have []*unstructured.Unstructured, err error) {
	about, err := c.decisions.GetIndexer().ByIndex(byOwner, k.String())
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, obj := range about {
		if u := held.Object(obj); plan.IsOurs(u) {
			have, seen[u.GetName()] = append(have, u), true
		}
	}
	for _, w := range want {
		u := find(c.decisions, types.NamespacedName{Namespace: k.Namespace, Name: w.GetName()})
		switch {
		case u == nil || seen[u.GetName()]:
		case !plan.IsOurs(u):
			return nil, fmt.Errorf("PlacementDecision %s is another scheduler's: %q", u.GetName(), u.Object["schedulerName"])
		default:
			have = append(have, u)
		}
	}
	return have, nil
}

func (c *Controller) allClusters() []*v1beta1.Cluster {
	list := c.clusters.GetStore().List()
	all := make([]*v1beta1.Cluster, 0, len(list))
	for _, obj := range list {
		all = append(all, cluster(obj))
	}
	return all
}

// cluster decodes a Cluster; one that cannot be decoded has its name and labels.
func cluster(obj any) *v1beta1.Cluster {
	u, c := held.Object(obj), &v1beta1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c); err != nil {
		c = &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: u.GetName(), Labels: u.GetLabels()}}
	}
	return c
}

// federated reports whether members have copies of an object.
func federated(u *unstructured.Unstructured) bool {
	i := slices.IndexFunc(v1beta1.FederatedKinds, func(k v1beta1.FederatedKind) bool { return k.Kind == u.GetKind() })
	kind, _, _ := unstructured.NestedString(u.Object, "type")
	return i >= 0 && v1beta1.Federated(v1beta1.FederatedKinds[i].Resource.GroupResource(), u.GetNamespace(), u.GetName(), corev1.SecretType(kind))
}

// find returns what an informer has, or nil.
func find(in cache.SharedIndexInformer, name types.NamespacedName) *unstructured.Unstructured {
	obj, there, err := held.By(in).GetStore().GetByKey(name.String())
	if err != nil || !there {
		return nil
	}
	return held.Object(obj)
}
