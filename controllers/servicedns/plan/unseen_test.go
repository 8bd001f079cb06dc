package plan

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Addresses that this process cannot see though others reach the cluster are kept, but not published while another
// cluster serves.
func TestWhatIsNotSeenOfACluster(t *testing.T) {
	unseen := func(o Object, clusters ...string) Object {
		for i := range o.Ingresses.Items {
			if slices.Contains(clusters, o.Ingresses.Items[i].Cluster) {
				o.Ingresses.Items[i].Seen = new(false)
			}
		}
		return o
	}
	global := func(clusters []Cluster, o Object) string {
		got := slices.DeleteFunc(lines(Records(input(clusters, o))), func(line string) bool { return !strings.HasPrefix(line, "@ ") })
		return strings.Join(got, "; ")
	}
	held := threeClusters()
	held[0].CutOff = true
	web := func() Object { return service("east-a=192.0.2.1", "east-b=192.0.2.2") }
	for name, c := range map[string]struct {
		clusters []Cluster
		object   Object
		want     string
	}{
		"both are seen":                 {threeClusters(), web(), "@ A 192.0.2.1 192.0.2.2"},
		"one is not":                    {threeClusters(), unseen(web(), "east-a"), "@ A 192.0.2.2"},
		"neither is":                    {threeClusters(), unseen(web(), "east-a", "east-b"), "@ A 192.0.2.1 192.0.2.2"},
		"the other has no endpoint":     {threeClusters(), unseen(service("east-a=192.0.2.1", "east-b"), "east-a"), "@ A 192.0.2.1"},
		"it had no endpoint":            {threeClusters(), unseen(service("east-a", "east-b=192.0.2.2"), "east-a"), "@ A 192.0.2.2"},
		"most clusters vanished anyway": {held, unseen(web(), "east-a"), "@ A 192.0.2.1 192.0.2.2"},
	} {
		if got := global(c.clusters, c.object); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A cluster that most processes reach serves, even if the leader does not reach it.
func TestAClusterThatMostReach(t *testing.T) {
	c := &v1beta1.Cluster{}
	c.Status.Conditions = []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: corev1.ConditionFalse}}
	for reason, want := range map[string]bool{"": false, v1beta1.ReasonReachableByMajority: true, v1beta1.ReasonReachableByMinority: false} {
		c.Status.Conditions = append(c.Status.Conditions[:1], v1beta1.ClusterCondition{Type: v1beta1.ClusterPartiallyReachable, Status: corev1.ConditionTrue, Reason: reason})
		if got := ClusterOf(c, nil).Ready; got != want {
			t.Errorf("%s: ready %v", reason, got)
		}
	}
}

// Where most clusters vanished together, only addresses that stay are said to stay: those of a cluster that had no endpoint, or was drained, are out.
func TestWhatStaysIsSaidToStay(t *testing.T) {
	for name, c := range map[string]struct {
		object Object
		weight uint32
		want   bool
	}{
		"it served":          {service("east-a=192.0.2.1", "east-b=192.0.2.2"), 100, true},
		"it had no endpoint": {service("east-a", "east-b=192.0.2.2"), 100, false},
		"it was drained":     {service("east-a=192.0.2.1", "east-b=192.0.2.2"), 0, false},
	} {
		clusters := threeClusters()
		clusters[0].CutOff, clusters[0].Weight = true, c.weight
		if got := static(Records(input(clusters, c.object))); got != c.want {
			t.Errorf("%s: FailStatic %t, want %t", name, got, c.want)
		}
	}
}

// A cluster is failed over until it has something again.
func TestAClusterThatIsFailedOver(t *testing.T) {
	for _, tc := range []struct {
		phase   v1beta1.FailoverPhase
		percent int32
		want    bool
	}{
		{v1beta1.PhaseServing, 0, false}, {v1beta1.PhaseGracePeriod, 0, false}, {v1beta1.PhaseFailoverSuspended, 0, false},
		{v1beta1.PhaseFailedOver, 0, true}, {v1beta1.PhaseFailingBack, 0, true}, {v1beta1.PhaseFailingBack, 10, false},
	} {
		c := &v1beta1.Cluster{Status: v1beta1.ClusterStatus{Failover: &v1beta1.ClusterFailover{Phase: tc.phase, Percent: tc.percent}}}
		if got := ClusterOf(c, nil).FailedOver; got != tc.want {
			t.Errorf("%s, %d %%: failed over %v", tc.phase, tc.percent, got)
		}
	}
}
