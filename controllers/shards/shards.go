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
	// Name of this process, unique, such as host and process id: part of the names of its Leases.
	Name string
	// Work works with the held shards until ctx is done. When it returns, no write is in flight. It is called again
	// when the set changes. If it ends by itself, Run ends with its error.
	Work func(ctx context.Context, held plan.Set) error
	// Timing defaults to DefaultTiming.
	Timing Timing
	// Clock measures the age of a renewal. Nil: writegate.BootTime, because the monotonic clock stops while the machine
	// is suspended, and other replicas' clocks do not.
	Clock func() time.Duration
	// Renewed is called with the time, by Clock, at which each successful renewal was sent. Optional.
	Renewed func(asked time.Duration)
	// Statements are exchanged in Leases: what this replica and the others report of clusters. Optional.
	Statements *Statements
}

// Timing sets how fast replicas react. A replica that dies is noticed after Duration.
type Timing struct {
	// Duration without a change of its Lease makes a replica count as dead.
	Duration time.Duration
	// Deadline without a renewal makes a replica stop. It is less than Duration by the time that work takes to stop.
	Deadline time.Duration
	// Renew is the time between two renewals.
	Renew time.Duration
	// Settle is how long the set of live replicas must be unchanged before shards move from one to another. It doubles
	// with each change in the previous ten minutes.
	Settle time.Duration
}

// DefaultTiming takes over a dead replica's shards within 10 s.
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

// errLost ends a session: others may take over the shards of this replica.
var errLost = errors.New("the replica's Lease could not be renewed in time")

// Run takes part in sharing until ctx is done, and then returns nil. A replica that has lost its Lease stops its work
// and starts again, under another name, when it can renew again.
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
		unhear, err := o.Statements.watchLeases(informer, leaseOf(o.Name, 0), o.Timing)
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

// leaseOf returns the name of the n-th Lease of a process.
func leaseOf(process string, n int) string { return fmt.Sprintf("%s%s-%d", leasePrefix, process, n) }

const leasePrefix = "federation-replica-"
