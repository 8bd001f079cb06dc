package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/controllers/shards/plan"
	"federation/controllers/writegate"
)

// Options are what a replica needs.
type Options struct {
	// Leases are those of the federation's namespace.
	Leases Leases
	// Name of this process, which no other has, such as host and process id: part of the names of Leases.
	Name string
	// Work works with the shards that are held, until ctx is done. When it returns, no write is under way any
	// more. It is called anew when the set changes. If it ends by itself, Run ends with its error.
	Work func(ctx context.Context, held plan.Set) error
	// Timing is DefaultTiming where it is zero.
	Timing Timing
	// Clock is by what the age of a renewal is measured. Nil: writegate.BootTime, for the monotonic clock stands still while the machine is
	// suspended, and the other replicas' clocks do not.
	Clock func() time.Duration
	// Renewed is called with the time, by Clock, at which each renewal that succeeded was asked for. Optional.
	Renewed func(asked time.Duration)
	// Statements are what this replica says in its Lease of clusters, and hears of them in others'. Optional.
	Statements *Statements
}

// Timing says how fast replicas are at what they do. A replica that dies is missed after Duration.
type Timing struct {
	// Duration without a change of its Lease makes a replica dead for the others.
	Duration time.Duration
	// Deadline without a renewal makes a replica stop. It is less than Duration by the time that work needs to end.
	Deadline time.Duration
	// Renew is the time between two renewals.
	Renew time.Duration
	// Settle is how long the same replicas have lived before shards move from one to another; twice as long for each change of who
	// lives in the ten minutes before.
	Settle time.Duration
}

// DefaultTiming has a dead replica's shards taken over within 10 s.
func DefaultTiming() Timing {
	return Timing{Duration: 8 * time.Second, Deadline: 5 * time.Second, Renew: 2 * time.Second, Settle: 3 * time.Second}
}

func (o *Options) complete() error {
	d := DefaultTiming()
	t := &o.Timing
	t.Duration, t.Deadline = cmp.Or(t.Duration, d.Duration), cmp.Or(t.Deadline, d.Deadline)
	t.Renew, t.Settle = cmp.Or(t.Renew, d.Renew), cmp.Or(t.Settle, d.Settle)
	if o.Clock == nil {
		o.Clock = writegate.BootTime
	}
	if o.Renewed == nil {
		o.Renewed = func(time.Duration) {}
	}
	if t.Renew <= 0 || t.Deadline <= t.Renew || t.Duration <= t.Deadline {
		return fmt.Errorf("shards: Timing %+v: Renew must be more than 0, Deadline more than Renew, and Duration more than Deadline", *t)
	}
	if o.Leases == nil || o.Name == "" || o.Work == nil {
		return errors.New("shards: Options.Leases, Name and Work must be set")
	}
	return nil
}

// errLost ends a session: others may take over what this replica held.
var errLost = errors.New("the replica's Lease could not be renewed in time")

// Run shares the shards out until ctx is done. A replica that has lost its Lease stops its work and begins
// anew, under another name, when it can be renewed again. It returns nil when ctx is done.
func Run(ctx context.Context, o Options) error {
	if err := o.complete(); err != nil {
		return err
	}
	registerMetrics()
	informer := newInformer(o.Leases)
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil
	}
	if o.Statements != nil {
		unhear, err := o.Statements.hear(informer, leaseOf(o.Name, 0), o.Timing)
		if err != nil {
			return err
		}
		defer unhear()
	}
	for n := 0; ; n++ {
		s := newSession(o, informer, leaseOf(o.Name, n))
		err := s.run(ctx)
		switch {
		case errors.Is(err, ErrStuck):
			return err
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, errLost):
			return err
		}
		klog.FromContext(ctx).Error(err, "Released all shards, acquiring again", "lease", s.name)
	}
}

// leaseOf is the name of the n-th Lease of a process.
func leaseOf(process string, n int) string { return fmt.Sprintf("%s%s-%d", leasePrefix, process, n) }

const leasePrefix = "federation-replica-"
