package clusterregistry

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
)

// drillLease is an informer of the one Lease by which drills isolate clusters.
func drillLease(core kubernetes.Interface) cache.SharedIndexInformer {
	return coordinationinformers.NewFilteredLeaseInformer(core, v1beta1.FederationNamespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector = "metadata.name=" + v1beta1.DrillLease
	})
}

// Isolated are the clusters that this process has cut itself off from now. known: whether it has looked for the Lease that says so.
func (r *Registry) Isolated() (clusters []string, known bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.isolation.Clusters(time.Now())), r.isolation.Known()
}

// DeadBehind are the isolated clusters that answer nothing past the isolation either, sorted. Only the process that reports asks them.
func (r *Registry) DeadBehind() (clusters []string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for name, k := range r.keepers {
		if k.behind.unanswered.Load() >= deadAfter {
			clusters = append(clusters, name)
		}
	}
	slices.Sort(clusters)
	return clusters
}

const (
	// behindEvery is the time between two checks past the isolation, and deadAfter how many have to find nothing.
	behindEvery = 5 * time.Second
	deadAfter   = 2
)

// seeLease takes in what the Lease says now.
func (r *Registry) seeLease() {
	var lease *coordinationv1.Lease
	if all := r.leases.GetStore().List(); len(all) > 0 {
		lease = all[0].(*coordinationv1.Lease)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isolation.Observe(lease, time.Now())
}

// isolate follows the Lease until ctx is done: it cuts this process off, and lets it in again when nobody renews.
func (r *Registry) isolate(ctx context.Context, changed <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		r.mu.RLock()
		as, now := map[*keeper]v1beta1.IsolationMode{}, time.Now()
		for name, k := range r.keepers {
			as[k] = r.isolation.ModeOf(name, now)
		}
		until := r.isolation.EndsAt()
		r.mu.RUnlock()
		for k, mode := range as {
			if k.barrier.set(mode) {
				klog.FromContext(ctx).Info("A drill cuts the federation off from the cluster, or ends that", "cluster", k.name, "as", mode)
				k.checkNow()
			}
		}
		timer.Stop()
		if until.After(now) {
			timer.Reset(time.Until(until))
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-changed:
			r.seeLease()
		}
	}
}

// behindBarrier is what checks past the barrier of a drill found.
type behindBarrier struct {
	looked     time.Time
	unanswered atomic.Int32 // that found nothing, in a row; any goroutine may read it
}

// checkBehind notes, of a cluster that is isolated and judged lost for that, whether it is there.
func (k *keeper) checkBehind(ctx context.Context) {
	as, _ := k.barrier.state()
	if as == "" || k.link == nil || k.state.Ready() || !k.registry.reports() {
		if as == "" {
			k.behind.unanswered.Store(0)
		}
		return
	}
	if time.Since(k.behind.looked) < behindEvery {
		return
	}
	k.behind.looked = time.Now()
	if k.link.checkBehind(ctx, k.registry.options.Timeout) {
		k.behind.unanswered.Store(0)
	} else if ctx.Err() == nil {
		k.behind.unanswered.Add(1)
	}
}
