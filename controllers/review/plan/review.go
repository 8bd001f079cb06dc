package plan

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
	failoverplan "federation/controllers/failover/plan"
	loadbalancerplan "federation/controllers/loadbalancer/plan"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/scheduler"
)

// Input is all that a review depends on. A review does not change it.
type Input struct {
	Clusters []*v1beta1.Cluster
	Policies []*v1beta1.PlacementPolicy
	// Objects are those with divided replicas.
	Objects []scheduler.Object
	// Named are those with names in DNS.
	Named []servicednsplan.Object
	// Routes is what the federation's load balancers decide from, LoadBalancers are those that are alive.
	Routes        loadbalancerplan.World
	LoadBalancers []servicednsplan.LoadBalancer
	// backends are the Services that the Ingresses of Routes name, as namespace/name.
	backends map[string]bool
	// Info is nil if the federation does not publish its configuration: then the review says nothing about DNS.
	Info *v1beta1.Info
	Now  time.Time
}

// Review returns what would happen if the clusters of a spec were lost for long, or drained. It is pure and calls the
// functions that would do it. The error names the field, its value and what exists.
func Review(in Input, spec v1beta1.FailoverReviewSpec) (s v1beta1.FailoverReviewStatus, errs field.ErrorList) {
	lost, errs := Lost(in.Clusters, spec)
	if len(errs) > 0 {
		return s, errs
	}
	s.Clusters = lost
	then := withLost(in.Clusters, lost, in.Now)
	if spec.Drained {
		then = withDrained(in.Clusters, lost)
	} else {
		s.SuspendedReason = failoverplan.WhySuspended(in.Clusters, lost, in.failoverSettings(), in.Now)
	}
	if !spec.Drained {
		s.Routes = routesLost(&in, then, lost)
		s.LoadBalancers, s.LoadBalancersLeft = balancersLost(in.LoadBalancers, spec)
	}
	s.Records = recordChanges(in, then)
	s.Moves = replicaMoves(in, then, lost)
	for _, m := range s.Moves {
		s.ReplicasUnschedulable += m.Unschedulable
		for _, c := range m.Clusters {
			if slices.Contains(lost, c.Cluster) {
				s.ReplicasMoved += c.Before - c.After
			}
		}
	}
	return s, nil
}

// failoverSettings returns failover's settings as far as they decide what is suspended.
func (in *Input) failoverSettings() failoverplan.Settings {
	if in.Info == nil {
		return failoverplan.DefaultSettings()
	}
	return failoverplan.SettingsOf(*in.Info)
}
