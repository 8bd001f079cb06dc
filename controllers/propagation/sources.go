package propagation

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

// source gathers what decides, besides the cluster, what the copies of an object look like.
func (c *Controller) source(k key, federated *unstructured.Unstructured) plan.Source {
	s := plan.Source{Kind: k.kind, Object: federated}
	if federated == nil {
		return s
	}
	v := c.version(k, federated)
	s.Common, s.Placement = &v.common, v.placement()
	if s.Placement != nil && s.Placement.Policy != "" {
		s.Policy = c.policy(types.NamespacedName{Namespace: k.Namespace, Name: s.Placement.Policy})
	}
	if k.kind.Paced {
		s.Autoscalers = c.autoscalersOf(k)
	}
	return s
}

// policies has the PlacementPolicies as they were read last.
type policies struct{ typed sync.Map } // types.NamespacedName → *v1beta1.PlacementPolicy

// policy returns a policy; nil where it is not known.
func (c *Controller) policy(name types.NamespacedName) *v1beta1.PlacementPolicy {
	if p, ok := c.typed.Load(name); ok {
		return p.(*v1beta1.PlacementPolicy)
	}
	return nil
}

// watchPolicies keeps the policies, and wakes the objects that one governs when it changes.
func (c *Controller) watchPolicies() error {
	keep := func(obj any) {
		u := held.Object(obj)
		name, p := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}, &v1beta1.PlacementPolicy{}
		if before := c.policy(name); before != nil && before.UID == u.GetUID() && before.Generation == u.GetGeneration() && u.GetGeneration() > 0 {
			return // only its status changed
		}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p) != nil {
			return // the API stores none that cannot be read
		}
		c.typed.Store(name, p)
		c.wakeGoverned(name)
	}
	return c.listen(c.Informers(v1beta1.PoliciesResource), cache.ResourceEventHandlerFuncs{
		AddFunc:    keep,
		UpdateFunc: func(_, is any) { keep(is) },
		DeleteFunc: func(obj any) {
			u := held.Object(obj)
			c.typed.Delete(types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()})
		},
	})
}

// wakeGoverned has the objects looked at again whose placement names a policy.
func (c *Controller) wakeGoverned(policy types.NamespacedName) {
	for i := range c.Kinds {
		k := &c.Kinds[i]
		for _, obj := range c.inNamespace(k, policy.Namespace) {
			u := held.Object(obj)
			if p := plan.Read(u); p != nil && p.Policy == policy.Name && c.owns(keyOf(k, u)) {
				c.changed(keyOf(k, u))
			}
		}
	}
}

// inNamespace returns the objects of a kind in a namespace of the federation, as they are held.
func (c *Controller) inNamespace(k *plan.Kind, namespace string) []any {
	objects, err := held.By(c.Informers(k.Resource)).GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil // without an index, each comes by itself, later
	}
	return objects
}

var autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

const byTarget = "scale target"

// scaleTarget is the index value of what an autoscaler scales.
func scaleTarget(u *unstructured.Unstructured) string {
	kind, _, _ := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", "kind")
	name, _, _ := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", "name")
	return kind + "/" + u.GetNamespace() + "/" + name
}

func indexByTarget(autoscalers cache.SharedIndexInformer) error {
	return index(autoscalers, byTarget, func(obj any) ([]string, error) { return []string{scaleTarget(held.Object(obj))}, nil })
}

// watchAutoscalers wakes the target of an autoscaler at the federation when it comes, goes or changes.
func (c *Controller) watchAutoscalers() error {
	if c.kindOf(autoscalers) == nil {
		return nil
	}
	informer := c.Informers(autoscalers)
	if err := indexByTarget(informer); err != nil {
		return err
	}
	wake := func(obj any) {
		if k, ok := c.scaledBy(held.Object(obj)); ok {
			c.changed(k)
		}
	}
	return c.listen(informer, cache.ResourceEventHandlerFuncs{AddFunc: wake, DeleteFunc: wake, UpdateFunc: func(was, is any) {
		switch {
		case scaleTarget(held.Object(was)) != scaleTarget(held.Object(is)):
			wake(was)
			wake(is)
		case !sameSource(was, is): // it may go elsewhere
			wake(is)
		}
	}})
}

// scaledBy returns what an autoscaler scales, if it is of a kind that is divided, and ours.
func (c *Controller) scaledBy(autoscaler *unstructured.Unstructured) (k key, ok bool) {
	name, _, _ := unstructured.NestedString(autoscaler.Object, "spec", "scaleTargetRef", "name")
	kind, _, _ := unstructured.NestedString(autoscaler.Object, "spec", "scaleTargetRef", "kind")
	for i := range c.Kinds {
		k = key{&c.Kinds[i], types.NamespacedName{Namespace: autoscaler.GetNamespace(), Name: name}}
		if k.kind.Paced && k.kind.Kind == kind && c.owns(k) {
			return k, true
		}
	}
	return key{}, false
}

// watchScaling wakes the target of an autoscaler when its copy in a member comes, goes or takes another target.
func (c *Controller) watchScaling(m *member) error {
	if c.kindOf(autoscalers) == nil {
		return nil
	}
	informer := m.Informers(autoscalers)
	if err := indexByTarget(informer); err != nil {
		return err
	}
	wake := func(obj any) { c.wakeScaled(m, held.Object(obj)) }
	return m.listen(held.By(informer), cache.ResourceEventHandlerFuncs{AddFunc: wake, DeleteFunc: wake, UpdateFunc: func(was, is any) {
		if !sameSource(was, is) {
			wake(was)
			wake(is)
		}
	}})
}

// wakeScaled has what an autoscaler scales looked at in a member, where the autoscaler came or went or was refused.
func (c *Controller) wakeScaled(m *member, autoscaler *unstructured.Unstructured) {
	if k, ok := c.scaledBy(autoscaler); ok {
		m.queue.Add(k)
		c.wakeWaiting(k)
	}
}

// scaled reports whether an autoscaler of the federation scales an object in a member: a copy of one is there, though it may be
// of one that is no more at the federation, or one is to come.
func (c *Controller) scaled(m *member, s plan.Source, t plan.Target) bool {
	if !s.Kind.Paced || s.Object == nil || c.kindOf(autoscalers) == nil {
		return false
	}
	there, _ := m.Informers(autoscalers).GetIndexer().ByIndex(byTarget, s.Kind.Kind+"/"+s.Object.GetNamespace()+"/"+s.Object.GetName())
	return slices.ContainsFunc(there, func(obj any) bool {
		return v1beta1.IsCopy(held.Object(obj), c.kindOf(autoscalers).GroupKind(), c.Federation)
	}) || scalerComes(m, s, t)
}

// scalerComes reports whether an autoscaler of the federation is to scale an object in a member.
func scalerComes(m *member, s plan.Source, t plan.Target) bool {
	return slices.ContainsFunc(s.Autoscalers, func(a plan.Source) bool {
		return m.comes(keyOf(a.Kind, a.Object)) && a.Comes(t)
	})
}

// autoscalersKnown reports whether the autoscalers of an object have been looked at in all engaged members: until then nobody knows
// which of these refuse one, and with it whether less is asked for than the object says.
func (c *Controller) autoscalersKnown(s plan.Source) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, m := range c.members {
		for _, a := range s.Autoscalers {
			if !m.looked(keyOf(a.Kind, a.Object)) {
				return false
			}
		}
	}
	return true
}

// autoscalersOf returns the autoscalers at the federation that have the object as their target.
func (c *Controller) autoscalersOf(k key) (out []plan.Source) {
	kind := c.kindOf(autoscalers)
	if kind == nil {
		return nil
	}
	objects, err := c.Informers(autoscalers).GetIndexer().ByIndex(byTarget, k.kind.Kind+"/"+k.Namespace+"/"+k.Name)
	if err != nil {
		return nil // there is no index where there is no kind
	}
	for _, obj := range objects {
		out = append(out, c.source(keyOf(kind, held.Object(obj)), held.Object(obj)))
	}
	return out
}

// kindOf returns the row of a resource; nil where it is not propagated here.
func (c *Controller) kindOf(resource schema.GroupVersionResource) *plan.Kind {
	for i := range c.Kinds {
		if c.Kinds[i].Resource == resource {
			return &c.Kinds[i]
		}
	}
	return nil
}

// target returns a Cluster as plan knows it, and whether it is known: one that has just joined may be engaged
// before our cache has it, and one that leaves may be engaged still. Nothing is decided about such a one.
func (c *Controller) target(m *member) (plan.Target, bool) {
	obj, ok, _ := c.Informers(v1beta1.ClustersResource).GetStore().GetByKey(m.Name)
	if !ok {
		return plan.Target{Cluster: &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}, Federation: c.Federation, HeartbeatsStale: true}, false
	}
	return plan.Target{Cluster: asTarget(held.Object(obj)), Federation: c.Federation, HeartbeatsStale: m.silent() || plan.IsSilent(held.Object(obj))}, true
}

// asTarget keeps of a Cluster what selects it, and what its copies may say.
func asTarget(u *unstructured.Unstructured) *v1beta1.Cluster {
	cluster := &v1beta1.Cluster{}
	cluster.Name, cluster.Labels = u.GetName(), u.GetLabels()
	cluster.Status.Zones, _, _ = unstructured.NestedStringSlice(u.Object, "status", "zones")
	cluster.Status.Region, _, _ = unstructured.NestedString(u.Object, "status", "region")
	cluster.Spec.LoadBalancerCIDRs, _, _ = unstructured.NestedStringSlice(u.Object, "spec", "loadBalancerCIDRs")
	return cluster
}
