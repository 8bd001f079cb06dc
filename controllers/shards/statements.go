package shards

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/cache"

	"federation/controllers/shards/plan"
	"federation/controllers/writegate"
)

// StatementAnnotation is on the Leases of replicas: what a replica reports of clusters that somebody judges lost. It is
// renewed with the Lease, and valid while that is (ADR 87).
const StatementAnnotation = "federation.kubernetes.io/statement"

// Statements are what the replicas report of clusters. Make them with NewStatements, and pass them to Run.
type Statements struct {
	found func() map[string]bool
	clock func() time.Duration

	mu     sync.Mutex
	others map[string]stated // by process
}

// stated is the last statement of a process.
type stated struct {
	plan.Statement
	lease, version string
	until          time.Duration // it is valid
}

// NewStatements makes Statements for a replica. found returns whether clusters are well. It may be called at any time,
// and leaves out clusters of which nothing is known. clock is as in Options, as is its default.
func NewStatements(found func() map[string]bool, clock func() time.Duration) *Statements {
	if clock == nil {
		clock = writegate.BootTime
	}
	return &Statements{found: found, clock: clock, others: map[string]stated{}}
}

// Others returns the statements of the other live replicas, by process. It leaves out replicas without one, as of an
// older version.
func (s *Statements) Others() map[string]plan.Statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, others := s.clock(), map[string]plan.Statement{}
	for process, said := range s.others {
		if said.until > now {
			others[process] = said.Statement
		}
	}
	return others
}

// ownStatement returns the statement of this replica.
func (s *Statements) ownStatement() string {
	return plan.State(s.found(), slices.Collect(maps.Values(s.Others()))).String()
}

// watchLeases records the statements in Leases as they change, until unhear is called.
func (s *Statements) watchLeases(informer cache.SharedIndexInformer, self string, t Timing) (unhear func(), err error) {
	note := func(obj any) {
		if lease, ok := obj.(*coordinationv1.Lease); ok && lease.Labels[label] == "replica" && processOf(lease.Name) != processOf(self) {
			s.recordLease(lease, t)
		}
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: note, UpdateFunc: func(_, is any) { note(is) }, DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				s.forget(name)
			}
		},
	})
	return func() { _ = informer.RemoveEventHandler(handler) }, err // fails only for a stopped informer
}

// recordLease records a Lease's statement. A relist that brings a known version is no sign of life.
func (s *Statements) recordLease(lease *coordinationv1.Lease, t Timing) {
	statement, ok := plan.ParseStatement(lease.Annotations[StatementAnnotation])
	s.mu.Lock()
	defer s.mu.Unlock()
	process := processOf(lease.Name)
	switch before := s.others[process]; {
	case !ok:
		delete(s.others, process)
	case before.version != lease.ResourceVersion:
		s.others[process] = stated{statement, lease.Name, lease.ResourceVersion, s.clock() + t.Duration}
	}
}

// forget drops a replica that has left.
func (s *Statements) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, name, _ := strings.Cut(key, "/")
	if process := processOf(name); s.others[process].lease == name {
		delete(s.others, process)
	}
}

// processOf returns the name of a Lease's process. It may have had other Leases before, and has one vote.
func processOf(lease string) string {
	process := strings.TrimPrefix(lease, leasePrefix)
	if at := strings.LastIndex(process, "-"); at > 0 {
		return process[:at]
	}
	return process
}
