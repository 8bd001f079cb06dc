package nodeagent

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// watchLease follows the Lease by which a drill makes the node drop traffic from outside, until ctx ends.
func (a *Agent) watchLease(ctx context.Context) {
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: a.Leases, ObjectType: &coordinationv1.Lease{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: a.setLease, UpdateFunc: func(_, now any) { a.setLease(now) }, DeleteFunc: func(any) { a.setLease(&coordinationv1.Lease{}) },
		},
	})
	go informer.RunWithContext(ctx)
	if cache.WaitFor(ctx, "", informer.HasSyncedChecker()) {
		a.Health.sawLease()
	}
}

// setLease takes in the Lease.
func (a *Agent) setLease(obj any) {
	lease, holder, renewed := obj.(*coordinationv1.Lease), "", time.Time{}
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	if lease.Spec.RenewTime != nil {
		renewed = lease.Spec.RenewTime.Time
	}
	a.mu.Lock()
	was := a.dark.Until()
	a.dark.See(holder, renewed, time.Now())
	until := a.dark.Until()
	a.mu.Unlock()
	if dark := until.After(time.Now()); dark != was.After(time.Now()) {
		klog.InfoS("A drill changed until when traffic to Services from outside is dropped", "dropped", dark, "drill", holder)
	}
	a.Health.setDark(until)
	select {
	case a.asked <- struct{}{}:
	default:
	}
}

// setBlackhole sets in the kernel until when traffic from outside is dropped. If that keeps failing, the previous time runs
// out.
func (a *Agent) setBlackhole(ctx context.Context) {
	a.mu.Lock()
	until := a.dark.Until()
	a.mu.Unlock()
	if err := a.Blackhole(ctx, until); err != nil && ctx.Err() == nil {
		klog.ErrorS(err, "Cannot set the blackhole in the kernel; will retry", "in", a.Retry)
		a.rest(ctx, a.Retry)
		select {
		case a.asked <- struct{}{}:
		default:
		}
	}
}
