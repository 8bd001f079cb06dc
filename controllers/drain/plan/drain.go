package plan

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Taint is on a cluster that is drained, and Cordon on one on which nothing new is placed.
var (
	Taint  = corev1.Taint{Key: v1beta1.TaintDrain, Effect: corev1.TaintEffectNoExecute}
	Cordon = corev1.Taint{Key: v1beta1.TaintUnschedulable, Effect: corev1.TaintEffectNoSchedule}
)

// Request asks for a drain. If somebody has taken off a taint of an earlier one, it is added again.
func Request(c *v1beta1.Cluster, how v1beta1.ClusterDrain) {
	c.Spec.Drain = &how
	d, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation])
	if err != nil || d == nil || d.Step != v1beta1.DrainStepMove {
		return
	}
	if d.Empty && (!HasTaint(c, Taint) || !HasTaint(c, Cordon)) {
		d.Empty = false // it is verified, and cordoned, again
		record(c, d)
	}
	AddTaint(c, Taint)
}

// Cancel asks for the undoing of a drain, also of one that a drill, or somebody by hand, has begun.
func Cancel(c *v1beta1.Cluster) {
	c.Spec.Drain = nil
	d, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation])
	switch {
	case err != nil:
		delete(c.Annotations, v1beta1.DrainAnnotation) // nobody knows what was before
		DropTaint(c, Taint)
	case d == nil:
		DropTaint(c, Taint)
	case d.Step == "":
		d.Step, d.Drill = v1beta1.DrainStepMove, ""
		record(c, d)
	}
}

// Begin sets the weight to 0 and records what it was. A cluster that is drained already, by a drill for example, keeps its
// record; a weight that somebody has set meanwhile is what the undoing restores.
func Begin(c *v1beta1.Cluster, now time.Time) {
	d, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation])
	if d == nil || err != nil {
		d = &v1beta1.Drain{DNSWeight: c.Spec.DNSWeight, Cordoned: HasTaint(c, Cordon)}
	}
	if c.DNSWeight() != 0 {
		d.DNSWeight = c.Spec.DNSWeight
	}
	if c.DNSWeight() != 0 || d.Since.IsZero() {
		d.Since = metav1.NewTime(now.UTC().Truncate(time.Second))
	}
	d.Step, d.Drill, d.Empty = v1beta1.DrainStepDNS, "", false
	c.Spec.DNSWeight = new(int32)
	record(c, d)
}

// Evict adds Taint: what does not tolerate it is placed elsewhere.
func Evict(c *v1beta1.Cluster) {
	AddTaint(c, Taint)
	change(c, func(d *v1beta1.Drain) { d.Step = v1beta1.DrainStepMove })
}

// Finish cordons an empty cluster, and records that it is empty. The cordon says since when: a cluster that was lost before
// was not drained before it was lost (ADR 70).
func Finish(c *v1beta1.Cluster, now time.Time) {
	cordon := Cordon
	cordon.TimeAdded = new(metav1.NewTime(now.UTC().Truncate(time.Second)))
	AddTaint(c, cordon)
	change(c, func(d *v1beta1.Drain) { d.Empty = true })
}

// Untaint removes a drain's taints.
func Untaint(c *v1beta1.Cluster) {
	DropTaint(c, Taint)
	change(c, func(d *v1beta1.Drain) {
		if !d.Cordoned {
			DropTaint(c, Cordon)
		}
		d.Step, d.Empty = v1beta1.DrainStepReturn, false
	})
}

// End restores the weight in DNS, unless somebody has changed it meanwhile.
func End(c *v1beta1.Cluster) {
	d, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation])
	if err == nil && d != nil && c.DNSWeight() == 0 {
		c.Spec.DNSWeight = d.DNSWeight
	}
	delete(c.Annotations, v1beta1.DrainAnnotation)
}

// change changes the record of a drain, if there is one that can be read.
func change(c *v1beta1.Cluster, how func(*v1beta1.Drain)) {
	if d, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation]); d != nil && err == nil {
		how(d)
		record(c, d)
	}
}

func record(c *v1beta1.Cluster, d *v1beta1.Drain) {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[v1beta1.DrainAnnotation] = d.String()
}

// HasTaint reports whether a cluster bears a taint, by its key and effect.
func HasTaint(c *v1beta1.Cluster, taint corev1.Taint) bool {
	return slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
}

// AddTaint has a cluster bear a taint.
func AddTaint(c *v1beta1.Cluster, taint corev1.Taint) {
	if !HasTaint(c, taint) {
		c.Spec.Taints = append(c.Spec.Taints, taint)
	}
}

// DropTaint takes a taint off a cluster.
func DropTaint(c *v1beta1.Cluster, taint corev1.Taint) {
	c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
}
