package manager

import (
	"context"
	"time"

	"federation/controllers/customkinds"
	"federation/controllers/drain"
	"federation/controllers/drill"
	drillplan "federation/controllers/drill/plan"
	"federation/controllers/failover"
	"federation/controllers/placement"
	"federation/controllers/readiness"
	"federation/dnsprovider"
)

// Deciders returns the parts that look at all objects. One process has them at a time.
func (m *Manager) Deciders() map[string]Part {
	return map[string]Part{
		"placement": m.placement, "failover": m.failover, "readiness": m.readiness, "drills": m.drills, "drill-schedules": m.drillSchedules, "drains": m.drains,
	}
}

func (m *Manager) placement(ctx context.Context, from Informers) (func(context.Context) error, error) {
	c, err := placement.New(placement.Options{
		Client: m.Client, Informers: from.ForResource, Recorder: m.Recorder, SecretsEverywhere: m.SecretsEverywhere,
		Definitions: from.ForResource(customkinds.Definitions), Resolve: customkinds.Resolver(from.ForResource(customkinds.Definitions)), Start: func() { from.Start(ctx.Done()) },
	})
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func (m *Manager) failover(_ context.Context, from Informers) (func(context.Context) error, error) {
	c, err := failover.New(failover.Options{Client: m.Client, Informers: from.ForResource, Recorder: m.Recorder, Settings: m.Failover, Probes: m.Members.Probes, Others: m.Others})
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func (m *Manager) readiness(_ context.Context, from Informers) (func(context.Context) error, error) {
	c, err := readiness.New(readiness.Options{
		Client: m.Client, Informers: from.ForResource, Recorder: m.Recorder, Info: m.Info, Settings: m.Failover, Levels: m.Levels, Spent: m.Spent, After: 10 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func (m *Manager) drills(_ context.Context, from Informers) (func(context.Context) error, error) {
	c, err := drill.New(drill.Options{
		Client: m.Client, Informers: from.ForResource, Recorder: m.Recorder, Info: m.Info, Process: m.Drills.Process, Writes: m.Drills.Writes, Leases: m.Drills.Leases,
		Clients: m.Drills.Clients, Records: m.Drills.Records,
		Isolated: m.Members.Isolated, DeadBehind: m.Members.DeadBehind, Blackholed: m.Members.Blackholed, NodeAgents: m.Members.NodeAgents,
	})
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

// RecordsServed returns what drills ask for record sets, of what a DNS server has of a name.
func RecordsServed(recordsOf func(name string) []dnsprovider.RRSet) func(context.Context, []drillplan.Record) (map[drillplan.Record][]string, error) {
	return func(_ context.Context, of []drillplan.Record) (map[drillplan.Record][]string, error) {
		data := make(map[drillplan.Record][]string, len(of))
		for _, r := range of {
			for _, set := range recordsOf(r.Name) {
				if string(set.Type) == r.Type {
					data[r] = set.Rdata
				}
			}
		}
		return data, nil
	}
}

func (m *Manager) drillSchedules(_ context.Context, from Informers) (func(context.Context) error, error) {
	c, err := drill.NewSchedules(m.Client, from.ForResource, m.Recorder)
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func (m *Manager) drains(_ context.Context, from Informers) (func(context.Context) error, error) {
	c, err := drain.New(drain.Options{
		Client: m.Client, Informers: from.ForResource, Recorder: m.Recorder, Federation: m.Federation, TTL: m.Info.DNSTTL, Member: m.Members.Client,
		Resolve: customkinds.Resolver(from.ForResource(customkinds.Definitions)),
	})
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}
