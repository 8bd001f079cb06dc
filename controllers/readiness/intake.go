package readiness

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/readiness/plan"
	reviewplan "federation/controllers/review/plan"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/scheduler"
)

// takeIn takes in the changes since the last time, and marks the domains whose loss they may affect.
func (c *Controller) takeIn(now time.Time) {
	c.mu.Lock()
	changed := c.changed
	c.changed = map[key]bool{}
	c.mu.Unlock()
	ofPolicies := map[string]bool{} // namespaces with changed policies
	world, before := false, maps.Clone(c.clusters)
	for k := range changed {
		switch k.resource {
		case v1beta1.ClustersResource:
			world = true
			refreshOwn(c.clusters, k.Name, c.get(k))
		case v1beta1.PoliciesResource:
			world, ofPolicies[k.Namespace] = true, true
			refreshOwn(c.policies, k.String(), c.get(k))
		}
	}
	if world {
		c.takeWorld(before, now)
	}
	c.namedBy(ofPolicies, changed)
	for k := range changed {
		was := c.object(k)
		c.markDomains(c.updateObject(k), k, was, now)
	}
	c.markLackingRoom(now)
}

// takeWorld takes in Clusters and policies. before has the Clusters of the last intake.
func (c *Controller) takeWorld(before map[string]*v1beta1.Cluster, now time.Time) {
	clusters := sortedValues(c.clusters)
	touched := c.fleet.SetWorld(clusters, sortedValues(c.policies))
	c.updateDomains(clusters, now)
	maps.DeleteFunc(c.free, func(name string, _ reviewplan.Amounts) bool { return c.clusters[name] == nil })
	for name, is := range c.clusters {
		if was := before[name]; was == nil || was != is && !sameRoom(was.Status.Capacity, is.Status.Capacity) {
			c.free[name] = reviewplan.FreeIn(is)
			c.roomChanged(name, now)
		}
	}
	for _, d := range c.domains {
		if touched.All || d.hasOneOf(touched.Clusters) {
			d.Urgency = max(d.Urgency, plan.Changed)
		}
	}
}

// sameRoom reports whether two reports differ in nothing but their time.
func sameRoom(a, b *v1beta1.ClusterCapacity) bool {
	if a == nil || b == nil {
		return a == b
	}
	was := *a
	was.ObservedAt = b.ObservedAt
	return equality.Semantic.DeepEqual(was, *b)
}

// updateDomains adds new domains and removes those that no longer exist.
func (c *Controller) updateDomains(clusters []*v1beta1.Cluster, now time.Time) {
	seen := map[string]bool{}
	for _, one := range plan.Domains(clusters, c.Levels) {
		seen[one.Name] = true
		d := c.domains[one.Name]
		if d == nil {
			d = &domain{Standing: plan.Standing{Appeared: now}, status: c.statusFromAPI(one.Name)}
			c.domains[one.Name] = d
		}
		if !slices.Equal(d.Clusters, one.Clusters) {
			d.Urgency, d.OnlyRoom = max(d.Urgency, plan.Changed), false
		}
		if d.Spec != one.Spec { // a label that makes the same name
			forgetDomain(d.Spec.Domain())
		}
		d.Domain = one
	}
	for name, d := range c.domains {
		if !seen[name] {
			delete(c.domains, name)
			delete(c.stored, name)
			forgetDomain(d.Spec.Domain())
		}
	}
}

// roomChanged marks the domains whose loss is affected by the changed room in a cluster.
func (c *Controller) roomChanged(cluster string, now time.Time) {
	for _, d := range c.domains {
		v := plan.Verdict(&d.evaluated)
		switch {
		case d.room == nil:
		case v.Status == metav1.ConditionFalse: // there may be room now, and less room does not change what is said
			d.Urgency = max(d.Urgency, plan.Changed)
		case d.room.Short(cluster, c.free[cluster]):
			d.DoubtRoom(now)
		case v.Status == metav1.ConditionUnknown:
			d.Urgency = max(d.Urgency, plan.Changed)
		default:
			d.Urgency = max(d.Urgency, plan.Stale)
		}
	}
}

// markLackingRoom updates doubtful domains that certainly lack room at once: when many clusters lose room, it takes long until
// each has its turn.
func (c *Controller) markLackingRoom(now time.Time) {
	for _, d := range c.domains {
		if d.Doubtful.IsZero() || d.room == nil || plan.Verdict(&d.status).Status == metav1.ConditionFalse {
			continue
		}
		if of := c.fleet.Lacks(d.room, c.free); of != "" {
			c.setStatus(d, plan.Lacking(&d.status, of, now))
		}
	}
}

// namedBy adds the named objects that changed policies may govern.
func (c *Controller) namedBy(namespaces map[string]bool, changed map[key]bool) {
	for namespace := range namespaces {
		for _, r := range []schema.GroupVersionResource{services, ingresses} {
			for _, obj := range c.Informers(r).GetStore().List() {
				if u, ok := obj.(*unstructured.Unstructured); ok && u.GetNamespace() == namespace {
					changed[key{r, types.NamespacedName{Namespace: namespace, Name: u.GetName()}}] = true
				}
			}
		}
	}
}

// updateObject takes in one object from the cache.
func (c *Controller) updateObject(k key) reviewplan.Touched {
	u := c.get(k)
	switch k.resource {
	case v1beta1.ClustersResource, v1beta1.PoliciesResource, v1beta1.ReadinessResource:
		return reviewplan.Touched{}
	case services, ingresses:
		kind := kinds[k.resource]
		if u == nil {
			return c.fleet.DropNamed((&servicednsplan.Object{Kind: kind, Namespace: k.Namespace, Name: k.Name}).Key())
		}
		if o, err := servicednsplan.Read(u, c.policiesOf(k.Namespace)); err == nil {
			return c.fleet.SetNamed(o)
		}
		return reviewplan.Touched{} // its records stay
	}
	if u != nil && u.GetDeletionTimestamp() == nil {
		if o, err := scheduler.Read(u); err == nil {
			return c.fleet.Set(o)
		}
	}
	return c.fleet.Drop(kinds[k.resource], k.Namespace, k.Name)
}

// markDomains marks the domains whose loss may differ, and has an object that is there checked. was is the object before.
func (c *Controller) markDomains(t reviewplan.Touched, k key, was *scheduler.Object, now time.Time) {
	if !t.All && len(t.Clusters) == 0 {
		return
	}
	for _, d := range c.domains {
		if !d.Evaluated.IsZero() && (t.All || d.hasOneOf(t.Clusters)) {
			d.Touch(plan.Changed, now)
		}
	}
	if _, known := c.unchecked[k]; !known && c.object(k) != nil {
		c.unchecked[k] = growth{was, now}
	}
}

// checkGrowth puts in doubt the domains in which an object may find no place as it has grown: of what has grown most, and of what has waited longest, by turns.
// What takes longer than its share waits for the next time. It returns the CPU time.
func (c *Controller) checkGrowth(now time.Time) (took time.Duration) {
	maps.DeleteFunc(c.unchecked, func(k key, _ growth) bool { return c.object(k) == nil })
	more := map[key]int64{}
	for k, before := range c.unchecked {
		if more[k] = c.object(k).Replicas; before.was != nil {
			more[k] -= before.was.Replicas
		}
	}
	oldest := slices.SortedFunc(maps.Keys(c.unchecked), func(a, b key) int { return c.unchecked[a].since.Compare(c.unchecked[b].since) })
	largest := slices.Clone(oldest)
	slices.SortStableFunc(largest, func(a, b key) int { return cmp.Compare(more[b], more[a]) })
	for i := range largest {
		for _, k := range []key{largest[i], oldest[i]} {
			if _, waits := c.unchecked[k]; !waits || took >= checking {
				continue
			}
			took += c.measureCPU(func() { c.checkObject(k, now) })
			delete(c.unchecked, k)
		}
	}
	return took
}

// checkObject puts in doubt the domains in which an object has more replicas, or replicas that ask for more, than when their loss was
// evaluated, and finds no place for them.
func (c *Controller) checkObject(k key, now time.Time) {
	o, before := c.object(k), c.unchecked[k]
	asksMore := before.was == nil || !c.fleet.AsksNoMore(o, before.was)
	for _, d := range c.domains {
		if d.Evaluated.IsZero() || d.Urgency == plan.Doubt && !d.OnlyRoom || d.Evaluated.After(before.since) || plan.Verdict(&d.evaluated).Status == metav1.ConditionFalse {
			continue
		}
		if n := replicasIn(o, d.Clusters); n == 0 || !asksMore && n <= replicasIn(before.was, d.Clusters) {
			continue
		}
		if !c.fleet.TakeIfFits(d.room, o, now) {
			d.Touch(plan.Doubt, now)
		} else if slices.ContainsFunc(d.room.Gets(), func(name string) bool { return d.room.Short(name, c.free[name]) }) {
			d.DoubtRoom(now) // it fits into what was counted, and less is reported
		}
	}
}

// object returns an object with divided replicas as it was taken in, or nil.
func (c *Controller) object(k key) *scheduler.Object {
	return c.fleet.Object(kinds[k.resource], k.Namespace, k.Name)
}

// hasOneOf reports whether one of some clusters is in the domain.
func (d *domain) hasOneOf(clusters []string) bool {
	return slices.ContainsFunc(clusters, func(name string) bool { _, in := slices.BinarySearch(d.Clusters, name); return in })
}

// replicasIn returns how many replicas of an object are placed in some clusters. With no more of them than before, a loss of these
// clusters needs no more room for the object.
func replicasIn(o *scheduler.Object, clusters []string) (n int64) {
	for _, name := range clusters {
		n += o.At(name)
	}
	return n
}

// kinds has the kind of each resource whose objects are taken in.
var kinds = func() map[schema.GroupVersionResource]string {
	out := map[schema.GroupVersionResource]string{services: servicednsplan.KindService, ingresses: servicednsplan.KindIngress}
	for _, k := range v1beta1.FederatedKinds {
		if k.Preferences != "" {
			out[k.Resource] = k.Kind
		}
	}
	return out
}()

func (c *Controller) get(k key) *unstructured.Unstructured {
	obj, _, _ := c.Informers(k.resource).GetStore().GetByKey(k.String()) // an in-memory store returns no errors
	if k.Namespace == "" {
		obj, _, _ = c.Informers(k.resource).GetStore().GetByKey(k.Name)
	}
	u, _ := obj.(*unstructured.Unstructured)
	return u
}

func (c *Controller) policiesOf(namespace string) (some []*v1beta1.PlacementPolicy) {
	for _, p := range c.policies {
		if p.Namespace == namespace {
			some = append(some, p)
		}
	}
	return some
}

// refreshOwn takes in one of our own objects from the cache. One that cannot be decoded stays as it was.
func refreshOwn[T any](known map[string]*T, name string, u *unstructured.Unstructured) {
	if u == nil {
		delete(known, name)
		return
	}
	if o := new(T); runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o) == nil {
		known[name] = o
	}
}

// sortedValues returns the values of a map sorted by key, so that an unchanged map gives the same slice.
func sortedValues[T any](of map[string]T) (all []T) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, of[name])
	}
	return all
}
