package shards

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/shards/plan"
	"federation/controllers/supervisor"
)

// session is the life of one Lease of this replica. Its fields belong to the goroutine that runs it.
type session struct {
	Options
	name      string
	informer  cache.SharedIndexInformer
	wake      supervisor.Wake
	others    sightings
	last      *coordinationv1.Lease // the table as last written or read
	cached    bool                  // the cache had the table at the last pass
	read      lastTable
	work      *work
	complaint string // what is wrong with the table; logged once
}

func newSession(o Options, informer cache.SharedIndexInformer, name string) *session {
	return &session{Options: o, name: name, informer: informer, wake: supervisor.NewWake(), others: newSightings(o.Timing)}
}

// run returns when ctx is done, the work has failed, or the Lease is lost: then with errLost. No work of it runs on.
func (s *session) run(ctx context.Context) error {
	handler, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { s.wake.Signal() }, UpdateFunc: func(any, any) { s.wake.Signal() }, DeleteFunc: func(any) { s.wake.Signal() },
	})
	if err != nil {
		return err
	}
	defer func() { _ = s.informer.RemoveEventHandler(handler) }() // fails only for a stopped informer
	renewed, err := s.createLease(ctx)
	if err != nil {
		return nil // ctx is done
	}
	leased, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	go func() {
		if err := supervisor.Protect(ctx, "shards", func() error { s.renewLease(leased, renewed, lose); return nil }); err != nil {
			lose(err)
		}
	}()
	err = s.takeTurns(leased)
	if stopErr := s.stopWork(leased); stopErr != nil {
		return stopErr
	}
	s.deleteLease(ctx)
	return err
}

// leaseAnnotations returns the annotations of the replica's Lease.
func (s *session) leaseAnnotations() map[string]string {
	says := map[string]string{}
	if s.Statements != nil {
		says[StatementAnnotation] = s.Statements.ownStatement()
	}
	return says
}

// createLease creates the Lease, however long that takes, and returns when the successful request was sent.
func (s *session) createLease(ctx context.Context) (time.Duration, error) {
	for {
		asked := s.Clock()
		timed, cancel := context.WithTimeout(ctx, s.Timing.Deadline)
		_, err := s.Leases.Create(timed, newReplica(s.name, s.Timing, s.leaseAnnotations()), metav1.CreateOptions{})
		cancel()
		if err == nil && s.Clock()-asked < s.Timing.Deadline {
			s.Renewed(asked)
			return asked, nil
		}
		klog.FromContext(ctx).V(1).Info("Cannot create the replica's Lease yet; will retry", "lease", s.name, "err", err)
		if apierrors.IsAlreadyExists(err) { // made by an earlier try whose response was lost
			_ = s.Leases.Delete(ctx, s.name, metav1.DeleteOptions{}) // or by the next try
		}
		select {
		case <-ctx.Done():
			return asked, ctx.Err()
		case <-time.After(s.Timing.Renew / 2):
		}
	}
}

// renewLease renews the Lease, and calls lose when Deadline has passed since the last successful renewal was sent.
func (s *session) renewLease(ctx context.Context, renewed time.Duration, lose context.CancelCauseFunc) {
	for {
		left := func() time.Duration { return renewed + s.Timing.Deadline - s.Clock() }
		select {
		case <-ctx.Done():
			return
		case <-time.After(left() - s.Timing.Deadline + s.Timing.Renew):
		}
		for {
			asked := s.Clock()
			timed, cancel := context.WithTimeout(ctx, left())
			_, err := s.Leases.Patch(timed, s.name, types.MergePatchType, renewPatch(s.leaseAnnotations()), metav1.PatchOptions{})
			cancel()
			if err == nil && left() > 0 {
				renewed = asked
				s.Renewed(asked)
				break
			}
			if apierrors.IsNotFound(err) || left() <= 0 {
				lose(errLost)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(min(s.Timing.Renew/4, left())):
			}
		}
	}
}

// takeTurns takes turns until the session ends, and returns the cause.
func (s *session) takeTurns(ctx context.Context) error {
	for {
		again, err := s.takeTurn(ctx)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-s.work.done():
			s.work = nil
			if ctx.Err() == nil {
				return errors.Join(errors.New("the work with the shards ended unexpectedly"), err)
			}
		case <-s.wake:
		case <-time.After(again):
		}
	}
}

// retry is the delay before the next turn after a failed write; mostly another replica was faster.
const retry = 200 * time.Millisecond

// takeTurn reads which replicas are alive, does what plan.Next returns, and runs the work with the shards it holds. It
// returns when to run again; an error ends the session.
func (s *session) takeTurn(ctx context.Context) (again time.Duration, err error) {
	seen := s.others.poll(s.informer.GetStore(), s.name, time.Now())
	lease := s.newestTable()
	table, err := s.read.tableOf(lease)
	if err != nil {
		unreadable.Set(1)
		if s.complaint != err.Error() {
			s.complaint = err.Error()
			klog.FromContext(ctx).Error(err, "No shards are assigned")
		}
		return s.Timing.Duration, s.stopWork(ctx)
	}
	unreadable.Set(0)
	next := plan.Next(table, seen.live, s.name, seen.settled)
	if next.Take|next.Give != 0 {
		if next.Give != 0 {
			if err := s.stopWork(ctx); err != nil {
				return 0, err
			}
		}
		if err := s.writeTable(ctx, lease, next); err != nil {
			klog.FromContext(ctx).V(1).Info("Reading the assignment of shards again", "err", err)
			return retry, nil
		}
		klog.FromContext(ctx).Info("Rebalancing shards", "taken", next.Take.String(), "from", strings.Join(next.From, " "), "given", next.Give.String())
		table = next.Table
	}
	s.deleteDeadLeases(ctx, seen, table)
	return seen.again, s.startWork(ctx, table.Held(s.name))
}

// newestTable returns the newest known table.
func (s *session) newestTable() *coordinationv1.Lease {
	obj, _, _ := s.informer.GetStore().GetByKey(v1beta1.FederationNamespace + "/" + TableName)
	cached, _ := obj.(*coordinationv1.Lease)
	if cached == nil && s.cached {
		s.last = nil // somebody has deleted it
	}
	s.cached = cached != nil
	return newerVersion(cached, s.last)
}

// writeTable writes the table of the turn. Before it takes shards from a dead replica, it reads that replica's Lease past
// the cache, which may be stale: if the Lease has changed, the replica is alive.
func (s *session) writeTable(ctx context.Context, was *coordinationv1.Lease, turn plan.Turn) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timing.Deadline)
	defer cancel()
	for _, dead := range turn.From {
		lease, err := s.Leases.Get(ctx, dead, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err == nil && !s.others.isUnchanged(lease) {
			return fmt.Errorf("replica %s lives", dead)
		}
	}
	lease, err := writeTable(ctx, s.Leases, was, turn.Table)
	if err != nil {
		if read, readErr := readTable(ctx, s.Leases); readErr == nil {
			s.last = read
		}
		return err
	}
	s.last = lease
	moved.WithLabelValues("taken").Add(float64(turn.Take.Len()))
	moved.WithLabelValues("given").Add(float64(turn.Give.Len()))
	return nil
}

// deleteDeadLeases deletes the Leases of dead replicas that hold nothing any more; one of the live replicas does it.
func (s *session) deleteDeadLeases(ctx context.Context, seen sight, table plan.Table) {
	if len(seen.live) == 0 || seen.live[0] != s.name {
		return
	}
	for _, dead := range seen.dead {
		if table.Held(dead.Name) != 0 {
			continue
		}
		version := dead.ResourceVersion
		err := s.Leases.Delete(ctx, dead.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
		if err != nil && !apierrors.IsNotFound(err) {
			klog.FromContext(ctx).V(1).Info("Cannot delete the Lease of a dead replica yet", "lease", dead.Name, "err", err)
		}
	}
}

// deleteLease deletes the Lease, so that the others take its shards at once. If that fails, the Lease expires.
func (s *session) deleteLease(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := s.Leases.Delete(ctx, s.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		klog.FromContext(ctx).V(1).Info("Cannot delete the replica's Lease; it will expire", "lease", s.name, "err", err)
	}
}
