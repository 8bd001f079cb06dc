package plan

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
	failover "federation/controllers/failover/plan"
	placement "federation/controllers/placement/plan"
	names "federation/controllers/servicedns/plan"
)

// Input is all that a review depends on. A review changes nothing of it.
type Input struct {
	Clusters []*v1beta1.Cluster
	Policies []*v1beta1.PlacementPolicy
	// Objects are those whose replicas are divided.
	Objects []placement.Object
	// Named are those that have names in DNS.
	Named []names.Object
	// Info is nil where the federation does not say how it is set up: then nothing is said of DNS.
	Info *v1beta1.Info
	Now  time.Time
}

// Review says what would happen if the clusters that a spec names were lost, and for long, or drained. It is a function of
// values, made of those that would do it. The error names the field, its value and what there is.
func Review(in Input, spec v1beta1.FailoverReviewSpec) (s v1beta1.FailoverReviewStatus, errs field.ErrorList) {
	lost, errs := Lost(in.Clusters, spec)
	if len(errs) > 0 {
		return s, errs
	}
	s.Clusters = lost
	then := without(in.Clusters, lost, in.Now)
	if spec.Drained {
		then = drained(in.Clusters, lost)
	} else {
		s.SuspendedReason = failover.Held(in.Clusters, lost, in.settings(), in.Now)
	}
	s.Records = recordChanges(in, then)
	s.Moves = moves(in, then, lost)
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

// settings are those of failover, as far as they decide what is held.
func (in *Input) settings() failover.Settings {
	if in.Info == nil {
		return failover.DefaultSettings()
	}
	return failover.SettingsOf(*in.Info)
}
