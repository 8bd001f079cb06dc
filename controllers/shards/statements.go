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

// StatementAnnotation is on the Leases of replicas: what a replica says of clusters that somebody judges lost. It is renewed with the Lease,
// and counts for as long as that lives (ADR 87).
const StatementAnnotation = "federation.kubernetes.io/statement"

// Statements are what the replicas say of clusters. Make them with NewStatements, and hand them to Run.
type Statements struct {
	found func() map[string]bool
	clock func() time.Duration

	mu     sync.Mutex
	others map[string]stated // by process
}

// stated is what a process said last.
type stated struct {
	plan.Statement
	lease, version string
	until          time.Duration // it counts
}

// NewStatements makes them for a replica that finds of clusters whether they are well. found may be called at any time; it is not asked
// about clusters of which nothing is known here. clock is that of Options; nil is the same there.
func NewStatements(found func() map[string]bool, clock func() time.Duration) *Statements {
	if clock == nil {
		clock = writegate.BootTime
	}
	return &Statements{found: found, clock: clock, others: map[string]stated{}}
}

// Others are the statements of the other replicas that live, by process. One that makes none, as of an older version, is not among them.
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

// own is the statement of this replica.
func (s *Statements) own() string {
	return plan.State(s.found(), slices.Collect(maps.Values(s.Others()))).String()
}

// hear has what Leases say noted as they change, until unhear is called.
func (s *Statements) hear(informer cache.SharedIndexInformer, self string, t Timing) (unhear func(), err error) {
	note := func(obj any) {
		if lease, ok := obj.(*coordinationv1.Lease); ok && lease.Labels[label] == "replica" && processOf(lease.Name) != processOf(self) {
			s.note(lease, t)
		}
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: note, UpdateFunc: func(_, is any) { note(is) }, DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				s.forget(name)
			}
		},
	})
	return func() { _ = informer.RemoveEventHandler(handler) }, err // fails only when it is gone
}

// note keeps what a Lease says from now on. A relist that brings what is known is no sign of life.
func (s *Statements) note(lease *coordinationv1.Lease, t Timing) {
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

// forget forgets who has left.
func (s *Statements) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, name, _ := strings.Cut(key, "/")
	if process := processOf(name); s.others[process].lease == name {
		delete(s.others, process)
	}
}

// processOf is the name of the process that has a Lease: it may have had others before, and has one vote.
func processOf(lease string) string {
	process := strings.TrimPrefix(lease, leasePrefix)
	if at := strings.LastIndex(process, "-"); at > 0 {
		return process[:at]
	}
	return process
}
