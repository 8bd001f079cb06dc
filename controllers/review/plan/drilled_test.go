package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// isolated returns a failed-over cluster, in a drill or, if that is "", in earnest.
func isolated(c *v1beta1.Cluster, drill string) *v1beta1.Cluster {
	c = c.DeepCopy()
	before := metav1.NewTime(reviewedAt.Add(-10 * time.Minute))
	c.Status.Conditions = []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: corev1.ConditionFalse, Reason: v1beta1.ReasonClusterNotReachable, LastTransitionTime: before}}
	c.Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseFailedOver, Since: before, LostAt: &before}
	if drill != "" {
		c.Status.Conditions = append(c.Status.Conditions, v1beta1.ClusterCondition{Type: v1beta1.ClusterDrill, Status: corev1.ConditionTrue, Reason: drill, LastTransitionTime: before})
	}
	return c
}

// A cluster that a drill isolates does not count towards the cap while it does, as failover judges. It counts if it is
// really lost, with others or alone after the drill. A fleet notices the end of a drill though nothing else of the
// cluster changes.
func TestDrilledClustersHoldNobody(t *testing.T) {
	all := append(three(9), member("west-b", "west/b", 9), member("north-a", "north/a", 9))
	for _, c := range []struct {
		drill string
		lost  []string
		want  string
	}{
		{v1beta1.ReasonIsolated, []string{"west-a"}, ""},
		{v1beta1.ReasonIsolationAborted, []string{"west-a"}, "as many zones"},
		{"", []string{"west-a"}, "as many zones"},
		{v1beta1.ReasonIsolated, []string{"east-a", "east-b"}, "as many zones"}, // the region is lost, including a cluster that a drill isolates
		{v1beta1.ReasonIsolated, []string{"east-a"}, ""},
	} {
		in := input(t, append([]*v1beta1.Cluster{isolated(all[0], c.drill)}, all[1:]...), replicas("web", `{"east-b":2,"west-a":2}`, nil))
		s, errs := Review(in, v1beta1.FailoverReviewSpec{Clusters: c.lost})
		if len(errs) > 0 || (c.want == "") != (s.SuspendedReason == "") || !strings.Contains(s.SuspendedReason, c.want) {
			t.Errorf("%q, %v lost: held %q, want %q, %v", c.drill, c.lost, s.SuspendedReason, c.want, errs)
		}
		if got := asFleet(&in).Lose(c.lost, reviewedAt).Held; got != s.SuspendedReason {
			t.Errorf("%q, %v lost: readiness says %q, a review %q", c.drill, c.lost, got, s.SuspendedReason)
		}
	}
	in := input(t, append([]*v1beta1.Cluster{isolated(all[0], v1beta1.ReasonIsolated)}, all[1:]...))
	f := asFleet(&in)
	over := slices.Clone(in.Clusters)
	if over[0] = isolated(all[0], ""); !f.SetWorld(over, nil).All {
		t.Error("the end of a drill touches nobody")
	}
}

// A private address is in no answer if only public ones are published: its loss changes nothing, and no other cluster
// serves by one.
func TestReviewedPublicAddressesOnly(t *testing.T) {
	in := input(t, three(-1), service("web", `{"items":[{"cluster":"east-a","items":[{"ip":"10.0.0.1"}]},{"cluster":"west-a","items":[{"ip":"8.8.8.8"}]}]}`))
	lose := func(cluster string) int {
		s, _ := Review(in, v1beta1.FailoverReviewSpec{Clusters: []string{cluster}})
		return len(s.Records)
	}
	if n := lose("east-a"); n != 5 {
		t.Fatalf("with a private address %d record sets change", n)
	}
	in.Info.PublicAddressesOnly = true
	if n := lose("east-a"); n != 0 {
		t.Errorf("%d record sets that are not there would change", n)
	}
	f := asFleet(&in)
	if got := f.Lose([]string{"west-a"}, reviewedAt).NamesLost; len(got) == 0 {
		t.Error("a private address serves the name in place of a public one")
	}
}
