// Package manager wires the controllers of one process: those that decide about all objects, in one process at a time, and those that
// propagate the objects of some shards. cmd/federation connects it to real clusters, the simulation to clusters in memory.
package manager

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/crosscluster"
	"federation/controllers/drill"
	drillplan "federation/controllers/drill/plan"
	failoverplan "federation/controllers/failover/plan"
	readinessplan "federation/controllers/readiness/plan"
	"federation/controllers/shards/plan"
	"federation/controllers/supervisor"
	"federation/controllers/tracing"
)

// Options are what a Manager needs.
type Options struct {
	// Client reads and writes at the federation, whose UID Federation is.
	Client     dynamic.Interface
	Federation string
	Recorder   record.EventRecorder
	// Info is the federation's configuration.
	Info v1beta1.Info
	// Members are the connected member clusters.
	Members Members
	// NewInformers makes informers of the federation's objects; only those of some shards have to be complete.
	NewInformers func(held plan.Set) (Informers, error)
	// Parts runs the parts, and starts one again that has failed.
	Parts *supervisor.Supervisor

	// Failover has the settings of failover. Others returns what other processes find of clusters.
	Failover failoverplan.Settings
	Others   func() map[string]failoverplan.Statement
	// SecretsEverywhere propagates Secrets to all clusters, not only to where something refers to them.
	SecretsEverywhere bool
	// Levels are the levels that have FailoverReadinesses. Spent is as in readiness.Options.
	Levels []readinessplan.Level
	Spent  func() time.Duration
	// Drills has what only this process knows of drills.
	Drills Drills

	// Writes are parallel writes to each member, Reports statuses written per second; 0: the defaults of package propagation.
	Writes, Reports int
	// Spans records what becomes of traced writes; nil: none are.
	Spans *tracing.Spans
	// ObjectMetrics is the most time series of metrics of objects with replicas; 0: none.
	ObjectMetrics int
	// Unschedulable is how long a pod has to find no room until its cluster counts as full; 0: a minute.
	Unschedulable time.Duration
	// Offers are what clusters have of Services. They are written into members unless Withdraw.
	Offers   *crosscluster.Offers
	Withdraw bool
}

// Drills are the options of package drill that depend on the process.
type Drills struct {
	Process string
	Writes  *drill.Writes
	Leases  drill.Leases
	Clients drill.Clients
	Records func(context.Context, []drillplan.Record) (map[drillplan.Record][]string, error)
}

// Informers are informers of the federation's objects.
type Informers interface {
	// ForResource returns the informer of a resource. One that is asked for after Start runs from the next Start on.
	ForResource(schema.GroupVersionResource) cache.SharedIndexInformer
	// Another returns informers of the same objects that share nothing with these.
	Another() Informers
	Start(done <-chan struct{})
}

// Members are the member clusters, as who watches them knows them.
type Members interface {
	// Follow calls engage for each member that is connected, now or later, until ctx is done. The context of a call ends with the
	// connection.
	Follow(ctx context.Context, engage func(ctx context.Context, m Member) error)
	// Client returns a client of a connected member.
	Client(name string) (dynamic.Interface, error)
	// Probes returns the latest probe of each member by this process.
	Probes() map[string]failoverplan.Probe
	// Isolated, DeadBehind, Blackholed and NodeAgents are as in drill.Options.
	Isolated() (clusters []string, known bool)
	DeadBehind() []string
	Blackholed() []string
	NodeAgents(ctx context.Context, cluster string) drillplan.NodeAgents
}

// Member is a connection to a member cluster.
type Member struct {
	Name   string
	Client dynamic.Interface
	// HeartbeatsStale is as in propagation.Member.
	HeartbeatsStale func() bool
	// Copies makes informers of our copies there that a label selector selects, and All of a namespace's objects, whoever made them.
	// They end with ctx.
	Copies, All func(ctx context.Context, which string) (of func(schema.GroupVersionResource) cache.SharedIndexInformer, start func())
	// SetForbidden records that the member forbids a resource, or no longer does.
	SetForbidden func(resource string, forbidden bool)
}

// Manager makes and runs the parts of a process.
type Manager struct{ Options }

// Part makes a part of the process, whose informers are started when it has been made.
type Part func(ctx context.Context, from Informers) (run func(context.Context) error, err error)

// Run makes parts from the same informers, and runs them until ctx is done. One that is started again has informers of its own: those
// of before hold handlers of what failed.
func (m *Manager) Run(ctx context.Context, from Informers, held plan.Set, parts map[string]Part) error {
	group, ctx := errgroup.WithContext(ctx)
	runs := map[string]func(context.Context) error{}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		run, err := parts[name](ctx, from)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		runs[name] = run
	}
	for name, run := range runs {
		group.Go(m.part(ctx, name, held, run, parts[name]))
	}
	from.Start(ctx.Done())
	return group.Wait()
}

// part returns what runs a part, and makes it again from informers of its own each time that it has failed.
func (m *Manager) part(ctx context.Context, name string, held plan.Set, run func(context.Context) error, make Part) func() error {
	again := func(ctx context.Context) error {
		own, err := m.NewInformers(held)
		if err != nil {
			return err
		}
		run, err := make(ctx, own)
		if err != nil {
			return err
		}
		own.Start(ctx.Done())
		return run(ctx)
	}
	return func() error {
		return m.Parts.Run(ctx, name, func(ctx context.Context) error {
			first := run
			if run = nil; first != nil {
				return first(ctx)
			}
			return again(ctx)
		})
	}
}
