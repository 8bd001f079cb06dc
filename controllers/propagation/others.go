package propagation

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

// Objects depend on copies that may be another process's to make: their namespace, their autoscaler. Whether a member has such a copy its
// informer says. That there will be none, since the member refuses it or has an object of that name, only the other process
// knows. So it gets some time, and then the member is asked.

// othersTime is how long another process has to make a copy that our objects wait for.
const othersTime = 5 * time.Second

// OfAllShards reports whether copies of a resource are to be in the informers of a Member whoever makes them, since copies of
// other objects depend on them.
func OfAllShards(r schema.GroupVersionResource) bool { return r == namespaces || r == autoscalers }

// awaitedOfOthers returns the federated objects of other processes that ours may depend on.
func (c *Controller) awaitedOfOthers() (keys []key) {
	for i := range c.Kinds {
		k := &c.Kinds[i]
		if !OfAllShards(k.Resource) {
			continue
		}
		for _, obj := range held.By(c.Informers(k.Resource)).GetStore().List() {
			if this := keyOf(k, held.About(obj)); isFederated(k, obj) && !c.owns(this) {
				keys = append(keys, this)
			}
		}
	}
	return keys
}

// changedByOthers has each member asked, in a while, what became of a federated object of another process.
func (c *Controller) changedByOthers(k key) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, m := range c.members {
		m.queue.AddAfter(k, othersTime)
	}
}

// lookAtOthers notes whether a copy that another process makes may still come to a member, and wakes what depends on it where not.
func (c *Controller) lookAtOthers(ctx context.Context, m *member, k key) error {
	federated := c.lookup(k)
	if !OfAllShards(k.kind.Resource) || federated == nil {
		m.forget(k)
		return nil
	}
	now := look{outcome: plan.Synced}
	have, _ := m.observe(k)
	if target, known := c.target(m); have == nil && known && c.source(k, federated).Goes(target) {
		now.outcome = plan.Conflict
	}
	if now.outcome == plan.Conflict && k.kind.Resource == namespaces { // in one that is not there nothing can be made
		ctx, cancel := context.WithTimeout(ctx, c.WriteTimeout)
		defer cancel()
		if _, err := resource(m.Client, k).Get(ctx, k.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			m.queue.AddAfter(k, othersTime)
			return nil
		} else if err != nil {
			return err
		}
	}
	if m.note(k, now) {
		c.wakeDependents(m, k, federated)
	}
	return nil
}
