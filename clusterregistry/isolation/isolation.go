// Package isolation says which clusters the federation is to cut itself off from, because a drill asks it to by a Lease (ADR 104).
//
// Whoever has seen the Lease renewed is cut off for Lasts, by a clock of its own. So the end of all who renew it, or of their way to the API, is the
// end of the isolation. The package is pure.
package isolation

import (
	"encoding/json"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

const (
	// Lasts is for how long a renewal isolates.
	Lasts = 30 * time.Second
	// Renew is how often it is renewed.
	Renew = 5 * time.Second
)

// Seen is what a process has seen of the Lease. The zero value has seen nothing.
type Seen struct {
	known   bool
	renewed time.Time // as the Lease says: it is compared with what the Lease said before
	until   time.Time // by the clock of this process
	is      v1beta1.Isolation
	drill   string
	found   bool // the first look found this drill's
}

// Observe takes the Lease in as it is now; nil: there is none. What the first look finds is believed as far as the clock of who renewed it and ours agree
// that it still lasts; after that only this process's own clock counts.
func (s *Seen) Observe(lease *coordinationv1.Lease, now time.Time) {
	first := !s.known
	s.known = true
	drill, is, renewed := Read(lease)
	if drill == "" {
		s.drill, s.is, s.until, s.renewed, s.found = "", v1beta1.Isolation{}, time.Time{}, renewed, false
		return
	}
	switch {
	case first:
		s.until = now.Add(min(Lasts, max(0, Lasts-now.Sub(renewed))))
	case !renewed.Equal(s.renewed) || drill != s.drill:
		s.until = now.Add(Lasts)
	}
	s.found = first || s.found && drill == s.drill
	s.drill, s.is, s.renewed = drill, is, renewed
}

// Blackhole is what node agents of a cluster are asked for.
type Blackhole struct {
	// Drill is the UID of who asks; "": nothing is asked for.
	Drill string
	// Renewed is when it asked last, by its own clock, and Until when that runs out, by this process's.
	Renewed, Until time.Time
	// Found: it was asked for before this process looked for the first time.
	Found bool
}

// Blackhole is what the node agents of a cluster are asked for.
func (s *Seen) Blackhole(cluster string, now time.Time) Blackhole {
	if s.ModeOf(cluster, now) == "" || !s.is.Blackhole {
		return Blackhole{}
	}
	return Blackhole{Drill: s.drill, Renewed: s.renewed, Until: s.until, Found: s.found}
}

// Known reports whether the Lease has been looked for at all.
func (s *Seen) Known() bool { return s.known }

// ModeOf returns how a cluster is isolated; "": it is not.
func (s *Seen) ModeOf(cluster string, now time.Time) v1beta1.IsolationMode {
	if !now.Before(s.until) || !slices.Contains(s.is.Clusters, cluster) {
		return ""
	}
	return s.is.As
}

// Clusters are those that are isolated.
func (s *Seen) Clusters(now time.Time) []string {
	if !now.Before(s.until) {
		return nil
	}
	return s.is.Clusters
}

// EndsAt returns when the isolation ends if it is not renewed; the zero time where there is none.
func (s *Seen) EndsAt() time.Time { return s.until }

// Read is what a Lease says: the UID of the drill that holds it, whom it isolates, and when it was renewed. "" where nobody holds it, or it cannot be
// read.
func Read(lease *coordinationv1.Lease) (drill string, is v1beta1.Isolation, renewed time.Time) {
	if lease == nil {
		return "", is, renewed
	}
	if lease.Spec.RenewTime != nil {
		renewed = lease.Spec.RenewTime.Time
	}
	if lease.Spec.HolderIdentity == nil || json.Unmarshal([]byte(lease.Annotations[v1beta1.IsolationAnnotation]), &is) != nil {
		return "", v1beta1.Isolation{}, renewed
	}
	if is.As != v1beta1.IsolateRefused {
		is.As = v1beta1.IsolateSilent
	}
	return *lease.Spec.HolderIdentity, is, renewed
}

// Renewed is the Lease as a drill renews it now. was is what there is, or nil.
func Renewed(was *coordinationv1.Lease, drill string, is v1beta1.Isolation, now time.Time) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.DrillLease, Namespace: v1beta1.FederationNamespace}}
	if was != nil {
		lease = was
	}
	lease = RenewedLease(lease, drill, now)
	text, _ := json.Marshal(is) // strings
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, v1beta1.IsolationAnnotation, string(text))
	return lease
}

// RenewedLease returns the Lease of a member's node agents as a drill renews it now.
func RenewedLease(was *coordinationv1.Lease, drill string, now time.Time) *coordinationv1.Lease {
	lease := was.DeepCopy()
	at := metav1.NewMicroTime(now)
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != drill {
		lease.Spec.AcquireTime = &at
	}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &drill, &at, new(int32(Lasts/time.Second))
	return lease
}
