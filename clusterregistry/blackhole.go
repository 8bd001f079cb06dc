package clusterregistry

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/isolation"
)

// Blackholed are the clusters whose node agents have a Lease that has them drop what comes from outside, sorted: one that this process has renewed
// within the last 30 s, or that the process that reports is to renew.
func (r *Registry) Blackholed() (clusters []string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	now := time.Now()
	for name, k := range r.keepers {
		if until := k.blackhole.until.Load(); until != nil && now.Before(*until) {
			clusters = append(clusters, name)
		}
	}
	slices.Sort(clusters)
	return clusters
}

// passOnWithin is how young a renewal by a drill must be to be passed on: so nobody is blackholed for much longer than a drill asks for it.
const passOnWithin = 2 * isolation.Renew

// blackhole is what a drill asks of a cluster's node agents, and whether they do it. All fields but until belong to the keeper's goroutine.
type blackhole struct {
	passedOn  time.Time                 // the renewal by a drill that was passed on to the node agents last
	releaseBy time.Time                 // until then their Lease may be held, and is to be released
	sought    bool                      // it is known whether the Lease of the drill under way is held
	until     atomic.Pointer[time.Time] // until then they drop what comes from outside; nil: they do not
}

// forwardBlackhole passes on to the node agents what a drill asks of them, past the barrier: each renewal, and that it is over. The process that reports does
// it; another one takes it to be done.
func (k *keeper) forwardBlackhole(ctx context.Context) {
	if k.link == nil {
		return
	}
	now, lease := time.Now(), agentLease{k.link, k.registry.options.Timeout}
	k.registry.mu.RLock()
	asked := k.registry.isolation.Blackhole(k.name, now)
	k.registry.mu.RUnlock()
	switch reports := k.registry.reports(); {
	case !reports && asked.Drill == "":
		k.blackhole.sought = false
		k.blackhole.until.Store(nil)
	case !reports:
		k.blackhole.until.Store(&asked.Until)
	case asked.Drill == "":
		k.blackhole.end(ctx, lease, k.cluster.known.Drill() != nil, now)
	default:
		k.blackhole.renew(ctx, lease, asked, now)
	}
}

func (b *blackhole) renew(ctx context.Context, of agentLease, asked isolation.Blackhole, now time.Time) {
	if asked.Found && b.passedOn.IsZero() { // another process, or the one before, has renewed it
		b.until.Store(&asked.Until)
	}
	if asked.Renewed.Equal(b.passedOn) || asked.Until.Sub(now) < isolation.Lasts-passOnWithin {
		return
	}
	until := now.Add(isolation.Lasts)
	b.sought, b.releaseBy = true, until
	err := of.change(ctx, func(lease *coordinationv1.Lease) *coordinationv1.Lease {
		return isolation.RenewedLease(lease, asked.Drill, now)
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "The Lease that has node agents drop what comes from outside cannot be renewed")
		return
	}
	b.passedOn = asked.Renewed
	b.until.Store(&until)
}

// end tells node agents that a drill is over. Where that fails for as long as they would go on, it is over by itself. drilled: a drill still has the
// cluster out.
func (b *blackhole) end(ctx context.Context, of agentLease, drilled bool, now time.Time) {
	if drilled && !b.sought { // who renewed it may have died
		b.releaseBy = now.Add(isolation.Lasts)
	}
	b.sought = drilled
	if !now.Before(b.releaseBy) {
		return
	}
	err := of.change(ctx, func(lease *coordinationv1.Lease) *coordinationv1.Lease {
		if lease.Spec.HolderIdentity == nil {
			return nil
		}
		free := lease.DeepCopy()
		free.Spec = coordinationv1.LeaseSpec{}
		return free
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) { // where joining gave no right to it, nobody has held it
		b.releaseBy = time.Time{}
		b.until.Store(nil)
	}
}

// agentLease is the Lease of a member's node agents, past the barrier of a drill.
type agentLease struct {
	link    *link
	timeout time.Duration
}

// change changes it; to nil: it stays as it is.
func (a agentLease) change(ctx context.Context, change func(*coordinationv1.Lease) *coordinationv1.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	defer utilnet.CloseIdleConnectionsFor(a.link.behind.Transport)
	client, err := coordinationclient.NewForConfigAndClient(a.link.config, a.link.behind)
	if err != nil {
		return err
	}
	leases := client.Leases(v1beta1.FederationNamespace)
	lease, err := leases.Get(ctx, v1beta1.DrillLease, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if lease = change(lease); lease == nil {
		return nil
	}
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}
