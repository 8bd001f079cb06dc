package placement

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/supervisor"
	"federation/scheduler"
)

// setReferrers sets where the referrers of an object go.
func (c *Controller) setReferrers(i *item) {
	var from []scheduler.Reach
	for k := range c.state.referred[reference{i.Namespace, v1beta1.Reference{Kind: i.Kind, Name: i.Name}}] {
		r := c.state.refers[k]
		from = append(from, r.reach)
		i.Followed = append(i.Followed, r.kind+" "+k.Name)
	}
	if from == nil {
		return
	}
	slices.Sort(i.Followed)
	i.Follow = scheduler.Follow(from)
}

// takeAlong enqueues what an object refers to and takes along, if that or its clusters changed.
func (c *Controller) takeAlong(i *item, d *scheduler.Decision, w *scheduler.World) {
	next := referrer{kind: i.Kind, reach: w.Reach(&i.Object, d)}
	if !d.Wait {
		next.to = w.References(&i.Object)
	}
	if was, known := c.state.refers[i.key]; known && was.equal(next) {
		return
	}
	c.enqueueReferenced(i.key.Namespace, c.state.refersTo(i.key, next))
}

// recordReferences records all references and the referrers' placements before anything is decided: otherwise the first objects
// would seem to have no referrers.
func (c *Controller) recordReferences(ctx context.Context) {
	w := c.snapshot(time.Now())
	for resource, kind := range c.kinds.all() {
		if !v1beta1.Refers(kind.GroupKind()) {
			continue
		}
		for _, name := range namesIn(c.Informers(resource).GetIndexer(), "") {
			_ = supervisor.Protect(ctx, "placement", func() error { // it is requeued
				if i, ok := c.readItem(key{resource, name}); ok {
					c.takeAlong(&i, scheduler.Standing(&i.Object), w)
				}
				return nil
			})
		}
	}
}

// referable has the resources of kinds that others refer to.
var referable = map[string]schema.GroupVersionResource{
	"ConfigMap": corev1.SchemeGroupVersion.WithResource("configmaps"), "Secret": corev1.SchemeGroupVersion.WithResource("secrets"),
	"ServiceAccount": corev1.SchemeGroupVersion.WithResource("serviceaccounts"),
}

func (c *Controller) enqueueReferenced(namespace string, references []v1beta1.Reference) {
	for _, r := range references {
		c.decide.Add(key{referable[r.Kind], types.NamespacedName{Namespace: namespace, Name: r.Name}})
	}
}
