package plan

import (
	"fmt"
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

// Step is the next step.
type Step string

// The steps of a drain, and those that undo it.
const (
	// StepWeight: Begin.
	StepWeight Step = "weight"
	// StepPublish: wait until all DNS providers have the weight.
	StepPublish Step = "publish"
	// StepTTL: wait until no resolver has the cluster's addresses.
	StepTTL Step = "ttl"
	// StepTaint: add Taint.
	StepTaint Step = "taint"
	// StepMove: wait until the cluster is empty, then Finish.
	StepMove Step = "move"

	// StepUntaint: Untaint.
	StepUntaint Step = "untaint"
	// StepReturn: wait until all that is placed is ready, then End.
	StepReturn Step = "return"
	// StepDone: nothing.
	StepDone Step = "done"
)

// propagationOfDNS is how long DNS servers may take to have the weight, in addition to the TTL.
const propagationOfDNS = 2 * time.Second

// Provider is how a DNS provider stands.
type Provider struct {
	// Published: it has all records, since then.
	Published bool
	Since     time.Time
}

// Next returns the first step of a drain that the Cluster does not show as done, and for StepTTL the remaining
// wait: from when the last provider had the weight. The last step, to see the cluster empty and cordon it, is always
// taken.
func Next(c *v1beta1.Cluster, now time.Time, ttl time.Duration, providers []Provider) (Step, time.Duration, error) {
	d, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation])
	switch {
	case err != nil:
		return "", 0, fmt.Errorf("cluster %s: %w", c.Name, err)
	case d == nil, c.DNSWeight() != 0:
		return StepWeight, 0, nil
	case HasTaint(c, Taint):
		return StepMove, 0, nil
	case ttl == 0:
		return StepTaint, 0, nil
	}
	from := d.Since.Time
	for _, p := range providers {
		if !p.Published {
			return StepPublish, 0, nil
		}
		if p.Since.After(from) {
			from = p.Since
		}
	}
	if left := from.Add(ttl + propagationOfDNS).Sub(now); left > 0 {
		return StepTTL, left, nil
	}
	return StepTaint, 0, nil
}

// NextBack returns the first step of an undrain that the Cluster does not show to be done.
func NextBack(c *v1beta1.Cluster) Step {
	after := c.DeepCopy()
	Untaint(after)
	switch {
	case len(after.Spec.Taints) != len(c.Spec.Taints):
		return StepUntaint
	case c.Annotations[v1beta1.DrainAnnotation] != "":
		return StepReturn
	}
	return StepDone
}

// Begin records the weight, and sets it to 0. A drain that continues keeps the record.
func Begin(c *v1beta1.Cluster, now time.Time) {
	d, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation])
	if d == nil || err != nil {
		d = &v1beta1.Drain{DNSWeight: c.Spec.DNSWeight, Cordoned: HasTaint(c, Cordon)}
	}
	d.Drill = "" // a manual drain takes the cluster over from a drill
	d.Since, d.Empty = metav1.NewTime(now.UTC().Truncate(time.Second)), false
	c.Spec.DNSWeight = new(int32)
	note(c, d)
}

// Finish cordons an empty cluster, and records that it is empty.
func Finish(c *v1beta1.Cluster) {
	AddTaint(c, Cordon)
	if d, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation]); d != nil && err == nil {
		d.Empty = true
		note(c, d)
	}
}

func note(c *v1beta1.Cluster, d *v1beta1.Drain) {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[v1beta1.DrainAnnotation] = d.String()
}

// Untaint removes drain's taints.
func Untaint(c *v1beta1.Cluster) {
	DropTaint(c, Taint)
	if d, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation]); err == nil && d != nil && !d.Cordoned {
		DropTaint(c, Cordon)
	}
}

// End restores the weight in DNS, unless somebody has changed it meanwhile.
func End(c *v1beta1.Cluster) {
	d, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation])
	if err == nil && d != nil && c.DNSWeight() == 0 {
		c.Spec.DNSWeight = d.DNSWeight
	}
	delete(c.Annotations, v1beta1.DrainAnnotation)
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
