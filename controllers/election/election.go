// Package election has one process at a time decide: who holds a Lease, by client-go's leader election.
package election

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/writegate"
)

// leaseName is the Lease of the one process that decides: it places, fails over, and says how Clusters are.
const leaseName = v1beta1.LeaderLease

// Times of the Lease. Others look at it each 1.0 to 2.2 retryPeriods: they see the last renewal of a process that dies, and take its place
// leaseDuration later, each up to 2.2 s late, so within 11.4 s. A process that cannot renew ends its work renewDeadline after a
// try that began retryPeriod after the last renewal; the gate closes a second later, whatever its goroutines do, and before the Lease
// can be another's.
const (
	leaseDuration = 7 * time.Second
	renewDeadline = 4 * time.Second
	retryPeriod   = time.Second
	// requestTimeout is less than renewDeadline, so that one request that hangs does not cost the Lease.
	requestTimeout = renewDeadline / 2
	// GateAfter is after how long without a renewal who leads has to write nothing more.
	GateAfter = renewDeadline + retryPeriod + time.Second
)

// Lead runs do while the Lease is ours, until ctx is done or do has failed. When the Lease is lost, do is ended, and run again when the Lease is ours again.
// Each renewal is noted at the gate; leases reaches the API that has the Lease, and identity names this process there.
func Lead(ctx context.Context, leases coordinationclient.LeasesGetter, identity string, gate *writegate.Gate, do func(context.Context) error) error {
	lock := watchedLock{&resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: leaseName}, Client: leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}, gate}
	for ctx.Err() == nil {
		if err := leadOnce(ctx, lock, do); err != nil {
			return err
		}
		if ctx.Err() == nil {
			klog.FromContext(ctx).Info("The Lease is lost: another process may lead", "lease", leaseName)
		}
	}
	return nil
}

// leadOnce waits for the Lease, and runs do until ctx is done or the Lease is lost. The Lease is given up
// when do has ended, not before: the election itself gives it up first, and ends do afterwards.
func leadOnce(ctx context.Context, lock resourcelock.Interface, do func(context.Context) error) error {
	electing, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	started, led := make(chan struct{}), make(chan error, 1)
	defer context.AfterFunc(ctx, func() {
		select {
		case <-started: // it gives up by itself
		default:
			giveUp()
		}
	})()
	leaderelection.RunOrDie(electing, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(elected context.Context) {
				close(started)
				defer giveUp()
				elected, end := context.WithCancel(elected)
				defer end()
				defer context.AfterFunc(ctx, end)()
				led <- do(elected)
			},
			OnStoppedLeading: func() {},
		},
	})
	select {
	case <-started:
		err := <-led
		release(context.WithoutCancel(ctx), lock)
		return err
	default:
		return nil
	}
}

// release gives the Lease up, if it is still ours, so that another process need not wait for its end.
func release(ctx context.Context, lock resourcelock.Interface) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	record, _, err := lock.Get(ctx)
	if err != nil || record.HolderIdentity != lock.Identity() {
		return
	}
	now := metav1.Now()
	given := resourcelock.LeaderElectionRecord{LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now}
	if err := lock.Update(ctx, given); err != nil {
		klog.FromContext(ctx).V(1).Info("The Lease is left to end by itself", "lease", leaseName, "err", err)
	}
}
