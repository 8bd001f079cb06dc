package consoletest

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// seedFew makes a few clusters, one in each state, and objects on them.
func seedFew(t *testing.T, s *server) {
	t.Helper()
	f := s.fleet
	must(t, f.clusters(8, func(i int, c *v1beta1.Cluster) {
		switch i {
		case 1:
			c.Spec.Taints = []corev1.Taint{{Key: v1beta1.TaintUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
		case 2:
			c.Spec.DNSWeight = new(int32(0))
			c.Spec.Taints = []corev1.Taint{{Key: v1beta1.TaintUnschedulable, Effect: corev1.TaintEffectNoSchedule}, {Key: v1beta1.TaintDrain, Effect: corev1.TaintEffectNoExecute}}
		case 3:
			lose(c, v1beta1.PhaseFailingBack, "ready again: it gets 10 % of its share")
		case 5:
			lose(c, v1beta1.PhaseFailoverSuspended, "as many zones are failed over as may be at once (1)")
		case 6:
			lose(c, v1beta1.PhaseFailedOver, "not ready for longer than the grace period of 30s: its replicas are placed elsewhere")
		case 7:
			lose(c, v1beta1.PhaseGracePeriod, "not ready: fails over in 12s")
		}
	}))
	seedObjects(t, s)
}

// seedObjects makes objects of each kind that pages show, and what has happened to them.
func seedObjects(t *testing.T, s *server) {
	t.Helper()
	f := s.fleet
	must(t, f.namespace("shop"), f.namespace("lab"))
	must(t, f.deployment("shop", "web", map[string]int64{"a-a-00": 12, "a-a-01": 9, "b-a-00": 9}, "created"))
	long := "a-name-that-is-as-long-as-names-of-workloads-may-well-be-in-companies-with-rules"
	must(t, f.deployment("lab", long, map[string]int64{"a-a-00": 1}, "created"))
	must(t, f.info(), f.service("shop", "web", "a-a-00", "a-a-01", "b-a-00"))
	must(t, f.ingress("shop", "front", "web"), f.balancer("lb-a", "region-a", 0), f.balancer("lb-b", "region-b", 5*time.Minute))
	must(t, f.links(map[string]string{"1": "Grafana https://grafana.example.com/d/workload?var-name={name}", "2": "Argo CD https://argocd.example.com/applications/{namespace}/{name}", "3": "Logs there https://logs.example.com/{cluster}/{namespace}/{name}"}))
	drilled := metav1.NewTime(time.Now().Add(-12 * 24 * time.Hour))
	survived := []metav1.Condition{{Type: v1beta1.ReadinessSurvivable, Status: metav1.ConditionTrue, Reason: v1beta1.ReadinessSurvived, LastTransitionTime: drilled}}
	short := []metav1.Condition{{Type: v1beta1.ReadinessSurvivable, Status: metav1.ConditionFalse, Reason: v1beta1.ReadinessInsufficientCapacity, Message: "8 of 410 replicas would fit nowhere", LastTransitionTime: drilled}}
	must(t, f.readiness(v1beta1.FailoverReadinessSpec{Zone: "region-a/a"}, v1beta1.FailoverReadinessStatus{
		Conditions: survived, Clusters: 2, Objects: 212, Replicas: 1310, Placed: 1310, Names: &v1beta1.ReadinessNames{Served: 96, Survive: 96}, Headroom: &v1beta1.ReadinessHeadroom{Percent: 38, Resource: "cpu", Cluster: "b-a-00"},
		LastDrill: &v1beta1.ReadinessDrill{Name: "weekly-47", Method: "Isolate", Outcome: "Succeeded", FinishedAt: drilled},
	}))
	must(t, f.readiness(v1beta1.FailoverReadinessSpec{Zone: "region-b/b"}, v1beta1.FailoverReadinessStatus{Conditions: short, Clusters: 2, Objects: 31, Replicas: 410, Placed: 402, Unschedulable: 8}))
	for i, reason := range []string{"ClusterFailedOver", "ClusterNotReady"} {
		must(t, f.event("default", corev1.ObjectReference{Kind: "Cluster", Name: "b-b-00", APIVersion: v1beta1.SchemeGroupVersion.String()}, reason, fmt.Sprintf("not ready for longer than the grace period of %ds", 30+i)))
	}
	must(t, f.event("shop", corev1.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: "web", APIVersion: "apps/v1"}, "Placed", "30 replicas in 3 clusters"))
	for week := range 7 {
		must(t, f.drilled(fmt.Sprintf("weekly-%d", 47-week), drilled.Add(-time.Duration(7*week)*24*time.Hour)))
	}
}

// openOverview opens the overview of n clusters that serve, as an administrator.
func openOverview(t *testing.T, n int) (*server, *browser) {
	t.Helper()
	s := startServer(t)
	must(t, s.fleet.clusters(n, nil), s.fleet.info())
	b := startBrowser(t, desk)
	b.open(s.console(t))
	b.waitCells(n)
	return s, b
}

// origin returns the scheme and host of an address.
func origin(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	return u.Scheme + "://" + u.Host
}
