package isolation

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

var begin = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func renewedAt(at time.Duration) *coordinationv1.Lease {
	return Renewed(nil, "uid", v1beta1.Isolation{As: v1beta1.IsolateRefused, Clusters: []string{"a"}}, begin.Add(at))
}

// Each line is what a process sees of the Lease, and until when it is cut off by its own clock, both after the beginning. Acceptance test 10 of drills.
func TestWhoIsIsolatedForHowLong(t *testing.T) {
	at := func(d time.Duration) time.Time { return begin.Add(d) }
	for name, c := range map[string]struct {
		see  func(*Seen)
		last time.Duration // the last instant of isolation; negative: none
	}{
		"nothing": {func(s *Seen) { s.Observe(nil, at(0)) }, -1},
		"renewed": {func(s *Seen) { s.Observe(nil, at(0)); s.Observe(renewedAt(0), at(time.Second)) }, 31 * time.Second},
		"renewed again": {func(s *Seen) {
			s.Observe(nil, at(0))
			s.Observe(renewedAt(0), at(time.Second))
			s.Observe(renewedAt(5*time.Second), at(6*time.Second))
		}, 36 * time.Second},
		"the same again is no renewal": {func(s *Seen) {
			s.Observe(nil, at(0))
			s.Observe(renewedAt(0), at(time.Second))
			s.Observe(renewedAt(0), at(20*time.Second))
		}, 31 * time.Second},
		"by a clock that is an hour ahead": {func(s *Seen) { s.Observe(nil, at(0)); s.Observe(renewedAt(time.Hour), at(time.Second)) }, 31 * time.Second},
		"found at the start":               {func(s *Seen) { s.Observe(renewedAt(-10*time.Second), at(0)) }, 20 * time.Second},
		"found at the start, from before":  {func(s *Seen) { s.Observe(renewedAt(-5*time.Minute), at(0)) }, -1},
		"found at the start, from later":   {func(s *Seen) { s.Observe(renewedAt(time.Hour), at(0)) }, 30 * time.Second},
		"ended":                            {func(s *Seen) { s.Observe(renewedAt(0), at(0)); s.Observe(nil, at(time.Second)) }, -1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Seen{}
			c.see(s)
			if got := s.ModeOf("b", at(0)); got != "" {
				t.Errorf("a cluster that is not named is isolated: %s", got)
			}
			if got := s.ModeOf("a", at(max(c.last-time.Millisecond, 0))); (got == v1beta1.IsolateRefused) != (c.last > 0) {
				t.Errorf("just before the end: %q", got)
			}
			if got := s.ModeOf("a", at(max(c.last, 0))); got != "" {
				t.Errorf("at the end: still %s", got)
			}
		})
	}
}

func TestALeaseThatSaysNothingIsolatesNobody(t *testing.T) {
	lease := renewedAt(0)
	lease.Annotations[v1beta1.IsolationAnnotation] = "{"
	s := &Seen{}
	s.Observe(lease, begin)
	if got := s.Clusters(begin); len(got) > 0 || !s.Known() {
		t.Errorf("isolated: %v", got)
	}
}

// Only the clusters of a drill that says so are blackholed, for as long as they are isolated; and whether a process found it at its start is told.
func TestWhoIsBlackholed(t *testing.T) {
	lease := Renewed(nil, "uid", v1beta1.Isolation{Clusters: []string{"a"}, Blackhole: true}, begin)
	s := &Seen{}
	s.Observe(lease, begin.Add(time.Second))
	if got, want := s.Blackhole("a", begin.Add(2*time.Second)), (Blackhole{Drill: "uid", Renewed: begin, Until: begin.Add(30 * time.Second), Found: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for name, at := range map[string]time.Duration{"a": 30 * time.Second, "b": time.Second} {
		if got := s.Blackhole(name, begin.Add(at)); got != (Blackhole{}) {
			t.Errorf("%s after %s: %+v", name, at, got)
		}
	}
	s.Observe(Renewed(lease, "another", v1beta1.Isolation{Clusters: []string{"a"}, Blackhole: true}, begin.Add(time.Minute)), begin.Add(time.Minute))
	if got := s.Blackhole("a", begin.Add(time.Minute)); got.Found || got.Drill != "another" {
		t.Errorf("a drill that began later: %+v", got)
	}
	s.Observe(renewedAt(2*time.Minute), begin.Add(2*time.Minute))
	if got := s.Blackhole("a", begin.Add(2*time.Minute)); got != (Blackhole{}) {
		t.Errorf("an isolation alone: %+v", got)
	}
}

// A Lease of node agents that a drill holds keeps what others wrote on it.
func TestHeldKeepsWhatIsThere(t *testing.T) {
	was := &coordinationv1.Lease{}
	was.Name, was.ResourceVersion, was.Labels = "failover-drill", "7", map[string]string{"a": "b"}
	is := RenewedLease(was, "uid", begin)
	if is.ResourceVersion != "7" || is.Labels["a"] != "b" || len(is.Annotations) > 0 || *is.Spec.HolderIdentity != "uid" || !is.Spec.RenewTime.Time.Equal(begin) || *is.Spec.LeaseDurationSeconds != 30 {
		t.Errorf("%+v", is)
	}
	if was.Spec.HolderIdentity != nil {
		t.Error("the Lease that was is changed")
	}
}
