package plan

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Why a drill does not begin is said with its numbers, for the person who has to mend it.
func TestPreflightSaysWhy(t *testing.T) {
	for want, wrong := range map[string]func(*made, *World){
		"OthersServe: the scope has all clusters: none is left to serve":              func(_ *made, w *World) { w.Review.Clusters = []string{"a", "b", "c"} },
		"OthersServe: cluster b: not ready, phase Serving; must be ready and Serving": func(_ *made, w *World) { w.Clusters[1].Status.Conditions = nil },
		"ScopeServes: cluster a: ready, phase FailedOver; must be ready and Serving": func(_ *made, w *World) {
			w.Clusters[0].Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseFailedOver}
		},
		"ScopeServes: cluster a: out of service already: DNS weight 0, not cordoned": func(_ *made, w *World) { w.Clusters[0].Spec.DNSWeight = new(int32) },
		"ScopeServes: cluster a: out of service already: DNS weight 70, Draining": func(_ *made,
			w *World) {
			w.Clusters[0].Spec.Taints = []corev1.Taint{drainTaint}
		},
		"ScopeServes: cluster a: out of service already: DNS weight 70, not cordoned": func(_ *made,
			w *World) {
			w.Clusters[0].Annotations = map[string]string{v1beta1.DrainAnnotation: "x"}
		},
		"ProvidersCurrent: DNS provider built-in is behind: no answer": func(_ *made,
			w *World) {
			w.Providers[0] = v1beta1.DNSProvider{Name: "built-in", Message: "no answer"}
		},
		"Fits: 3 replicas would fit nowhere, at most 2 may": func(m *made, w *World) {
			m.drill.Spec.Guardrails.MaxUnplaced, w.Review.ReplicasUnschedulable = new(int64(2)), 3
		},
		"NodeAgents: cluster a: no answer": func(m *made, w *World) {
			m.drill.Spec.Method, w.NodeAgents["a"] = v1beta1.DrillBlackhole, NodeAgents{Nodes: 3, Able: 3, Problem: "no answer"}
		},
		"Approved: needs the approval of somebody other than ann": func(m *made, _ *World) {
			m.drill.Spec.Approval, m.drill.Status.RequestedBy = v1beta1.DrillApprovalRequired, "ann"
		},
		"Approved: needs the approval of somebody other than who made it": func(m *made, _ *World) { m.drill.Spec.Approval = v1beta1.DrillApprovalRequired },
		`InWindow: spec.windows: "never": must be DAY-HH:MM-HH:MM, as MON-09:00-12:00`: func(m *made, _ *World) {
			m.drill.Spec.Windows = &v1beta1.DrillWindows{BlockedWindows: []string{"never"}}
		},
		": ": func(m *made, _ *World) {
			m.drill.Spec.Approval, m.drill.Status.Approved = v1beta1.DrillApprovalRequired, &v1beta1.DrillDecision{By: "bob"}
		},
	} {
		m := newMade(t, v1beta1.DrillEvacuate)
		w := m.world()
		wrong(m, w)
		if reason, message := Preflight(m.drill, w); reason+": "+message != want {
			t.Errorf("got %s: %s\nwant %s", reason, message, want)
		}
	}
}

// A name survives if a record set of it keeps an address: IPv6 alone is enough. A name of which nothing is left keeps a drill from beginning.
func TestPreflightNamesSurvive(t *testing.T) {
	change := func(name, kind string, after ...string) v1beta1.RecordChange {
		return v1beta1.RecordChange{Name: name, Type: kind, Before: []string{"x"}, After: after}
	}
	for _, c := range []struct {
		records []v1beta1.RecordChange
		want    string
	}{
		{nil, ""},
		{[]v1beta1.RecordChange{change("web.", "A", "192.0.2.2")}, ""},
		{[]v1beta1.RecordChange{change("web.", "A"), change("web.", "AAAA", "2001:db8::2")}, ""},
		{[]v1beta1.RecordChange{change("web.", "AAAA", "2001:db8::2"), change("web.", "A")}, ""},
		{[]v1beta1.RecordChange{change("web.", "A"), change("web.", "AAAA")}, "web. would have no address"},
		{[]v1beta1.RecordChange{change("web.", "A"), change("db.", "A", "192.0.2.2")}, "web. would have no address"},
		{[]v1beta1.RecordChange{change("db.", "A", "192.0.2.2"), change("web.", "CNAME")}, "web. would have no address"},
	} {
		m := newMade(t, v1beta1.DrillShift)
		w := m.world()
		w.Review.Records = c.records
		if reason, message := Preflight(m.drill, w); message != c.want || (reason == v1beta1.DrillNamesSurvive) != (c.want != "") {
			t.Errorf("%+v: got %s %q, want %q", c.records, reason, message, c.want)
		}
	}
}

// The baseline that is over already is not asked of the window again: a drill that fitted when it was let in is not blocked a moment later.
func TestPreflightCountsTheBaselineOnce(t *testing.T) {
	for _, c := range []struct {
		phase v1beta1.DrillPhase
		lasts time.Duration
		want  string
	}{
		{v1beta1.DrillPending, 0, ""},
		{v1beta1.DrillPending, time.Second, v1beta1.DrillInWindow},
		{v1beta1.DrillBaseline, time.Second, ""},
		{v1beta1.DrillBaseline, 5 * time.Second, ""},
		{v1beta1.DrillBaseline, 6 * time.Second, v1beta1.DrillInWindow},
	} {
		m := newMade(t, v1beta1.DrillShift)
		m.drill.Spec.Windows = &v1beta1.DrillWindows{AllowedWindows: []string{"FRI-09:00-10:02"}}
		m.now = time.Date(2026, 5, 1, 10, 0, 55, 0, time.UTC).Add(c.lasts) // 65 s before the window is over: baseline and hold
		m.drill.Status.Phase, m.drill.Status.PhaseSince = c.phase, new(metav1.NewMicroTime(m.now.Add(-c.lasts)))
		if got, message := Preflight(m.drill, m.world()); got != c.want {
			t.Errorf("%s for %s: got %q %s, want %q", c.phase, c.lasts, got, message, c.want)
		}
	}
}
