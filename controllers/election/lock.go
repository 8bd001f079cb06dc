package election

import (
	"context"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"federation/controllers/writegate"
)

// watchedLock notes the renewals of a Lease at a gate.
type watchedLock struct {
	resourcelock.Interface
	gate *writegate.Gate
}

// Create implements resourcelock.Interface.
func (l watchedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (l watchedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(record, func() error { return l.Interface.Update(ctx, record) })
}

func (l watchedLock) note(record resourcelock.LeaderElectionRecord, write func() error) error {
	asked := l.gate.Now()
	err := write()
	if err == nil && record.HolderIdentity == l.Identity() {
		l.gate.Renewed(asked)
	}
	return err
}
