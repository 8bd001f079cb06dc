package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"federation/apiserver/apis/federation/v1beta1"
)

var begin = time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)

// made is a world for a drill: three clusters, one object of 30 replicas, one name. Changes to clusters take effect at
// once, but DNS takes lag.
type made struct {
	t        *testing.T
	now      time.Time
	drill    *v1beta1.FailoverDrill
	clusters []*v1beta1.Cluster
	stopped  string
	other    string
	lag      time.Duration
	since    map[string]time.Time // when the weight of a cluster changed
	ready    int64                // how many of 30 are ready
	unplaced int64
	writes   int
	dies     int // the number of writes after which the process dies; 0: never
	gone     bool
	lease    Lease
	heard    time.Time // when the process last saw the Lease renewed
	cut      time.Time // since when a is isolated; zero if it is not
	dead     bool      // a does not answer, isolated or not
	deaf     time.Time // since when no renewal reaches the node agents of a; zero if they do
	budgets  []Budget
	moved    int64
	leader   string
	slow     [3]time.Duration
	drills   []*v1beta1.FailoverDrill
	moving   bool
	asks     *asks
}

func cluster(name string) *v1beta1.Cluster {
	return &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1beta1.ClusterStatus{
		Conditions: []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: corev1.ConditionTrue}},
	}}
}

func newMade(t *testing.T, method v1beta1.DrillMethod) *made {
	m := &made{t: t, now: begin, lag: 2 * time.Second, since: map[string]time.Time{}, ready: 30}
	for _, name := range []string{"a", "b", "c"} {
		m.clusters = append(m.clusters, cluster(name))
	}
	m.clusters[0].Spec.DNSWeight = new(int32(70))
	m.drill = &v1beta1.FailoverDrill{
		ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "u", CreationTimestamp: metav1.NewTime(begin)},
		Spec: v1beta1.FailoverDrillSpec{Scope: v1beta1.FailoverDrillScope{Clusters: []string{"a"}}, Method: method, Reason: "test",
			BaselineSeconds: new(int32(5)), HoldSeconds: new(int32(60)), Objectives: v1beta1.FailoverDrillObjectives{OutOfDNSSeconds: new(int32(5)), MinReadyPercent: new(int32(100))}},
	}
	return m
}

func (m *made) placed() map[string]int64 {
	if phase := m.clusters[0].Phase(); tainted(m.clusters[0]) || phase == v1beta1.PhaseFailedOver || phase == v1beta1.PhaseFailingBack {
		return map[string]int64{"b": 15, "c": 15}
	}
	return map[string]int64{"a": 10, "b": 10, "c": 10}
}

func (m *made) world() *World {
	m.failOver()
	addresses := []string{"192.0.2.2", "192.0.2.3"}
	ready := m.ready
	there := (m.clusters[0].DNSWeight() > 0) == (m.now.Sub(m.since["a"]) >= m.lag)
	if !m.clusters[0].IsReady() { // ready pods there cannot be seen
		ready = min(ready, m.placed()["b"]+m.placed()["c"])
		there = m.now.Sub(m.cut) < m.lag
	}
	if there {
		addresses = slices.Concat([]string{"192.0.2.1"}, addresses)
	}
	var clients []Client
	if m.asks != nil {
		clients = m.asks.at(m, time.Duration(m.drill.Spec.Guardrails.Window())*time.Second)
	}
	return &World{
		Now: m.now, Clients: clients, Clusters: m.clusters, Stopped: m.stopped, Other: m.other, TTL: 15 * time.Second,
		Objects: []Object{{Name: "Deployment shop/web", Counts: true, Asked: 30, Ready: ready, Placed: m.placed(), Unplaced: m.unplaced, Moving: m.moving}},
		Budgets: m.budgets, Moved: m.moved, Leader: m.leader, SlowWrites: m.slow, Drills: m.drills,
		Lease: m.lease, Isolated: m.isolated(), DeadBehind: m.deadBehind(), Blackholed: m.blackholed(),
		NodeAgents: map[string]NodeAgents{"a": {Nodes: 3, Able: 3}},
		Records:    map[Record][]string{{"web.", "A"}: addresses}, Providers: []v1beta1.DNSProvider{{Name: "built-in", Published: true}},
		Review: &v1beta1.FailoverReviewStatus{Clusters: []string{"a"}, ReplicasMoved: 10,
			Moves: []v1beta1.ReplicaMove{{Kind: "Deployment", Namespace: "shop", Name: "web", Clusters: []v1beta1.ReplicaChange{
				{Cluster: "a", Before: 10}, {Cluster: "b", Before: 10, After: 15}, {Cluster: "c", Before: 10, After: 15}}}},
			Records: []v1beta1.RecordChange{{Name: "web.", Type: "A", Before: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, After: []string{"192.0.2.2", "192.0.2.3"}}}},
	}
}

// isolated returns the clusters that the process is cut off from: for 30 s after it has seen the Lease renewed.
func (m *made) isolated() []string {
	if m.lease.Drill == "" || m.now.Sub(m.heard) >= 30*time.Second {
		return nil
	}
	return []string{"a"}
}

// blackholed returns the clusters whose node agents have seen a drill's Lease within 30 s.
func (m *made) blackholed() []string {
	if !m.lease.Blackhole || !m.deaf.IsZero() && m.now.Sub(m.deaf) >= 30*time.Second {
		return nil
	}
	return m.isolated()
}

func (m *made) deadBehind() []string {
	if m.dead && m.isolated() != nil {
		return []string{"a"}
	}
	return nil
}

// failOver plays registry and failover of a: lost at once, failed over after 30 s; back in a step after 20 s, or at
// once.
func (m *made) failOver() {
	a := m.clusters[0].DeepCopy()
	m.clusters[0] = a
	ready := a.Condition(v1beta1.ClusterReady)
	if m.isolated() == nil && !m.dead {
		ready.Status, m.cut = corev1.ConditionTrue, time.Time{}
		drill := a.Drill()
		switch f := a.Status.Failover; {
		case f == nil:
		case drill != nil && drill.Reason == v1beta1.ReasonIsolationAborted || f.Phase == v1beta1.PhaseGracePeriod:
			f.Phase = v1beta1.PhaseServing
		case f.Phase == v1beta1.PhaseFailedOver:
			f.Phase, f.Percent, f.Since = v1beta1.PhaseFailingBack, 10, metav1.NewTime(m.now)
		case f.Phase == v1beta1.PhaseFailingBack && m.now.Sub(f.Since.Time) > 20*time.Second:
			f.Phase, f.Percent = v1beta1.PhaseServing, 0
		}
		return
	}
	if ready.Status = corev1.ConditionFalse; m.cut.IsZero() {
		m.cut = m.now
	}
	a.Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseGracePeriod}
	if m.now.Sub(m.cut) >= 30*time.Second {
		a.Status.Failover.Phase = v1beta1.PhaseFailedOver
	}
}

// write counts a write, and reports whether the process lives to make it.
func (m *made) write() bool {
	m.writes++
	return m.dies == 0 || m.writes <= m.dies
}

// step takes one step as the controller does: the status first.
func (m *made) step() {
	step := Next(m.drill, m.world())
	m.now = m.now.Add(time.Second)
	if !reflect.DeepEqual(step.Status, m.drill.Status) {
		if !m.write() {
			m.dies = 0 // the next process continues from what is stored
			return
		}
		m.drill.Status = step.Status
	}
	for _, c := range step.Changes {
		if !m.write() {
			m.dies = 0
			return
		}
		i := slices.IndexFunc(m.clusters, func(is *v1beta1.Cluster) bool { return is.Name == c.Name })
		if m.clusters[i].DNSWeight() != c.DNSWeight() {
			m.since[c.Name] = m.now
		}
		m.clusters[i] = c
	}
	for _, mark := range step.Marks {
		if !m.write() {
			m.dies = 0
			return
		}
		c := m.clusters[0].DeepCopy()
		c.Status.Conditions = slices.DeleteFunc(c.Status.Conditions, func(is v1beta1.ClusterCondition) bool { return is.Type == v1beta1.ClusterDrill })
		if mark.Condition != nil {
			c.Status.Conditions = append(c.Status.Conditions, *mark.Condition)
		}
		m.clusters[0] = c
	}
	if step.Isolate || step.LetIn || step.Lift {
		if !m.write() {
			m.dies = 0
			return
		}
		if step.Lift && m.drill.Spec.Method == v1beta1.DrillBlackhole && (m.lease.Blackhole || m.now.Sub(m.lease.Renewed) < time.Second) {
			m.t.Error("the federation returns before clients do")
		}
		if m.lease = (Lease{}); !step.Lift {
			m.lease, m.heard = Lease{Drill: string(m.drill.UID), Renewed: m.now, Blackhole: step.Isolate && m.drill.Spec.Method == v1beta1.DrillBlackhole}, m.now
		}
	}
	m.gone = step.Release && m.drill.DeletionTimestamp != nil
}

// until takes steps until so returns true.
func (m *made) until(what string, so func() bool) {
	m.t.Helper()
	for range 20000 {
		if so() {
			return
		}
		m.step()
	}
	text, _ := json.Marshal(m.drill.Status)
	m.t.Fatalf("never: %s; %s", what, text)
}

func (m *made) phase(p v1beta1.DrillPhase) {
	m.t.Helper()
	m.until(string(p), func() bool { return m.drill.Status.Phase == p })
}

// ends plays the drill to its end, and checks the outcome and that the clusters are as they were.
func (m *made) ends(outcome v1beta1.DrillOutcome, reason string) {
	m.t.Helper()
	m.phase(v1beta1.DrillFinished)
	s := m.drill.Status
	if s.Outcome != outcome || s.Reason != reason {
		m.t.Errorf("%s %s: %s; want %s %s", s.Outcome, s.Reason, s.Message, outcome, reason)
	}
	m.asBefore()
}

func (m *made) asBefore() {
	m.t.Helper()
	for _, c := range m.clusters {
		was := newMade(m.t, v1beta1.DrillShift).clusters[slices.Index([]string{"a", "b", "c"}, c.Name)]
		if !reflect.DeepEqual(c.Spec, was.Spec) || c.Annotations[v1beta1.DrainAnnotation] != "" || c.Drill() != nil {
			m.t.Errorf("cluster %s is left with %+v, annotations %v, %v", c.Name, c.Spec, c.Annotations, c.Drill())
		}
	}
	if m.lease.Drill != "" {
		m.t.Error("the Lease is left")
	}
}

func TestShiftTakesAddressesOutAndBringsThemBack(t *testing.T) {
	m := newMade(t, v1beta1.DrillShift)
	m.phase(v1beta1.DrillHolding)
	if c := m.clusters[0]; c.DNSWeight() != 0 || tainted(c) || c.OutOfService() != "" {
		t.Errorf("taken out: weight %d, %v, %q", c.DNSWeight(), c.Spec.Taints, c.OutOfService())
	}
	m.ends(v1beta1.DrillSucceeded, v1beta1.DrillCompleted)
	r := m.drill.Status.Report
	if out := r.Marks.OutOfDNS.Sub(r.Marks.Injected.Time); out < time.Second || out > 3*time.Second {
		t.Errorf("out of DNS after %s, want the lag of %s", out, m.lag)
	}
	if hold := r.Marks.Recovering.Sub(r.Marks.Injected.Time); hold < 60*time.Second || hold > 62*time.Second {
		t.Errorf("held for %s, want 60 s", hold)
	}
	if r.Marks.BackInDNS == nil || r.Marks.Clean == nil || len(r.Objectives) != 2 || r.Prediction.Replicas != 0 {
		t.Errorf("report %+v", r)
	}
}

func TestIsolateIsLikeALoss(t *testing.T) {
	for _, method := range []v1beta1.DrillMethod{v1beta1.DrillIsolation, v1beta1.DrillBlackhole} {
		t.Run(string(method), func(t *testing.T) { isLikeALoss(t, method) })
	}
}

func isLikeALoss(t *testing.T, method v1beta1.DrillMethod) {
	m := newMade(t, method)
	m.drill.Spec.Objectives.DetectedSeconds = new(int32(4))
	spec := m.clusters[0].Spec.DeepCopy()
	m.until("out", func() bool { return m.clusters[0].Phase() == v1beta1.PhaseFailedOver })
	if !reflect.DeepEqual(m.clusters[0].Spec, *spec) {
		t.Errorf("the spec of the cluster is changed: %+v", m.clusters[0].Spec)
	}
	m.ends(v1beta1.DrillSucceeded, v1beta1.DrillCompleted)
	r := m.drill.Status.Report
	if p := r.Prediction; p.Replicas != 10 || p.Measured != 10 || len(p.Differences) > 0 {
		t.Errorf("prediction %+v", p)
	}
	marks := r.Marks
	if marks.Detected == nil || marks.Out == nil || marks.Placed == nil || marks.ReadyElsewhere == nil || marks.BackReady == nil || len(marks.Failback) != 2 {
		t.Errorf("marks %+v", marks)
	}
	if hold := marks.Recovering.Sub(marks.Injected.Time); hold < 60*time.Second || hold > 62*time.Second {
		t.Errorf("held for %s, want 60 s", hold)
	}
}

// If nobody renews for half a minute, or the scope really dies, the drill ends. The cluster serves again at once, or
// stays lost.
func TestIsolationEndsByItself(t *testing.T) {
	m := newMade(t, v1beta1.DrillIsolation)
	m.phase(v1beta1.DrillHolding)
	m.now = m.now.Add(31 * time.Second)
	m.ends(v1beta1.DrillInterrupted, v1beta1.DrillControllerLost)
	m = newMade(t, v1beta1.DrillIsolation)
	m.until("out", func() bool { return m.clusters[0].Phase() == v1beta1.PhaseFailedOver })
	m.dead = true
	m.ends(v1beta1.DrillInterrupted, v1beta1.DrillRealFailure)
	if m.clusters[0].Phase() != v1beta1.PhaseFailedOver {
		t.Errorf("a cluster that died is %s", m.clusters[0].Phase())
	}
}

// A drill whose Lease does not reach the node agents is not in force, or ends. It is not over while they may still act
// on it, unless the cluster is dead.
func TestBlackholeNeedsTheNodeAgents(t *testing.T) {
	m := newMade(t, v1beta1.DrillBlackhole)
	m.deaf = begin.Add(-time.Minute)
	m.ends(v1beta1.DrillInterrupted, v1beta1.DrillDeadline)
	if m.drill.Status.Report.Marks.Injected != nil {
		t.Error("a fault that did not come is in the report")
	}
	m = newMade(t, v1beta1.DrillBlackhole)
	m.phase(v1beta1.DrillHolding)
	m.deaf = m.now
	m.ends(v1beta1.DrillInterrupted, v1beta1.DrillControllerLost)
	if held := m.drill.Status.Report.Marks.Recovering.Sub(m.deaf); held < 29*time.Second || held > 32*time.Second {
		t.Errorf("ended %s after the last renewal that the agents heard of", held)
	}
}

func TestSweepEndsIsolationsOfNoDrill(t *testing.T) {
	m := newMade(t, v1beta1.DrillIsolation)
	m.phase(v1beta1.DrillHolding)
	if marks, lift := SweepIsolation(m.clusters, []*v1beta1.FailoverDrill{m.drill}, m.lease); len(marks) > 0 || lift {
		t.Errorf("a drill that there is loses %v, %t", marks, lift)
	}
	if marks, lift := SweepIsolation(m.clusters, nil, m.lease); len(marks) != 1 || !lift {
		t.Errorf("a drill that is gone leaves %v, %t", marks, lift)
	}
}

func TestEvacuateMovesReplicasAfterTheTTL(t *testing.T) {
	m := newMade(t, v1beta1.DrillEvacuate)
	m.until("the taint", func() bool { return tainted(m.clusters[0]) })
	if marks := m.drill.Status.Report.Marks; marks.LastUse == nil || marks.LastUse.Sub(marks.OutOfDNS.Time) < 17*time.Second {
		t.Errorf("tainted before resolvers have forgotten: %+v", marks)
	}
	m.ends(v1beta1.DrillSucceeded, v1beta1.DrillCompleted)
	if p := m.drill.Status.Report.Prediction; p.Replicas != 10 || p.Measured != 10 || len(p.Differences) > 0 {
		t.Errorf("prediction %+v", p)
	}
	if marks := m.drill.Status.Report.Marks; marks.ReadyElsewhere == nil || marks.BackReady == nil {
		t.Errorf("marks %+v", marks)
	}
}

// If a process dies after any of its writes, the next one finishes the drill as if nothing had happened. Acceptance
// test 9 of drills.
func TestDeathAfterEachWrite(t *testing.T) {
	for _, method := range []v1beta1.DrillMethod{v1beta1.DrillShift, v1beta1.DrillEvacuate, v1beta1.DrillIsolation, v1beta1.DrillBlackhole} {
		whole := newMade(t, method)
		whole.ends(v1beta1.DrillSucceeded, v1beta1.DrillCompleted)
		if whole.writes < 8 {
			t.Fatalf("%s: only %d writes", method, whole.writes)
		}
		for n := 1; n <= whole.writes; n++ {
			t.Run(fmt.Sprint(method, n), func(t *testing.T) {
				m := newMade(t, method)
				m.dies = n
				m.ends(v1beta1.DrillSucceeded, v1beta1.DrillCompleted)
			})
		}
	}
}

// Each check alone blocks a drill, which then writes nothing but its status. Acceptance test 16 of drills.
func TestEachCheckBlocks(t *testing.T) {
	for name, wrong := range map[string]func(*made, *World){
		v1beta1.DrillNotStopped:       func(_ *made, w *World) { w.Stopped = "game over" },
		v1beta1.DrillAlone:            func(_ *made, w *World) { w.Other = "e" },
		v1beta1.DrillScopeKnown:       func(_ *made, w *World) { w.Review, w.Problem = nil, "no such zone" },
		v1beta1.DrillScopeServes:      func(_ *made, w *World) { w.Clusters[0].Spec.DNSWeight = new(int32) },
		v1beta1.DrillOthersServe:      func(_ *made, w *World) { w.Clusters[1].Status.Conditions = nil },
		v1beta1.DrillProvidersCurrent: func(_ *made, w *World) { w.Providers[0].Published = false },
		v1beta1.DrillNamesSurvive:     func(_ *made, w *World) { w.Review.Records[0].After = nil },
		v1beta1.DrillFits:             func(_ *made, w *World) { w.Review.ReplicasUnschedulable = 1 },
		v1beta1.DrillNotHeld: func(m *made, w *World) {
			m.drill.Spec.Method, w.Review.SuspendedReason = v1beta1.DrillIsolation, "most clusters"
		},
		v1beta1.DrillDoubleRunning: func(m *made, w *World) {
			m.drill.Spec.Method, w.Review.Moves[0].Kind = v1beta1.DrillIsolation, "StatefulSet"
		},
		v1beta1.DrillNodeAgents: func(m *made, w *World) {
			m.drill.Spec.Method, w.NodeAgents["a"] = v1beta1.DrillBlackhole, NodeAgents{Nodes: 3, Able: 2}
		},
		v1beta1.DrillNodeAgents + " unknown": func(m *made, w *World) { m.drill.Spec.Method, w.NodeAgents = v1beta1.DrillBlackhole, nil },
		v1beta1.DrillNodeAgents + " none": func(m *made, w *World) {
			m.drill.Spec.Method, w.NodeAgents["a"] = v1beta1.DrillBlackhole, NodeAgents{}
		},
		v1beta1.DrillQuiet: func(_ *made, w *World) { w.Objects[0].Moving = true },
		v1beta1.DrillRested: func(m *made, w *World) {
			w.Drills = []*v1beta1.FailoverDrill{m.drill, drilled("a", begin.Add(90*time.Minute))}
		},
		v1beta1.DrillBudgets: func(_ *made, w *World) {
			w.Budgets, w.Objects[0].Ready = []Budget{{Name: "shop/web", MaxUnavailable: new(intstr.FromInt32(1)), Objects: []int{0}}}, 28
		},
		v1beta1.DrillInWindow: func(m *made, _ *World) {
			m.drill.Spec.Windows = &v1beta1.DrillWindows{BlockedWindows: []string{"FRI-10:01-10:02", "FRI-12:00-12:01"}}
		},
		v1beta1.DrillApproved: func(m *made, _ *World) { m.drill.Spec.Approval = v1beta1.DrillApprovalRequired },
	} {
		t.Run(name, func(t *testing.T) {
			m, name := newMade(t, v1beta1.DrillEvacuate), strings.Fields(name)[0]
			w := m.world()
			wrong(m, w)
			step := Next(m.drill, w)
			if step.Status.Phase != v1beta1.DrillPending || step.Status.Reason != name || len(step.Changes) > 0 || step.Release {
				t.Errorf("%+v, want Pending, %s", step, name)
			}
			w.Now = begin.Add(2 * time.Hour)
			m.drill.Status = step.Status
			if step = Next(m.drill, w); step.Status.Outcome != v1beta1.DrillBlocked || step.Status.Reason != name || !step.Release || len(step.Changes) > 0 {
				t.Errorf("after the deadline %+v, want Blocked, %s", step, name)
			}
			m.drill.Status = v1beta1.FailoverDrillStatus{Phase: v1beta1.DrillBaseline, PhaseSince: new(metav1.NewMicroTime(begin))}
			if name == v1beta1.DrillQuiet { // it waits again
				if step = Next(m.drill, w); step.Status.Phase != v1beta1.DrillPending || step.Status.Reason != name || len(step.Changes) > 0 {
					t.Errorf("in the baseline %+v, want Pending, %s", step, name)
				}
				return
			}
			if step = Next(m.drill, w); step.Status.Outcome != v1beta1.DrillBlocked || len(step.Changes) > 0 {
				t.Errorf("in the baseline %+v, want Blocked", step)
			}
		})
	}
}

// drilled returns a drill of a cluster that ended at a time.
func drilled(cluster string, at time.Time) *v1beta1.FailoverDrill {
	return &v1beta1.FailoverDrill{ObjectMeta: metav1.ObjectMeta{Name: "before", UID: "b"}, Status: v1beta1.FailoverDrillStatus{Phase: v1beta1.DrillFinished, PhaseSince: new(metav1.NewMicroTime(at)),
		Outcome: v1beta1.DrillSucceeded, Clusters: []string{cluster}, Report: &v1beta1.DrillReport{}}}
}

// Checks that spec.allow ignores, or that do not concern the scope, block no drill.
func TestWhatDoesNotKeepADrillFromBeginning(t *testing.T) {
	restless := Object{Name: "Deployment shop/other", Moving: true, Placed: map[string]int64{"b": 3}, Since: begin.Add(-9 * time.Minute)}
	for name, make := range map[string]func(*made, *World){
		"not quiet, allowed": func(m *made, w *World) { w.Objects[0].Moving, m.drill.Spec.Allow = true, []string{v1beta1.DrillQuiet} },
		"not rested, allowed": func(m *made, w *World) {
			w.Drills, m.drill.Spec.Allow = []*v1beta1.FailoverDrill{drilled("a", begin)}, []string{v1beta1.DrillRested}
		},
		"a rollout elsewhere": func(_ *made, w *World) { w.Objects = append(w.Objects, restless) },
		"a drill elsewhere":   func(_ *made, w *World) { w.Drills = []*v1beta1.FailoverDrill{drilled("b", begin)} },
		"a drill an hour ago": func(_ *made, w *World) { w.Drills = []*v1beta1.FailoverDrill{drilled("a", begin.Add(-time.Hour))} },
		"a budget that holds": func(_ *made, w *World) {
			w.Budgets = []Budget{{MinAvailable: new(intstr.FromString("100%")), Objects: []int{0}}}
		},
		"a budget of other pods": func(_ *made, w *World) { w.Budgets = []Budget{{MinAvailable: new(intstr.FromInt32(1))}} },
		"a budget that is beyond": func(_ *made, w *World) {
			w.Budgets = []Budget{{MinAvailable: new(intstr.FromInt32(99)), Objects: []int{0}}}
		},
	} {
		m := newMade(t, v1beta1.DrillEvacuate)
		w := m.world()
		make(m, w)
		if step := Next(m.drill, w); step.Status.Phase != v1beta1.DrillBaseline {
			t.Errorf("%s: %s %s: %s", name, step.Status.Phase, step.Status.Reason, step.Status.Message)
		}
	}
	m := newMade(t, v1beta1.DrillEvacuate)
	w := m.world()
	restless.Since = begin.Add(-11 * time.Minute)
	w.Objects = append(w.Objects, restless)
	if step := Next(m.drill, w); step.Status.Reason != v1beta1.DrillQuiet {
		t.Errorf("an object that has been out of sync for 11 min: %s %s", step.Status.Phase, step.Status.Reason)
	}
}

// These do not end a drill: a budget violated for less than half a minute, or by pods of an isolated cluster, which run
// on; a fifth more moves than predicted, and ten; one leader change; slow writes for less than half a minute.
func TestWhatDoesNotEndADrill(t *testing.T) {
	for name, during := range map[string]func(*made){
		"a budget for 25 s": func(m *made) {
			m.budgets, m.ready = []Budget{{MinAvailable: new(intstr.FromString("98%")), Objects: []int{0}}}, 29
			for range 25 {
				m.step()
			}
			m.ready = 30
		},
		"22 moved":    func(m *made) { m.moved = 22 },
		"one change":  func(m *made) { m.leader = "p2" },
		"slow writes": func(m *made) { m.slow = [3]time.Duration{2 * time.Second, 0, 3 * time.Second} },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMade(t, v1beta1.DrillEvacuate)
			m.leader = "p1"
			m.drill.Spec.Objectives = v1beta1.FailoverDrillObjectives{}
			m.drill.Spec.Guardrails.MinReadyPercent = new(int32(0))
			m.until("out of DNS", func() bool { r := m.drill.Status.Report; return r != nil && r.Marks.OutOfDNS != nil })
			during(m)
			m.ends(v1beta1.DrillSucceeded, v1beta1.DrillCompleted)
		})
	}
	m := newMade(t, v1beta1.DrillIsolation)
	m.budgets = []Budget{{MaxUnavailable: new(intstr.FromInt32(0)), Objects: []int{0}}}
	m.ends(v1beta1.DrillSucceeded, v1beta1.DrillCompleted)
}

// Each reason ends a drill at once and it is undone. Acceptance test 17 of drills.
func TestEachReasonEndsADrill(t *testing.T) {
	aborted := func(m *made) { m.drill.Status.Abort = &v1beta1.DrillDecision{By: "ann", Reason: "enough"} }
	for reason, c := range map[string]struct {
		outcome v1beta1.DrillOutcome
		do      func(*made)
	}{
		v1beta1.DrillOperator:                     {v1beta1.DrillInterrupted, aborted},
		v1beta1.DrillStopped:                      {v1beta1.DrillInterrupted, func(m *made) { m.stopped = "all of them" }},
		v1beta1.DrillRealFailure:                  {v1beta1.DrillInterrupted, func(m *made) { m.clusters[2].Status.Conditions[0].Status = corev1.ConditionFalse }},
		v1beta1.DrillReadyBelow:                   {v1beta1.DrillFailed, func(m *made) { m.ready = 18 }},
		v1beta1.DrillUnplaced:                     {v1beta1.DrillFailed, func(m *made) { m.unplaced = 1 }},
		v1beta1.DrillUnpredicted:                  {v1beta1.DrillFailed, func(m *made) { m.moved = 23 }},
		v1beta1.DrillControlPlane:                 {v1beta1.DrillInterrupted, func(m *made) { m.slow = [3]time.Duration{1100 * time.Millisecond, 2 * time.Second, 2 * time.Second} }},
		v1beta1.DrillControlPlane + " by leaders": {v1beta1.DrillInterrupted, func(m *made) { m.drill.Status.Leader, m.drill.Status.LeaderChanges, m.leader = "p1", 1, "p2" }},
		v1beta1.DrillBudgetViolated: {v1beta1.DrillFailed, func(m *made) {
			m.budgets, m.ready = []Budget{{Name: "shop/web", MinAvailable: new(intstr.FromString("99%")), Objects: []int{0}}}, 19 // of an isolation ten run on
			m.drill.Spec.Guardrails.MinReadyPercent, m.drill.Spec.Objectives.MinReadyPercent = new(int32(0)), nil
			m.step()
			m.now = m.now.Add(29 * time.Second)
			m.heard, m.lease.Renewed = m.now, m.now
		}},
		v1beta1.DrillDNSBehind: {v1beta1.DrillInterrupted, func(m *made) {
			m.lag = time.Hour
			m.drill.Status.Report.Marks.OutOfDNS = nil
			m.now = m.now.Add(2 * time.Minute)
			m.heard, m.lease.Renewed = m.now, m.now
		}},
	} {
		for _, method := range []v1beta1.DrillMethod{v1beta1.DrillEvacuate, v1beta1.DrillIsolation, v1beta1.DrillBlackhole} {
			t.Run(string(method)+" "+reason, func(t *testing.T) {
				m := newMade(t, method)
				m.drill.Spec.HoldSeconds = new(int32(600))
				m.until("out of DNS", func() bool { r := m.drill.Status.Report; return r != nil && r.Marks.OutOfDNS != nil })
				c.do(m)
				at := m.now
				m.until("the way back", func() bool { return m.drill.Status.Phase != v1beta1.DrillHolding })
				if took := m.now.Sub(at); took > 2*time.Second {
					t.Errorf("noticed after %s", took)
				}
				m.ready, m.budgets = 30, nil
				m.ends(c.outcome, strings.Fields(reason)[0])
			})
		}
	}
}

// A person's change to a cluster of the scope stays.
func TestWhatAPersonDoesStays(t *testing.T) {
	for name, do := range map[string]func(*v1beta1.Cluster){
		"weight": func(c *v1beta1.Cluster) { c.Spec.DNSWeight = new(int32(5)) },
		"taint":  func(c *v1beta1.Cluster) { c.Spec.Taints = append(c.Spec.Taints, drainTaint) },
		"drain": func(c *v1beta1.Cluster) {
			c.Annotations[v1beta1.DrainAnnotation] = (&v1beta1.Drain{DNSWeight: new(int32(70))}).String()
			c.Spec.Taints = append(c.Spec.Taints, drainTaint)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMade(t, v1beta1.DrillShift)
			m.phase(v1beta1.DrillHolding)
			do(m.clusters[0])
			want := *m.clusters[0].Spec.DeepCopy()
			m.phase(v1beta1.DrillFinished)
			if m.drill.Status.Reason != v1beta1.DrillByHand {
				t.Errorf("%s: %s", m.drill.Status.Reason, m.drill.Status.Message)
			}
			is := m.clusters[0]
			if name == "taint" { // the drill set the weight
				want.DNSWeight = new(int32(70))
			}
			if !reflect.DeepEqual(is.Spec, want) {
				t.Errorf("left with %+v, want %+v", is.Spec, want)
			}
			if name == "drain" && is.Annotations[v1beta1.DrainAnnotation] == "" {
				t.Error("the drain of a person is undone")
			}
		})
	}
}

// A drill that is deleted in any phase is undone and released. Acceptance test 11 of drills.
func TestDeletedInEachPhase(t *testing.T) {
	for _, method := range []v1beta1.DrillMethod{v1beta1.DrillEvacuate, v1beta1.DrillIsolation, v1beta1.DrillBlackhole} {
		for _, p := range []v1beta1.DrillPhase{v1beta1.DrillPending, v1beta1.DrillBaseline, v1beta1.DrillInjecting, v1beta1.DrillHolding, v1beta1.DrillRecovering, v1beta1.DrillVerifying, v1beta1.DrillFinished} {
			t.Run(string(method)+" "+string(p), func(t *testing.T) {
				m := newMade(t, method)
				if p == v1beta1.DrillPending {
					m.other = "e"
				}
				m.phase(p)
				at := m.now
				m.drill.DeletionTimestamp = new(metav1.NewTime(m.now))
				m.until("it is let go", func() bool { return m.gone })
				m.asBefore()
				if took := m.now.Sub(at); method.Isolates() && took > 10*time.Second {
					t.Errorf("gone after %s", took)
				}
			})
		}
	}
}

// Leftovers of a drill whose finalizer was removed are found and undone. Acceptance test 12 of drills; scenario
// drill-isolate-ends.
func TestSweepUndoesWhatIsOfNoDrill(t *testing.T) {
	m := newMade(t, v1beta1.DrillEvacuate)
	m.until("the taint", func() bool { return tainted(m.clusters[0]) })
	if changes := Sweep(m.clusters, map[string]bool{"u": true}); len(changes) > 0 {
		t.Errorf("a drill that there is loses %v", changes)
	}
	for _, c := range Sweep(m.clusters, nil) {
		m.clusters[0] = c
	}
	m.asBefore()
}

func TestObjectivesAndWhatIsLeftDecide(t *testing.T) {
	m := newMade(t, v1beta1.DrillShift)
	m.lag = 10 * time.Second
	m.ends(v1beta1.DrillFailed, v1beta1.DrillObjectiveMissed)
	m = newMade(t, v1beta1.DrillShift)
	m.drill.Spec.RecoverySeconds = new(int32(60))
	m.phase(v1beta1.DrillVerifying)
	m.clusters[0].Spec.DNSWeight = new(int32)
	m.phase(v1beta1.DrillFinished)
	if s := m.drill.Status; s.Reason != v1beta1.DrillLeftBehind || len(s.Report.LeftBehind) != 1 {
		t.Errorf("%s: %v", s.Reason, s.Report.LeftBehind)
	}
}

// The last drill of a zone is one of all its clusters and no others. A failed drill keeps the date of the last success,
// and a drill that took nothing out changes nothing.
func TestTheLastDrillIsNoted(t *testing.T) {
	m := newMade(t, v1beta1.DrillShift)
	for i, zone := range []string{"a", "a", "b"} {
		m.clusters[i].Status.Region, m.clusters[i].Status.Zones = "east", []string{zone}
	}
	d := m.drill
	for spec, want := range map[v1beta1.FailoverReadinessSpec][]string{{Zone: "east/a"}: {"a", "b"}, {Zone: "east/b"}: {"c"}, {Region: "east"}: {"a", "b", "c"}, {Region: "west"}: nil} {
		for _, clusters := range [][]string{{"a", "b"}, {"c"}, {"a", "b", "c"}, {"a"}} {
			d.Status.Clusters = clusters
			if got := Domain(spec, m.clusters, d); got != slices.Equal(clusters, want) {
				t.Errorf("%v of %v: %t", clusters, spec, got)
			}
		}
	}
	if got := Last(d, nil); got != nil {
		t.Errorf("one that took nothing out is noted: %v", got)
	}
	d.Status = v1beta1.FailoverDrillStatus{Phase: v1beta1.DrillFinished, PhaseSince: new(metav1.NewMicroTime(begin)), Outcome: v1beta1.DrillSucceeded, Report: &v1beta1.DrillReport{}}
	first := Last(d, nil)
	d.Status.Outcome, d.Status.PhaseSince = v1beta1.DrillFailed, new(metav1.NewMicroTime(begin.Add(time.Hour)))
	if got := Last(d, first); got.Outcome != "Failed" || !got.FinishedAt.Time.Equal(begin.Add(time.Hour)) || !got.SucceededAt.Time.Equal(begin) {
		t.Errorf("after one that failed: %+v", got)
	}
}
