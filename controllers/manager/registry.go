package manager

import (
	"context"

	"federation/clusterregistry"
	drillplan "federation/controllers/drill/plan"
	failoverplan "federation/controllers/failover/plan"
)

// Registry is what Members has of a process' registry, for types that embed it.
type Registry struct{ *clusterregistry.Registry }

// FollowConnections calls engage for each connection to a member, now or later, until ctx is done. The context of a call ends with the connection.
func (r Registry) FollowConnections(ctx context.Context, engage func(context.Context, *clusterregistry.Member) error) {
	r.Follow(ctx, engager(engage))
}

type engager func(context.Context, *clusterregistry.Member) error

// Engage implements clusterregistry.Engager.
func (e engager) Engage(ctx context.Context, m *clusterregistry.Member) error { return e(ctx, m) }

// Probes implements Members.
func (r Registry) Probes() map[string]failoverplan.Probe {
	probes := map[string]failoverplan.Probe{}
	for name, p := range r.Registry.Probes() {
		probes[name] = failoverplan.Probe(p)
	}
	return probes
}

// NodeAgents implements Members.
func (r Registry) NodeAgents(ctx context.Context, cluster string) drillplan.NodeAgents {
	nodes, able, err := r.Registry.NodeAgents(ctx, cluster)
	if err != nil {
		return drillplan.NodeAgents{Problem: "its nodes and their agents cannot be read: " + err.Error()}
	}
	return drillplan.NodeAgents{Nodes: nodes, Able: able}
}
