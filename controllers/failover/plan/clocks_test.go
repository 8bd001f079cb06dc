package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Dates written by a process whose clock was ahead are clamped to now: they delay neither a failover nor a return.
func TestDatesFromTheFutureDelayNothing(t *testing.T) {
	ahead := func(f *fleet, by time.Duration) metav1.Time { return metav1.NewTime(f.now.Add(by)) }
	f := newFleet(t, DefaultSettings(), "a", "b", "c")
	f.observe("a", "-")
	f.settle()
	a := f.get("a")
	a.Status.Failover.LostAt, a.Status.Failover.Since = new(ahead(f, 10*time.Minute)), ahead(f, 10*time.Minute)
	f.settle()
	f.wait(2 * time.Minute)
	if got := f.get("a").Phase(); got != v1beta1.PhaseFailedOver {
		t.Errorf("lost, written ten minutes ahead: after two minutes %s", got)
	}
	f.observe("a", "+")
	f.settle()
	a = f.get("a")
	a.Status.Failover.Since = ahead(f, 30*24*time.Hour)
	a.Condition(v1beta1.ClusterFailedOver).LastTransitionTime = ahead(f, 30*24*time.Hour)
	f.settle()
	f.wait(time.Hour)
	if got := f.get("a").Phase(); got != v1beta1.PhaseServing {
		t.Errorf("back, written thirty days ahead: after an hour %s", got)
	}
}

// A cluster that recovered in between, which could not be written, counts as lost since the second loss, by this
// process's registry or by its late write.
func TestALossBeginsAgainThoughItCouldNotBeWritten(t *testing.T) {
	for _, written := range []bool{false, true} {
		f := newFleet(t, DefaultSettings(), "a", "b", "c")
		f.observe("a", "-")
		first := f.now
		probe := func(lostSince time.Time) {
			f.settings.Probes = map[string]Probe{"a": {At: f.now, Healthy: lostSince.IsZero(), LostSince: lostSince}}
		}
		probe(first)
		f.settle()
		phase := func(after time.Duration, want v1beta1.FailoverPhase) {
			t.Helper()
			if got := f.get("a").Phase(); got != want {
				t.Errorf("%s after it was lost again, written %t: %s, want %s", after, written, got, want)
			}
		}
		f.now = f.now.Add(40 * time.Second) // it was healthy meanwhile
		again := f.now
		probe(time.Time{})
		f.settings.Probes["a"] = Probe{At: f.now} // the first failed probe: it changes nothing yet
		f.settle()
		phase(0, v1beta1.PhaseGracePeriod)
		if written {
			ready := f.get("a").Condition(v1beta1.ClusterReady)
			ready.LastTransitionTime = storedTime(again)
		}
		for after := time.Duration(0); after < 32*time.Second; after += time.Second {
			f.now = again.Add(after)
			probe(again)
			f.settle()
			if after == 29*time.Second {
				phase(after, v1beta1.PhaseGracePeriod)
			}
		}
		phase(31*time.Second, v1beta1.PhaseFailedOver)
	}
}

// A cluster gets no share back while this process's registry judges it lost, even if that could not be written yet.
func TestNothingIsGivenBackAgainstTheLatestProbe(t *testing.T) {
	f := newFleet(t, DefaultSettings(), "a", "b", "c")
	f.observe("a", "-")
	f.settle()
	f.wait(11 * time.Minute)
	f.observe("a", "+")
	f.settle()
	f.settings.Probes = map[string]Probe{"a": {At: f.now.Add(59 * time.Second), LostSince: f.now.Add(58 * time.Second)}}
	f.wait(61 * time.Second)
	if got := f.get("a").Status.Failover; got.Phase != v1beta1.PhaseFailingBack || got.Percent != 0 {
		t.Errorf("lost again before its first share: %s %d %%", got.Phase, got.Percent)
	}
}
