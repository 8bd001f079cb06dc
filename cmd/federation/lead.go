package main

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
)

// leaderLease is the Lease of the one process that decides: it places, fails over, and says how Clusters are.
const leaderLease = "federation-controllers"

// lead runs do while the Lease is ours, until ctx is done or do has failed. When the Lease is lost, do is
// ended, and run anew when the Lease is ours again.
func lead(ctx context.Context, config *rest.Config, identity string, do func(context.Context) error) error {
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, v1beta1.FederationNamespace, leaderLease,
		resourcelock.ResourceLockConfig{Identity: identity}, config, 6*time.Second)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := leadOnce(ctx, lock, do); err != nil {
			return err
		}
		if ctx.Err() == nil {
			klog.FromContext(ctx).Info("The Lease is lost: another process may lead", "lease", leaderLease)
		}
	}
	return nil
}

// leadOnce waits for the Lease, and runs do until ctx is done or the Lease is lost. The Lease is given up
// when do has ended, not before.
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
		Lock: lock, LeaseDuration: 10 * time.Second, RenewDeadline: 6 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
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
		return <-led
	default:
		return nil
	}
}
