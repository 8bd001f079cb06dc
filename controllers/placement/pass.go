package placement

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/supervisor"
	"federation/scheduler"
)

// item is an object in a pass.
type item struct {
	key
	u *unstructured.Unstructured
	scheduler.Object
}

// decideWhatComes processes the queue in batches until it is shut down.
func (c *Controller) decideWhatComes(ctx context.Context) {
	for {
		k, quit := c.decide.Get()
		if quit {
			return
		}
		batch := []key{k}
		for c.decide.Len() > 0 && len(batch) < maxBatch {
			if k, quit = c.decide.Get(); quit {
				return
			}
			batch = append(batch, k)
		}
		c.passProtected(ctx, batch)
		for _, k := range batch {
			c.decide.Done(k)
		}
	}
}

// passProtected decides a batch. If that panics, it decides the objects one by one, so that an object that panics
// delays no other; it is requeued with backoff.
func (c *Controller) passProtected(ctx context.Context, batch []key) {
	keys := c.expandPasses(batch, time.Now())
	decide := func(keys map[key]bool) error {
		return supervisor.Protect(ctx, "placement", func() error { c.placeBatch(keys, time.Now()); return nil })
	}
	failed := decide(keys) != nil
	for k := range keys {
		if failed && decide(map[key]bool{k: true}) != nil {
			c.decide.AddRateLimited(k)
		} else {
			c.decide.Forget(k)
		}
	}
	for _, k := range batch {
		if k.Name != "" {
			continue
		}
		if kind, known := c.kinds.all()[k.resource]; known { // all objects of a custom kind
			c.kinds.setCounted(kind, true)
			c.policies.enqueueNaming(kind.GroupKind())
		}
	}
}

// placeBatch decides objects in the order of their priority. Undivided objects come after the workloads, which they may have
// to follow.
func (c *Controller) placeBatch(keys map[key]bool, now time.Time) {
	defer observePass(now)
	w := c.snapshot(now)
	var divided, others []item
	for k := range keys {
		i, ok := c.readItem(k)
		switch {
		case !ok:
		case i.Divided:
			divided = append(divided, i)
		default:
			others = append(others, i)
		}
	}
	var changed []change
	for _, items := range [][]item{divided, others} {
		for _, at := range priorityOrder(items, w) {
			if ch, ok := c.placeObject(&items[at], w, now); ok {
				changed = append(changed, ch)
			}
		}
	}
	for _, ch := range changed {
		ch.intent.quiet = len(changed) > quietAbove
		c.intents.put(ch.key, ch.intent)
		c.write.Add(ch.key)
	}
}

func priorityOrder(items []item, w *scheduler.World) []int {
	objects := make([]scheduler.Object, len(items))
	for i := range items {
		objects[i] = items[i].Object
	}
	return scheduler.Order(objects, w)
}

// expandPasses replaces passes by their objects.
func (c *Controller) expandPasses(batch []key, now time.Time) map[key]bool {
	all := map[key]bool{}
	add := func(resource schema.GroupVersionResource, namespace string) {
		for _, name := range namesIn(c.Informers(resource).GetIndexer(), namespace) {
			all[key{resource, name}] = true
		}
	}
	for _, k := range batch {
		switch k.resource {
		case everything:
			for resource := range c.kinds.all() {
				add(resource, k.Namespace)
			}
		case short:
			for _, k := range c.roomWaiters() {
				all[k] = true
			}
		case due:
			keys, next := c.state.takeDue(now)
			for _, k := range keys {
				all[k] = true
			}
			if next > 0 {
				c.decide.AddAfter(key{resource: due}, next)
			}
		default:
			if k.Name == "" {
				add(k.resource, "")
			} else {
				all[k] = true
			}
		}
	}
	return all
}

// namesIn returns the objects of an informer, in one namespace or in all.
func namesIn(indexer cache.Indexer, namespace string) (out []types.NamespacedName) {
	var keys []string
	if _, indexed := indexer.GetIndexers()[cache.NamespaceIndex]; namespace != "" && indexed {
		keys, _ = indexer.IndexKeys(cache.NamespaceIndex, namespace)
	} else {
		keys = indexer.ListKeys()
	}
	for _, k := range keys {
		ns, name, err := cache.SplitMetaNamespaceKey(k)
		if err == nil && (namespace == "" || ns == namespace) {
			out = append(out, types.NamespacedName{Namespace: ns, Name: name})
		}
	}
	return out
}

// roomWaiters returns the objects that more room can help: those with unschedulable or overflow replicas, and those with
// pods that a cluster reports as unschedulable.
func (c *Controller) roomWaiters() (out []key) {
	for k := range c.state.short {
		out = append(out, k)
	}
	if c.state.world == nil { // nothing has been decided yet, and all will be
		return out
	}
	for _, cluster := range c.state.world.Clusters {
		if cluster.Status.Capacity == nil {
			continue
		}
		for _, u := range cluster.Status.Capacity.Unschedulable {
			for _, k := range v1beta1.FederatedKinds {
				if k.Kind == u.Kind {
					out = append(out, key{k.Resource, types.NamespacedName{Namespace: u.Namespace, Name: u.Name}})
				}
			}
		}
	}
	return out
}

// readItem reads an object from the caches, with a newer decision that is not in them yet.
func (c *Controller) readItem(k key) (item, bool) {
	obj, ok, err := c.Informers(k.resource).GetStore().GetByKey(k.String())
	u, _ := obj.(*unstructured.Unstructured)
	if err != nil || !ok || u == nil || u.GetDeletionTimestamp() != nil {
		c.forget(k)
		return item{}, false
	}
	if !isFederated(k, u) {
		return item{}, false
	}
	o, err := scheduler.Read(u)
	if err != nil {
		c.Recorder.Event(u, corev1.EventTypeWarning, "InvalidPlacement", err.Error())
		return item{}, false // its next change enqueues it
	}
	if decided, ok := c.intents.newerPlacement(k, u); ok {
		o.Current, o.Pending = v1beta1.ParsePlacement(decided), decided == v1beta1.PlacementPending
	}
	return item{k, u, o}, true
}

func isFederated(k key, u *unstructured.Unstructured) bool {
	if v1beta1.FederatedKindOf(k.resource.GroupResource()) == nil {
		return !v1beta1.OwnNamespace(k.Namespace)
	}
	kind, _, _ := unstructured.NestedString(u.Object, "type")
	return v1beta1.Federated(k.resource.GroupResource(), k.Namespace, k.Name, corev1.SecretType(kind))
}

// forget drops what is remembered of a deleted object.
func (c *Controller) forget(k key) {
	delete(c.state.short, k)
	delete(c.state.due, k)
	c.intents.drop(k)
	c.policies.recordGoverning(k, "")
	c.enqueueReferenced(k.Namespace, c.state.refersTo(k, referrer{}))
}

// change is a decision to write.
type change struct {
	key
	intent *intent
}

// placeObject decides one object, and records what follows for others.
func (c *Controller) placeObject(i *item, w *scheduler.World, now time.Time) (change, bool) {
	c.setReferrers(i)
	d := scheduler.Decide(i.Object, w, now)
	if c.state.setDue(i.key, d.LookAgain, now); d.LookAgain > 0 {
		c.decide.AddAfter(key{resource: due}, d.LookAgain)
	}
	c.policies.recordGoverning(i.key, d.Policy)
	c.policies.recordTogether(w, i, &d)
	c.state.assign(&i.Object, &d, now)
	if len(d.Placement.Overflow) > 0 || d.Placement.Unschedulable > 0 {
		c.state.short[i.key] = true
		if len(c.state.reserved) > 0 { // some of it may be counted twice: reserved, and in a report already
			c.decide.AddAfter(key{resource: short}, reportLag+time.Second)
		}
	} else {
		delete(c.state.short, i.key)
	}
	c.takeAlong(i, &d, w)
	if !d.Changed {
		return change{}, false
	}
	return change{i.key, &intent{u: i.u, value: d.Value(), first: i.Current == nil, decision: d}}, true
}
