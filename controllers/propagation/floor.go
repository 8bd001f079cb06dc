package propagation

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/controllers/propagation/plan"
)

// autoscalerFloor returns the minimum that a copy of an autoscaler should have while replicas leave other clusters; 0: its own.
func (s *snapshots) autoscalerFloor(ctx context.Context, m *member, of plan.Source, t plan.Target, k key) (int64, error) {
	if k.Kind.Resource != autoscalers || of.Object == nil || !of.Goes(t) {
		return 0, nil
	}
	target, w := s.workloadOf(of.Object)
	if w.Object == nil || w.Share(m.Name) == 0 {
		return 0, nil
	}
	leaving, err := s.leavingReplicas(ctx, target, w)
	if err != nil {
		return 0, err
	}
	most, _, _ := unstructured.NestedInt64(of.Object.Object, "spec", "maxReplicas")
	floor := m.KeepFloor(target, w.Floor(m.Name, leaving, most), time.Now())
	if floor > 0 {
		m.queue.AddAfter(k, leavesEvery)
	}
	return floor, nil
}

// leavingReplicas returns how many replicas of a workload are in clusters that should have none.
func (s *snapshots) leavingReplicas(ctx context.Context, k key, w plan.Source) (n int64, err error) {
	for _, m := range s.all() {
		if w.Share(m.Name) > 0 {
			continue
		}
		u, err := s.copyOfAny(ctx, m, k)
		if err != nil {
			return 0, err
		}
		n += plan.Applied(w, u)
	}
	return n, nil
}

// wakeFloors enqueues the autoscalers whose workloads leave a newly engaged member: while it was away, that was not
// visible.
func (c *Controller) wakeFloors(ctx context.Context, m *member) {
	kind := c.kindOf(autoscalers)
	if kind == nil {
		return
	}
	for _, k := range c.objectsOf(kind) {
		autoscaler := c.object(k)
		if autoscaler == nil {
			continue
		}
		of, w := c.workloadOf(autoscaler)
		if w.Object == nil || w.Share(m.Name) > 0 {
			continue
		}
		if u, err := c.snapshots.copyOfAny(ctx, m, of); err != nil || plan.Applied(w, u) > 0 {
			c.enqueueEverywhere(k)
		}
	}
}
