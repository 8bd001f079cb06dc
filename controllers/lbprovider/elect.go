package lbprovider

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// LeaseName is the Lease of the provider that holds the addresses.
const LeaseName = "federation-lb-provider"

// Times of the Lease. Others take it leaseDuration after the last renewal that they saw, up to 2.2 retryPeriods late: within 4.1 s.
const (
	leaseDuration = 3 * time.Second
	renewDeadline = 2 * time.Second
	retryPeriod   = 500 * time.Millisecond
)

// elect has one provider hold the addresses, until ctx ends. A holder keeps them until it sees that another one has the Lease: while the
// API is away nobody can, and addresses that nobody holds serve nobody. Two that hold for a moment send packets to the same nodes.
func (p *Provider) elect(ctx context.Context) {
	lock := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: p.LeaseNamespace, Name: LeaseName}, Client: p.Kube.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: p.Name},
	}
	electing, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(ctx, func() { // first the addresses, then the Lease: who takes over finds them free
		p.hold(false)
		if err := p.holdAddresses(ctx, nil); err != nil {
			klog.ErrorS(err, "Cannot give the addresses of Services up: they lapse")
		}
		giveUp()
	})()
	for electing.Err() == nil {
		leaderelection.RunOrDie(electing, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {
					if ctx.Err() == nil {
						klog.InfoS("This provider holds the addresses", "name", p.Name)
						p.hold(true)
					}
				},
				OnStoppedLeading: func() {},
				OnNewLeader: func(name string) {
					if name != p.Name {
						klog.InfoS("Another provider holds the addresses", "name", name)
						p.hold(false)
					}
				},
			},
		})
	}
}
