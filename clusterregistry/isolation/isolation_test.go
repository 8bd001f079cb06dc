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

// Each line is what a process sees of the Lease, and until when it is cut off by its own clock, both after the beginning.
func TestWhoIsIsolatedForHowLong(t *testing.T) {
	at := func(d time.Duration) time.Time { return begin.Add(d) }
	for name, c := range map[string]struct {
		see  func(*Seen)
		last time.Duration // the last instant of isolation; negative: none
	}{
		"nothing": {func(s *Seen) { s.See(nil, at(0)) }, -1},
		"renewed": {func(s *Seen) { s.See(nil, at(0)); s.See(renewedAt(0), at(time.Second)) }, 31 * time.Second},
		"renewed again": {func(s *Seen) {
			s.See(nil, at(0))
			s.See(renewedAt(0), at(time.Second))
			s.See(renewedAt(5*time.Second), at(6*time.Second))
		}, 36 * time.Second},
		"the same again is no renewal": {func(s *Seen) {
			s.See(nil, at(0))
			s.See(renewedAt(0), at(time.Second))
			s.See(renewedAt(0), at(20*time.Second))
		}, 31 * time.Second},
		"by a clock that is an hour ahead": {func(s *Seen) { s.See(nil, at(0)); s.See(renewedAt(time.Hour), at(time.Second)) }, 31 * time.Second},
		"found at the start":               {func(s *Seen) { s.See(renewedAt(-10*time.Second), at(0)) }, 20 * time.Second},
		"found at the start, from before":  {func(s *Seen) { s.See(renewedAt(-5*time.Minute), at(0)) }, -1},
		"found at the start, from later":   {func(s *Seen) { s.See(renewedAt(time.Hour), at(0)) }, 30 * time.Second},
		"ended":                            {func(s *Seen) { s.See(renewedAt(0), at(0)); s.See(nil, at(time.Second)) }, -1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Seen{}
			c.see(s)
			if got := s.Of("b", at(0)); got != "" {
				t.Errorf("a cluster that is not named is isolated: %s", got)
			}
			if got := s.Of("a", at(max(c.last-time.Millisecond, 0))); (got == v1beta1.IsolateRefused) != (c.last > 0) {
				t.Errorf("just before the end: %q", got)
			}
			if got := s.Of("a", at(max(c.last, 0))); got != "" {
				t.Errorf("at the end: still %s", got)
			}
		})
	}
}

func TestALeaseThatSaysNothingIsolatesNobody(t *testing.T) {
	lease := renewedAt(0)
	lease.Annotations[v1beta1.IsolationAnnotation] = "{"
	s := &Seen{}
	s.See(lease, begin)
	if got := s.Clusters(begin); len(got) > 0 || !s.Known() {
		t.Errorf("isolated: %v", got)
	}
}
