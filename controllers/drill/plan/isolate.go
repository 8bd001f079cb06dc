package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

const (
	// soon is the period of passes while an isolation begins or ends.
	soon = 200 * time.Millisecond
	// renewEvery is the period of the Lease's renewal; an isolation lasts six times as long without one.
	renewEvery = 5 * time.Second
	// rejoining is how long clusters may take to be ready after the isolation.
	rejoining = 15 * time.Second
	// agentsHear is how long node agents take to let traffic in again, agentsSilent after how long nobody waits for them.
	agentsHear, agentsSilent = time.Second, 3 * time.Second
)

// mayIsolate returns the first failed check of those for isolations only.
func (d *drill) mayIsolate() (reason, message string) {
	if d.Review.SuspendedReason != "" && !slices.Contains(d.Spec.Allow, v1beta1.DrillNotHeld) {
		return v1beta1.DrillNotHeld, "nothing would be failed over: " + d.Review.SuspendedReason
	}
	if reason, message := d.mayBlackhole(); reason != "" {
		return reason, message
	}
	if slices.Contains(d.Spec.Allow, v1beta1.DrillDoubleRunning) {
		return "", ""
	}
	for _, m := range d.Review.Moves {
		leaves := slices.ContainsFunc(m.Clusters, func(c v1beta1.ReplicaChange) bool {
			return slices.Contains(d.Review.Clusters, c.Cluster) && c.After < c.Before
		})
		if leaves && (m.Kind == "StatefulSet" || m.Kind == "Job") {
			return v1beta1.DrillDoubleRunning, fmt.Sprintf("%s %s/%s would run twice, in the scope and elsewhere", m.Kind, m.Namespace, m.Name)
		}
	}
	return "", ""
}

// mayBlackhole returns what prevents the node agents of the scope from dropping traffic from outside.
func (d *drill) mayBlackhole() (reason, message string) {
	if d.Spec.Method != v1beta1.DrillBlackhole {
		return "", ""
	}
	for _, name := range d.Review.Clusters {
		switch has, asked := d.NodeAgents[name]; {
		case !asked:
			return v1beta1.DrillNodeAgents, fmt.Sprintf("cluster %s: it is not known yet on which nodes an agent can blackhole", name)
		case has.Problem != "":
			return v1beta1.DrillNodeAgents, fmt.Sprintf("cluster %s: %s", name, has.Problem)
		case has.Nodes == 0 || has.Able < has.Nodes:
			return v1beta1.DrillNodeAgents, fmt.Sprintf("cluster %s: on %d of %d ready nodes is an agent ready that may blackhole; on each must be one: kubectl federation join --with-nodeagent --allow-blackhole",
				name, has.Able, has.Nodes)
		}
	}
	return "", ""
}

// isolate cuts the federation off: first it marks its clusters, then it writes the Lease. It reports whether all of
// them are cut off.
func (d *drill) isolate() (inForce bool) {
	d.step.LookAgain = soon
	for _, c := range d.scopeClusters() {
		if c.Drill() == nil {
			until := d.Now.Add(time.Duration(d.Spec.Hold()) * time.Second).UTC().Format(time.RFC3339)
			d.markCluster(c, v1beta1.ReasonIsolated, fmt.Sprintf("drill %s has cut the federation off from it, until %s", d.Name, until))
		}
	}
	if len(d.step.Marks) > 0 {
		return false
	}
	d.step.Isolate = d.renewalDue()
	return d.inForce()
}

func (d *drill) markCluster(c *v1beta1.Cluster, reason, message string) {
	at := metav1.NewTime(d.Now.UTC().Truncate(time.Second))
	d.step.Marks = append(d.step.Marks, Mark{Cluster: c, Condition: &v1beta1.ClusterCondition{
		Type: v1beta1.ClusterDrill, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: at, LastProbeTime: at,
	}})
}

// inForce reports whether this process is cut off from the whole scope by this drill, and with Blackhole, clients too.
func (d *drill) inForce() bool { return d.notInForce() == "" }

// notInForce returns what is not cut off, or not any more; "" if all is.
func (d *drill) notInForce() string {
	if d.Lease.Drill != d.uid {
		return "the isolation was not renewed in time"
	}
	for _, name := range d.step.Status.Clusters {
		switch {
		case !slices.Contains(d.Isolated, name):
			return fmt.Sprintf("cluster %s: the isolation was not renewed in time", name)
		case d.Spec.Method == v1beta1.DrillBlackhole && !slices.Contains(d.Blackholed, name):
			return fmt.Sprintf("cluster %s: the Lease of its node agents could not be renewed in time", name)
		}
	}
	return ""
}

// renewalDue reports whether it is time to renew the Lease.
func (d *drill) renewalDue() bool {
	age := d.Now.Sub(d.Lease.Renewed)
	return d.Lease.Drill != d.uid || age >= renewEvery || age < 0
}

// recordDetection records when the scope is judged lost, and failed over.
func (d *drill) recordDetection() {
	marks := &d.step.Status.Report.Marks
	all := func(is func(*v1beta1.Cluster) bool) bool {
		return !slices.ContainsFunc(d.scopeClusters(), func(c *v1beta1.Cluster) bool { return !is(c) })
	}
	if marks.Detected == nil && all(func(c *v1beta1.Cluster) bool { return !c.IsReady() }) {
		marks.Detected = d.nowMicro()
	}
	if marks.Out == nil && all(isOut) {
		marks.Out = d.nowMicro()
	}
}

func isOut(c *v1beta1.Cluster) bool { return c.Phase() == v1beta1.PhaseFailedOver }

// missingElsewhere returns how many replicas outside the scope are not ready, of those that objects have there now.
// Ready replicas in the scope cannot be seen.
func (d *drill) missingElsewhere() (n int64) {
	for i := range d.Objects {
		n += max(0, d.Objects[i].replicasOutside(d.step.Status.Clusters)-d.Objects[i].Ready)
	}
	return n
}

// lostElsewhere returns how many replicas outside the scope are not ready, of those that were there before and are
// still requested. Replicas placed there in place of the scope are not ready yet.
func (d *drill) lostElsewhere() int64 {
	var elsewhere, ready int64
	for i := range d.Objects {
		elsewhere += d.Objects[i].replicasOutside(d.step.Status.Clusters)
		ready += d.Objects[i].Ready
	}
	return max(0, min(d.step.Status.Report.Workloads.Elsewhere, elsewhere)-ready)
}

// isolatedByHand returns what somebody changed of the isolated clusters. The drill itself does not change their specs.
func (d *drill) isolatedByHand() (reason, message string) {
	scope := d.scopeClusters()
	if len(scope) < len(d.Status.Clusters) {
		return v1beta1.DrillByHand, "a cluster of the scope was removed"
	}
	for _, c := range scope {
		i := slices.IndexFunc(d.step.Status.Undo, func(u v1beta1.DrillUndo) bool { return u.Cluster == c.Name })
		switch {
		case c.Annotations[v1beta1.DrainAnnotation] != "" || c.OutOfService() != "":
			return v1beta1.DrillByHand, fmt.Sprintf("cluster %s: somebody took it out of service", c.Name)
		case i >= 0 && weight(d.step.Status.Undo[i].DNSWeight) != c.DNSWeight():
			return v1beta1.DrillByHand, fmt.Sprintf("cluster %s: somebody set spec.dnsWeight to %d", c.Name, c.DNSWeight())
		}
	}
	return "", ""
}

func weight(w *int32) int32 {
	return (&v1beta1.Cluster{Spec: v1beta1.ClusterSpec{DNSWeight: w}}).DNSWeight()
}

// endIsolation ends the isolation and waits until the clusters are back: by the failback steps of each, or at once if the
// drill ends early.
func (d *drill) endIsolation() {
	s, back := &d.step.Status, time.Duration(0)
	if d.Status.Phase == v1beta1.DrillRecovering {
		back = d.phaseDuration()
	}
	if s.Reason == "" {
		s.Reason, s.Message = d.endsOnTheWay(back)
	}
	var marked []*v1beta1.Cluster
	for _, c := range d.scopeClusters() {
		if is := c.Drill(); is != nil {
			marked = append(marked, c)
			if s.Reason != "" && is.Reason != v1beta1.ReasonIsolationAborted {
				d.markCluster(c, v1beta1.ReasonIsolationAborted, fmt.Sprintf("drill %s has ended early: %s", d.Name, s.Reason))
			}
		}
	}
	held := d.Lease.Drill == d.uid
	d.step.LetIn = held && d.Lease.Blackhole
	d.step.Lift = held && !d.Lease.Blackhole && d.isLetIn()
	if cut := slices.ContainsFunc(s.Clusters, func(name string) bool { return slices.Contains(d.Isolated, name) }); cut || held || len(d.step.Marks) > 0 {
		d.step.LookAgain = soon
		return
	}
	switch serve, early := d.recordReturn(), s.Reason != ""; {
	case serve && (s.Report.Marks.BackInDNS != nil || back > behind):
	case early && back >= rejoining || back >= time.Duration(d.Spec.Recovery())*time.Second:
	default:
		return
	}
	for _, c := range marked {
		d.step.Marks = append(d.step.Marks, Mark{Cluster: c})
	}
	if len(marked) == 0 {
		d.enterPhase(v1beta1.DrillVerifying)
	}
}

// isLetIn reports whether clients reach the scope again, as far as is known: its addresses are not to be in DNS before.
func (d *drill) isLetIn() bool {
	since := d.Now.Sub(d.Lease.Renewed)
	dropped := slices.ContainsFunc(d.step.Status.Clusters, func(name string) bool { return slices.Contains(d.Blackholed, name) })
	return d.Spec.Method != v1beta1.DrillBlackhole || since >= agentsHear && !dropped || since >= agentsSilent || since < 0
}

// endsOnTheWay returns why an isolation that is over is not undone step by step. back is how long it has been over.
func (d *drill) endsOnTheWay(back time.Duration) (reason, message string) {
	if reason, message = d.endRequest(); reason != "" {
		return reason, message
	}
	if reason, message = d.isolatedByHand(); reason != "" {
		return reason, message
	}
	for _, c := range d.scopeClusters() {
		if back >= rejoining && !c.IsReady() {
			return v1beta1.DrillRealFailure, fmt.Sprintf("cluster %s: not ready %s after the isolation", c.Name, rejoining)
		}
	}
	return "", ""
}

// recordReturn records how far the clusters have come back, and reports whether all of them serve.
func (d *drill) recordReturn() bool {
	marks, least := &d.step.Status.Report.Marks, int32(100)
	for _, c := range d.scopeClusters() {
		switch {
		case !c.IsReady() || slices.Contains(d.Blackholed, c.Name):
			return false
		case c.Phase() == v1beta1.PhaseFailingBack:
			least = min(least, c.Status.Failover.Percent)
		case c.Phase() != v1beta1.PhaseServing:
			least = 0
		}
	}
	if marks.BackReady = cmp.Or(marks.BackReady, d.nowMicro()); d.answersAgain() {
		marks.BackInDNS = cmp.Or(marks.BackInDNS, d.nowMicro())
	} else {
		d.step.LookAgain = soon
	}
	if step := strconv.Itoa(int(least)); least > 0 && marks.Out != nil {
		if _, noted := marks.Failback[step]; !noted {
			if marks.Failback == nil {
				marks.Failback = map[string]metav1.MicroTime{}
			}
			marks.Failback[step] = *d.nowMicro()
		}
	}
	return least == 100
}

// SweepIsolation returns what to do about isolations by drills that are deleted or over: the conditions to remove, and
// whether to delete the Lease.
func SweepIsolation(clusters []*v1beta1.Cluster, drills []*v1beta1.FailoverDrill, lease Lease) (marks []Mark, lift bool) {
	isolates := func(is func(*v1beta1.FailoverDrill) bool) bool {
		return slices.ContainsFunc(drills, func(d *v1beta1.FailoverDrill) bool {
			return d.UnderWay() && d.Spec.Method.Isolates() && is(d)
		})
	}
	for _, c := range clusters {
		if c.Drill() != nil && !isolates(func(d *v1beta1.FailoverDrill) bool { return slices.Contains(d.Status.Clusters, c.Name) }) {
			marks = append(marks, Mark{Cluster: c})
		}
	}
	return marks, lease.Drill != "" && !isolates(func(d *v1beta1.FailoverDrill) bool { return string(d.UID) == lease.Drill })
}
