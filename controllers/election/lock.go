package election

import (
	"context"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"federation/controllers/writegate"
)

// watchedLock notes the renewals of a Lease at a gate, and waits for no request for longer than requestTimeout.
type watchedLock struct {
	resourcelock.Interface
	gate *writegate.Gate
}

// Get implements resourcelock.Interface.
func (l watchedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return l.Interface.Get(ctx)
}

// Create implements resourcelock.Interface.
func (l watchedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface.
func (l watchedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(ctx, record, l.Interface.Update)
}

func (l watchedLock) note(ctx context.Context, record resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	asked := l.gate.Now()
	err := write(ctx, record)
	if err == nil && record.HolderIdentity == l.Identity() {
		l.gate.Renewed(asked)
	}
	return err
}
