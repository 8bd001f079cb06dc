package plan

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Leader says which of the federation's processes leads: it places, fails over, and says how Clusters are.
type Leader struct {
	// Process that has the Lease, or had it last.
	Process string      `json:"process,omitempty"`
	Renewed metav1.Time `json:"renewed"`
	Alive   bool        `json:"alive"`
}

// leaderGrace is how much longer than a Lease lasts nobody is said to lead: another process takes it within seconds, and clocks differ.
const leaderGrace = 20 * time.Second

// LeaderOf returns who leads by the Lease of the election.
func LeaderOf(lease *coordinationv1.Lease, now time.Time) *Leader {
	l := &Leader{}
	if lease.Spec.HolderIdentity != nil {
		l.Process = *lease.Spec.HolderIdentity
	}
	if lease.Spec.RenewTime != nil {
		l.Renewed = metav1.NewTime(lease.Spec.RenewTime.Time)
	}
	lasts := leaderGrace
	if s := lease.Spec.LeaseDurationSeconds; s != nil {
		lasts += time.Duration(*s) * time.Second
	}
	l.Alive = now.Sub(l.Renewed.Time) < lasts
	return l
}
