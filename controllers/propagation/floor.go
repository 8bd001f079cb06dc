package propagation

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

// floorStays is how long an autoscaler keeps its floor after the last replica has left: until the load has come.
const floorStays = time.Minute

// floor is what a copy of an autoscaler is to have as its least number, while replicas leave other clusters; 0: its own.
func (c *Controller) floor(ctx context.Context, m *member, s plan.Source, t plan.Target, k key) (int64, error) {
	if k.kind.Resource != autoscalers || s.Object == nil || !s.Goes(t) {
		return 0, nil
	}
	of, w := c.workloadOf(s.Object)
	if w.Object == nil || w.Share(m.Name) == 0 {
		return 0, nil
	}
	leaving, err := c.leaving(ctx, of, w)
	if err != nil {
		return 0, err
	}
	most, _, _ := unstructured.NestedInt64(s.Object.Object, "spec", "maxReplicas")
	floor := m.keepsFloor(k, w.Floor(m.Name, leaving, most))
	if floor > 0 {
		m.queue.AddAfter(k, leavesEvery)
	}
	return floor, nil
}

// keepsFloor notes a floor, and returns it or the one that is to stay for a while.
func (m *member) keepsFloor(k key, floor int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, now := m.state(k), time.Now()
	if floor > 0 {
		s.floor, s.floorUntil = max(floor, s.floor), now.Add(floorStays)
	} else if now.After(s.floorUntil) {
		s.floor = 0
	}
	return s.floor
}

// workloadOf returns what an autoscaler scales, as far as its metadata says.
func (c *Controller) workloadOf(autoscaler *unstructured.Unstructured) (key, plan.Source) {
	kind, _, _ := unstructured.NestedString(autoscaler.Object, "spec", "scaleTargetRef", "kind")
	name, _, _ := unstructured.NestedString(autoscaler.Object, "spec", "scaleTargetRef", "name")
	for i := range c.Kinds {
		k := key{&c.Kinds[i], types.NamespacedName{Namespace: autoscaler.GetNamespace(), Name: name}}
		if !k.kind.Paced || k.kind.Kind != kind {
			continue
		}
		if obj := c.held(k); obj != nil && held.About(obj).GetDeletionTimestamp() == nil {
			u := held.Object(obj)
			return k, plan.Source{Kind: k.kind, Object: u, Placement: plan.Read(u)}
		}
	}
	return key{}, plan.Source{}
}

// leaving is how many replicas of a workload are in clusters that are to have none.
func (c *Controller) leaving(ctx context.Context, k key, w plan.Source) (n int64, err error) {
	c.mu.RLock()
	var from []*member
	for name, m := range c.members {
		if w.Share(name) == 0 {
			from = append(from, m)
		}
	}
	c.mu.RUnlock()
	for _, m := range from {
		u, err := c.copyOfAny(ctx, m, k)
		if err != nil {
			return 0, err
		}
		n += plan.Applied(w, u)
	}
	return n, nil
}

// wakeFloors has the autoscalers looked at whose workloads leave a member that has just been taken up: while it was away, nothing was known to leave it.
func (c *Controller) wakeFloors(ctx context.Context, m *member) {
	kind := c.kindOf(autoscalers)
	if kind == nil {
		return
	}
	for _, k := range c.federatedOf(kind) {
		autoscaler := c.lookup(k)
		if autoscaler == nil {
			continue
		}
		of, w := c.workloadOf(autoscaler)
		if w.Object == nil || w.Share(m.Name) > 0 {
			continue
		}
		if u, err := c.copyOfAny(ctx, m, of); err != nil || plan.Applied(w, u) > 0 {
			c.changed(k)
		}
	}
}

// wakeAutoscalersOf has the autoscalers of a workload looked at, whose replicas may be about to leave a cluster.
func (c *Controller) wakeAutoscalersOf(k key) {
	if k.kind.Paced {
		for _, a := range c.autoscalersOf(k) {
			if of := keyOf(a.Kind, a.Object); c.owns(of) {
				c.changed(of)
			}
		}
	}
}
