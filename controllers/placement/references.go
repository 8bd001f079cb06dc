package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/placement/plan"
)

// follow tells an object where the workloads go that refer to it.
func (c *Controller) follow(i *item) {
	var of []*v1beta1.Placement
	for k := range c.state.referred[reference{i.Namespace, v1beta1.Reference{Kind: i.Kind, Name: i.Name}}] {
		from := c.state.refers[k]
		of = append(of, from.placement)
		i.Followed = append(i.Followed, from.kind+" "+k.Name)
	}
	if of == nil {
		return
	}
	slices.Sort(i.Followed)
	i.Follow = plan.Follow(of)
}

// takeAlong wakes what a workload refers to, if its policy takes that along.
func (c *Controller) takeAlong(i *item, d *plan.Decision, w *plan.World) {
	next := referrer{kind: i.Kind, placement: &d.Placement}
	if p := w.Policy(&i.Object); p != nil && p.Spec.PropagateReferences && !d.None && !d.Wait {
		next.to = i.References()
	}
	if was, known := c.state.refers[i.key]; known && !d.Changed && slices.Equal(was.to, next.to) {
		return
	}
	c.wake(i.key.Namespace, c.state.refersTo(i.key, next))
}

// referable are the resources of what workloads refer to.
var referable = map[string]schema.GroupVersionResource{
	"ConfigMap": corev1.SchemeGroupVersion.WithResource("configmaps"), "Secret": corev1.SchemeGroupVersion.WithResource("secrets"),
	"ServiceAccount": corev1.SchemeGroupVersion.WithResource("serviceaccounts"),
}

func (c *Controller) wake(namespace string, references []v1beta1.Reference) {
	for _, r := range references {
		c.decide.Add(key{referable[r.Kind], types.NamespacedName{Namespace: namespace, Name: r.Name}})
	}
}
