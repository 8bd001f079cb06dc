package cluster

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
)

// drainStrategy handles clusters/NAME/drain, by which somebody cordons, drains and brings back a cluster who may not change it otherwise: of what is
// written it takes spec.drain, the two taints of cordon and drain, and at which step a drain is. What the record of a drain restores stays.
type drainStrategy struct{ strategy }

// PrepareForUpdate keeps all else as it is.
func (s drainStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	c, was := obj.(*v1beta1.Cluster), old.(*v1beta1.Cluster)
	asked := c.DeepCopy()
	was.DeepCopyInto(c)
	c.Spec.Drain = asked.Spec.Drain
	for _, t := range []corev1.Taint{{Key: v1beta1.TaintDrain, Effect: corev1.TaintEffectNoExecute}, {Key: v1beta1.TaintUnschedulable, Effect: corev1.TaintEffectNoSchedule}} {
		same := func(is corev1.Taint) bool { return is.MatchTaint(&t) }
		switch has, wants := slices.ContainsFunc(c.Spec.Taints, same), slices.ContainsFunc(asked.Spec.Taints, same); {
		case wants && !has:
			c.Spec.Taints = append(c.Spec.Taints, t)
		case has && !wants:
			c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, same)
		}
	}
	setDrainStep(c, asked.Annotations[v1beta1.DrainAnnotation])
	s.strategy.PrepareForUpdate(ctx, c, was)
}

// setDrainStep sets the step of a drain's record to that of another one; a record that nobody can read may be removed.
func setDrainStep(c *v1beta1.Cluster, asked string) {
	is, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation])
	if err != nil && asked == "" {
		delete(c.Annotations, v1beta1.DrainAnnotation)
	}
	to, bad := v1beta1.ParseDrain(asked)
	if err != nil || bad != nil || is == nil || to == nil || !slices.Contains([]string{"", v1beta1.DrainStepDNS, v1beta1.DrainStepMove, v1beta1.DrainStepReturn}, to.Step) {
		return
	}
	is.Step, is.Empty = to.Step, to.Empty && is.Empty
	if to.Drill == "" {
		is.Drill = ""
	}
	c.Annotations[v1beta1.DrainAnnotation] = is.String()
}
