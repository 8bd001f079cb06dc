package plan

import (
	"fmt"
	"slices"
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

// isolate cuts the federation off: first it marks its clusters, then it writes the Lease. It reports whether all of
// them are cut off.
func (d *drill) isolate() (inForce bool) {
	d.step.LookAgain = soon
	for _, c := range d.scope() {
		if c.Drill() == nil {
			until := d.Now.Add(time.Duration(d.Spec.Hold()) * time.Second).UTC().Format(time.RFC3339)
			d.markCluster(c, v1beta1.ReasonIsolated, fmt.Sprintf("drill %s has cut the federation off from it, until %s", d.Name, until))
		}
	}
	if len(d.step.Marks) > 0 {
		return false
	}
	d.step.Isolate = d.renewalDue()
	return d.notInForce() == ""
}

func (d *drill) markCluster(c *v1beta1.Cluster, reason, message string) {
	at := metav1.NewTime(d.Now.UTC().Truncate(time.Second))
	d.step.Marks = append(d.step.Marks, Mark{Cluster: c, Condition: &v1beta1.ClusterCondition{
		Type: v1beta1.ClusterDrill, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: at, LastProbeTime: at,
	}})
}

// notInForce returns what of the scope this process, and with Blackhole clients too, is not cut off from by this drill, or not any more; "" if from all.
func (r *run) notInForce() string {
	if r.Lease.Drill != r.uid() {
		return "the isolation was not renewed in time"
	}
	for _, name := range r.next.Clusters {
		switch {
		case !slices.Contains(r.Isolated, name):
			return fmt.Sprintf("cluster %s: the isolation was not renewed in time", name)
		case r.Spec.Method == v1beta1.DrillBlackhole && !slices.Contains(r.Blackholed, name):
			return fmt.Sprintf("cluster %s: the Lease of its node agents could not be renewed in time", name)
		}
	}
	return ""
}

// renewalDue reports whether it is time to renew the Lease.
func (r *run) renewalDue() bool {
	age := r.Now.Sub(r.Lease.Renewed)
	return r.Lease.Drill != r.uid() || age >= renewEvery || age < 0
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
		s.Reason, s.Message = d.guard().endsOnTheWay(back)
	}
	var marked []*v1beta1.Cluster
	for _, c := range d.scope() {
		if is := c.Drill(); is != nil {
			marked = append(marked, c)
			if s.Reason != "" && is.Reason != v1beta1.ReasonIsolationAborted {
				d.markCluster(c, v1beta1.ReasonIsolationAborted, fmt.Sprintf("drill %s has ended early: %s", d.Name, s.Reason))
			}
		}
	}
	held := d.Lease.Drill == d.uid()
	d.step.LetIn = held && d.Lease.Blackhole
	d.step.Lift = held && !d.Lease.Blackhole && d.isLetIn()
	if cut := slices.ContainsFunc(s.Clusters, func(name string) bool { return slices.Contains(d.Isolated, name) }); cut || held || len(d.step.Marks) > 0 {
		d.step.LookAgain = soon
		return
	}
	serve, waitsForDNS := d.meter().recordReturn()
	if waitsForDNS {
		d.step.LookAgain = soon
	}
	switch early := s.Reason != ""; {
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
func (r *run) isLetIn() bool {
	since := r.Now.Sub(r.Lease.Renewed)
	dropped := slices.ContainsFunc(r.next.Clusters, func(name string) bool { return slices.Contains(r.Blackholed, name) })
	return r.Spec.Method != v1beta1.DrillBlackhole || since >= agentsHear && !dropped || since >= agentsSilent || since < 0
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
