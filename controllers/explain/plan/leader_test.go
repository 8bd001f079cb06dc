package plan

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhoLeads(t *testing.T) {
	for ago, alive := range map[time.Duration]bool{0: true, 20 * time.Second: true, time.Minute: false} {
		renewed := metav1.NewMicroTime(seenAt.Add(-ago))
		l := LeaderOf(&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("fed-1"), LeaseDurationSeconds: new(int32(7)), RenewTime: &renewed}}, seenAt)
		if l.Alive != alive || l.Process != "fed-1" {
			t.Errorf("renewed %v ago: %+v", ago, l)
		}
	}
	if l := LeaderOf(&coordinationv1.Lease{}, seenAt); l.Alive {
		t.Errorf("a Lease that nobody ever had: %+v", l)
	}
	s := &Status{Leader: &Leader{}}
	if s.Summarize(); s.Healthy {
		t.Error("all is well, though nobody leads")
	}
}
