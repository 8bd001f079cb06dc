package propagation

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/resourceversion"
	"federation/controllers/held"
	"federation/controllers/propagation/plan"
	"federation/controllers/supervisor"
)

// Engage starts work in a member until ctx is done. It subscribes to the member's informers and returns; the caller
// starts them. After the end of Run it does nothing.
func (c *Controller) Engage(ctx context.Context, mem Member) error {
	m, err := c.subscribeMember(mem)
	if err != nil {
		return err
	}
	serve := func(ctx context.Context) {
		if m == nil { // the work panicked: what it knew of the member may be wrong
			if m, err = c.subscribeMember(mem); err != nil {
				klog.FromContext(ctx).Error(err, "The cluster is not served until it is connected again", "cluster", mem.Name)
				return
			}
		}
		now := m
		m = nil
		c.serveMember(ctx, now)
	}
	if !c.serving.Start(ctx, "propagation", serve) {
		m.unlisten()
		m.queue.ShutDown()
	}
	return nil
}

// subscribeMember makes a member that hears of its copies.
func (c *Controller) subscribeMember(mem Member) (*member, error) {
	m := newMember(mem, c.view)
	var errs []error
	for i := range c.Kinds {
		errs = append(errs, c.watchCopies(m, &c.Kinds[i]))
	}
	errs = append(errs, c.watchEndpoints(m), c.watchScaling(m))
	if err := errors.Join(errs...); err != nil {
		m.unlisten()
		m.queue.ShutDown()
		return nil, err
	}
	return m, nil
}

// patience is how long a member's caches may take to sync before work begins without the missing ones: the federation
// may not be allowed to list a kind there.
const patience = 10 * time.Second

// serveMember waits for the caches, clears stale copies, and then works.
func (c *Controller) serveMember(ctx context.Context, m *member) {
	log := klog.FromContext(ctx).WithValues("cluster", m.Name)
	defer m.unlisten()
	defer m.queue.ShutDown()
	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
		return
	}
	late := c.waitForCaches(ctx, m)
	if ctx.Err() != nil {
		return
	}
	started := time.Now()
	var workers sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	c.addMember(m) // from now on deletes wait for this member, also those that come while it is cleared
	defer func() {
		cancel()
		c.removeMember(m)
		m.queue.ShutDown()
		workers.Wait()
		log.Info("Disengaged")
	}()
	stale := c.clearStale(ctx, m, c.Kinds)
	m.brake.clearing.Store(false)
	for _, k := range c.othersObjects() {
		c.recordOthersReport(m, k)
		m.queue.AddAfter(k, othersTime)
	}
	for _, k := range c.objects() {
		m.queue.Add(k)
	}
	c.reportAll()
	c.wakeAllWaiting()
	log.Info("Engaged", "staleCopies", stale, "clearedIn", time.Since(started).Round(time.Millisecond))
	for range c.Workers {
		workers.Go(func() {
			supervisor.ProcessQueue(ctx, "propagation", m.queue, func(ctx context.Context, k key) error {
				defer m.lanes.recordDone(k)
				return c.syncMember(ctx, m, k)
			})
		})
	}
	workers.Go(supervisor.Kept(ctx, "propagation", m.resyncUnconfirmed))
	workers.Go(supervisor.Kept(ctx, "propagation", func(ctx context.Context) { c.wakeWhenHeardOf(ctx, m) }))
	workers.Go(supervisor.Kept(ctx, "propagation", func(ctx context.Context) { c.wakeFloors(ctx, m) }))
	workers.Go(supervisor.Kept(ctx, "propagation", func(ctx context.Context) { c.dispatch.watchBrake(ctx, m) }))
	for _, k := range late {
		workers.Go(supervisor.Kept(ctx, "propagation", func(ctx context.Context) { c.takeUpLate(ctx, m, k) }))
	}
	<-ctx.Done()
}

// addMember adds a member.
func (c *Controller) addMember(m *member) { c.countEngaged(c.add(m)) }

// countEngaged counts for the built-in kinds only: the propagations of custom kinds engage the same members.
func (c *Controller) countEngaged(n int) {
	if c.kindOf(namespaces) != nil {
		engaged.Set(float64(n))
	}
}

// removeMember removes a member.
func (c *Controller) removeMember(m *member) {
	c.countEngaged(c.remove(m))
	for _, k := range c.objects() {
		if k.Kind.Endpoints {
			c.reports.AddAfter(k, settleTime) // with a delay: when the process ends its members leave, which needs no report
		} else {
			c.enqueueReport(k)
		}
	}
	c.wakeAllWaiting()
}

// resyncUnconfirmed enqueues the objects whose writes the cache has not seen, until ctx is done.
func (m *member) resyncUnconfirmed(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) {
		for _, k := range m.Unconfirmed() {
			m.queue.Add(k)
		}
	}, resourceversion.Believed/10)
}

// waitForCaches waits for the member's caches, and returns the kinds whose caches are not synced after patience.
func (c *Controller) waitForCaches(ctx context.Context, m *member) (late []*plan.Kind) {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i := range c.Kinds {
		k := &c.Kinds[i]
		if !cache.WaitForCacheSync(patient.Done(), func() bool { return m.cacheSynced(k) }) {
			late = append(late, k)
			klog.FromContext(ctx).Info("Cannot list objects of a kind in the member; continuing without", "cluster", m.Name, "kind", k.Kind)
		}
	}
	return late
}

// takeUpLate starts work with a kind whose cache in the member syncs late.
func (c *Controller) takeUpLate(ctx context.Context, m *member, k *plan.Kind) {
	if !cache.WaitForCacheSync(ctx.Done(), func() bool { return m.cacheSynced(k) }) {
		return
	}
	c.clearStale(ctx, m, []plan.Kind{*k})
	for _, k := range c.objectsOf(k) {
		m.queue.Add(k)
	}
}

// clearStale deletes the copies of federated objects that are deleted or must go, before anything else happens in a
// returning member. It returns their number. Failed ones are retried.
func (c *Controller) clearStale(ctx context.Context, m *member, kinds []plan.Kind) (stale int) {
	var keys []key
	for i := range kinds {
		k := c.kindOf(kinds[i].Resource)
		for _, obj := range m.Informers(k.Resource).GetStore().List() {
			there := held.Object(obj)
			copyKey := keyOf(k, there)
			if !c.owns(copyKey) || !v1beta1.IsCopy(there, k.GroupKind(), c.Federation) {
				continue
			}
			if f := c.object(copyKey); f == nil || f.GetDeletionTimestamp() != nil || plan.Outlived(plan.SourceOf(f), there) {
				keys = append(keys, copyKey)
			}
		}
	}
	todo := make(chan key, len(keys))
	for _, k := range keys {
		todo <- k
	}
	close(todo)
	var wg sync.WaitGroup
	for range min(c.Workers, len(keys)) {
		wg.Go(func() {
			for k := range todo {
				if err := supervisor.Protect(ctx, "propagation", func() error { return c.syncMember(ctx, m, k) }); err != nil {
					m.queue.AddRateLimited(k)
				}
			}
		})
	}
	wg.Wait()
	return len(keys)
}
