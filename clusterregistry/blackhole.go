package clusterregistry

import (
	"context"
	"slices"
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
		if until := k.dark.Load(); until != nil && now.Before(*until) {
			clusters = append(clusters, name)
		}
	}
	slices.Sort(clusters)
	return clusters
}

// passOnWithin is how young a renewal by a drill must be to be passed on: so nobody is blackholed for much longer than a drill asks for it.
const passOnWithin = 2 * isolation.Renew

// forwardBlackhole passes on to the node agents what a drill asks of them, past the barrier: each renewal, and that it is over. The process that reports does
// it; another one takes it to be done.
func (k *keeper) forwardBlackhole(ctx context.Context) {
	now := time.Now()
	k.registry.mu.RLock()
	asked := k.registry.isolation.Blackhole(k.name, now)
	k.registry.mu.RUnlock()
	switch {
	case k.link == nil:
	case asked.Drill == "":
		k.endBlackhole(ctx, now)
	case !k.registry.reports():
		k.dark.Store(&asked.Until)
	default:
		k.renewBlackhole(ctx, asked, now)
	}
}

func (k *keeper) renewBlackhole(ctx context.Context, asked isolation.Blackhole, now time.Time) {
	if asked.Found && k.passedOn.IsZero() { // another process, or the one before, has renewed it
		k.dark.Store(&asked.Until)
	}
	if asked.Renewed.Equal(k.passedOn) || asked.Until.Sub(now) < isolation.Lasts-passOnWithin {
		return
	}
	until := now.Add(isolation.Lasts)
	k.sought, k.releaseBy = true, until
	err := k.changeLease(ctx, func(lease *coordinationv1.Lease) *coordinationv1.Lease {
		return isolation.RenewedLease(lease, asked.Drill, now)
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "The Lease that has node agents drop what comes from outside cannot be renewed")
		return
	}
	k.passedOn = asked.Renewed
	k.dark.Store(&until)
}

// endBlackhole tells node agents that a drill is over. Where that fails for as long as they would go on, it is over by itself.
func (k *keeper) endBlackhole(ctx context.Context, now time.Time) {
	if !k.registry.reports() {
		k.sought = false
		k.dark.Store(nil)
		return
	}
	drilled := k.known.Drill() != nil
	if drilled && !k.sought { // who renewed it may have died
		k.releaseBy = now.Add(isolation.Lasts)
	}
	k.sought = drilled
	if !now.Before(k.releaseBy) {
		return
	}
	err := k.changeLease(ctx, func(lease *coordinationv1.Lease) *coordinationv1.Lease {
		if lease.Spec.HolderIdentity == nil {
			return nil
		}
		free := lease.DeepCopy()
		free.Spec = coordinationv1.LeaseSpec{}
		return free
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) { // where joining gave no right to it, nobody has held it
		k.releaseBy = time.Time{}
		k.dark.Store(nil)
	}
}

// changeLease changes the Lease of the member's node agents, past the barrier of a drill; to nil: it stays as it is.
func (k *keeper) changeLease(ctx context.Context, change func(*coordinationv1.Lease) *coordinationv1.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, k.registry.options.Timeout)
	defer cancel()
	defer utilnet.CloseIdleConnectionsFor(k.link.behind.Transport)
	client, err := coordinationclient.NewForConfigAndClient(k.link.config, k.link.behind)
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
