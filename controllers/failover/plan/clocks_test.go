package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Dates that a process wrote whose clock was ahead are no later than now: they delay neither a failover nor a return.
func TestDatesFromTheFutureDelayNothing(t *testing.T) {
	ahead := func(f *fleet, by time.Duration) metav1.Time { return metav1.NewTime(f.now.Add(by)) }
	f := newFleet(t, DefaultSettings(), "a", "b", "c")
	f.observe("a", "-")
	f.settle()
	a := f.get("a")
	a.Status.Failover.LostAt, a.Status.Failover.Since = new(ahead(f, 10*time.Minute)), ahead(f, 10*time.Minute)
	f.settle()
	f.wait(2 * time.Minute)
	if got := f.get("a").Phase(); got != v1beta1.FailoverOut {
		t.Errorf("lost, written ten minutes ahead: after two minutes %s", got)
	}
	f.observe("a", "+")
	f.settle()
	a = f.get("a")
	a.Status.Failover.Since = ahead(f, 30*24*time.Hour)
	a.Condition(v1beta1.ClusterFailedOver).LastTransitionTime = ahead(f, 30*24*time.Hour)
	f.settle()
	f.wait(time.Hour)
	if got := f.get("a").Phase(); got != v1beta1.FailoverServing {
		t.Errorf("back, written thirty days ahead: after an hour %s", got)
	}
}
