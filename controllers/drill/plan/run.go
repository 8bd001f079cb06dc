package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// run is a drill in its world at one time: as it is stored, and the status that it gets next.
type run struct {
	*v1beta1.FailoverDrill
	*World
	next *v1beta1.FailoverDrillStatus
}

func (r *run) uid() string { return string(r.UID) }

func (r *run) nowMicro() *metav1.MicroTime { return new(metav1.NewMicroTime(r.Now)) }

// phaseDuration returns how long the phase has lasted.
func (r *run) phaseDuration() time.Duration {
	if r.Status.PhaseSince == nil {
		return 0
	}
	return r.Now.Sub(r.Status.PhaseSince.Time)
}

// scope returns the existing clusters of the drill.
func (r *run) scope() (some []*v1beta1.Cluster) {
	for _, c := range r.Clusters {
		if slices.Contains(r.next.Clusters, c.Name) {
			some = append(some, c)
		}
	}
	return some
}

// movesReplicas reports whether the drill moves replicas.
func (r *run) movesReplicas() bool { return r.Spec.Method != v1beta1.DrillShift }

func (r *run) isIsolation() bool { return r.Spec.Method.Isolates() }
