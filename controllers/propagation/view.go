package propagation

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

// view reads the federation's caches. It makes no requests.
type view struct {
	Options
	policies
	shared
}

// policies caches the decoded PlacementPolicies.
type policies struct {
	typed  sync.Map // types.NamespacedName → *v1beta1.PlacementPolicy
	listed cache.ResourceEventHandlerRegistration
}

// policy returns a policy, or nil if unknown.
func (p *policies) policy(name types.NamespacedName) *v1beta1.PlacementPolicy {
	if known, ok := p.typed.Load(name); ok {
		return known.(*v1beta1.PlacementPolicy)
	}
	return nil
}

func (v *view) owns(k key) bool { return v.Owns(k.Kind, k.Namespace, k.Name) }

// synced reports whether the federation's caches are synced, and the policies decoded: an object whose policy is not known waits for it, and says so.
func (v *view) synced() bool {
	for i := range v.Kinds {
		if !v.Informers(v.Kinds[i].Resource).HasSynced() {
			return false
		}
	}
	return v.Informers(v1beta1.ClustersResource).HasSynced() && v.listed.HasSynced()
}

// kindOf returns the row of a resource; nil if this controller does not propagate it.
func (v *view) kindOf(resource schema.GroupVersionResource) *plan.Kind {
	for i := range v.Kinds {
		if v.Kinds[i].Resource == resource {
			return &v.Kinds[i]
		}
	}
	return nil
}

// object returns the federated object of a key; nil if there is none, or if it is not propagated.
func (v *view) object(k key) *unstructured.Unstructured {
	obj := v.packedObject(k)
	if obj == nil {
		return nil
	}
	return v.versionOf(k, obj).object
}

// packedObject is object without unpacking: nil, or what package held accepts.
func (v *view) packedObject(k key) any {
	obj, ok, err := held.By(v.Informers(k.Kind.Resource)).GetStore().GetByKey(k.StoreKey())
	if err != nil || !ok || !isFederated(k.Kind, obj) {
		return nil
	}
	return obj
}

func isFederated(k *plan.Kind, obj any) bool {
	o := held.About(obj)
	if k.Custom {
		return !v1beta1.OwnNamespace(o.GetNamespace())
	}
	var secretType string
	if k.Resource == secrets {
		secretType, _ = held.Object(obj).Object["type"].(string)
	}
	return v1beta1.Federated(k.Resource.GroupResource(), o.GetNamespace(), o.GetName(), corev1.SecretType(secretType))
}

// isLeaving reports whether an object should be nowhere.
func (v *view) isLeaving(k key) bool {
	obj := v.packedObject(k)
	return obj == nil || held.About(obj).GetDeletionTimestamp() != nil
}

// objects returns the keys of all objects that this controller propagates.
func (v *view) objects() (keys []key) {
	for i := range v.Kinds {
		keys = append(keys, v.objectsOf(&v.Kinds[i])...)
	}
	return keys
}

func (v *view) objectsOf(k *plan.Kind) (keys []key) {
	for _, obj := range held.By(v.Informers(k.Resource)).GetStore().List() {
		if this := keyOf(k, held.About(obj)); isFederated(k, obj) && v.owns(this) {
			keys = append(keys, this)
		}
	}
	slices.SortFunc(keys, func(a, b key) int { // so that all members go through them in the same order
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return keys
}

// othersObjects returns the federated objects of other processes that ours may depend on.
func (v *view) othersObjects() (keys []key) {
	for i := range v.Kinds {
		k := &v.Kinds[i]
		if !OfAllShards(k.Resource) {
			continue
		}
		for _, obj := range held.By(v.Informers(k.Resource)).GetStore().List() {
			if this := keyOf(k, held.About(obj)); isFederated(k, obj) && !v.owns(this) {
				keys = append(keys, this)
			}
		}
	}
	return keys
}

// inNamespace returns the objects of a kind in a namespace of the federation, as they are held.
func (v *view) inNamespace(k *plan.Kind, namespace string) []any {
	objects, err := held.By(v.Informers(k.Resource)).GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil // without an index, each is enqueued by itself later
	}
	return objects
}

// namespaceOf returns the federated namespace of an object, or nil.
func (v *view) namespaceOf(k key) (key, *unstructured.Unstructured) {
	kind := v.kindOf(namespaces)
	if kind == nil || k.Namespace == "" {
		return key{}, nil
	}
	ns := key{Kind: kind, NamespacedName: types.NamespacedName{Name: k.Namespace}}
	return ns, v.object(ns)
}

// namespaceTerminates reports whether the namespace of an object is being deleted. Members delete what is in it: such
// objects are neither created again nor reported.
func (v *view) namespaceTerminates(k key) bool {
	_, federated := v.namespaceOf(k)
	return federated != nil && federated.GetDeletionTimestamp() != nil
}

// sourceOf gathers what decides, besides the cluster, what the copies of an object look like.
func (v *view) sourceOf(k key, federated *unstructured.Unstructured) plan.Source {
	s := plan.Source{Kind: k.Kind, Object: federated}
	if federated == nil {
		return s
	}
	one := v.versionOf(k, federated)
	s.Common, s.Placement = &one.common, one.placement()
	if s.Placement != nil && s.Placement.Policy != "" {
		s.Policy = v.policy(types.NamespacedName{Namespace: k.Namespace, Name: s.Placement.Policy})
	}
	if k.Kind.Paced {
		s.Autoscalers = v.autoscalersOf(k)
	}
	return s
}

// autoscalersOf returns the autoscalers at the federation that target the object.
func (v *view) autoscalersOf(k key) (out []plan.Source) {
	kind := v.kindOf(autoscalers)
	if kind == nil {
		return nil
	}
	objects, err := v.Informers(autoscalers).GetIndexer().ByIndex(byTarget, k.Kind.Kind+"/"+k.Namespace+"/"+k.Name)
	if err != nil {
		return nil // without the kind there is no index
	}
	for _, obj := range objects {
		out = append(out, v.sourceOf(keyOf(kind, held.Object(obj)), held.Object(obj)))
	}
	return out
}

// targetOf returns what an autoscaler scales, if its replicas are divided.
func (v *view) targetOf(autoscaler *unstructured.Unstructured) (k key, ok bool) {
	kind, name := scaleTargetRef(autoscaler)
	for i := range v.Kinds {
		if v.Kinds[i].Paced && v.Kinds[i].Kind == kind {
			return key{Kind: &v.Kinds[i], NamespacedName: types.NamespacedName{Namespace: autoscaler.GetNamespace(), Name: name}}, true
		}
	}
	return key{}, false
}

// workloadOf returns what an autoscaler scales, as far as its metadata says.
func (v *view) workloadOf(autoscaler *unstructured.Unstructured) (key, plan.Source) {
	k, ok := v.targetOf(autoscaler)
	if !ok {
		return key{}, plan.Source{}
	}
	obj := v.packedObject(k)
	if obj == nil || held.About(obj).GetDeletionTimestamp() != nil {
		return key{}, plan.Source{}
	}
	u := held.Object(obj)
	return k, plan.Source{Kind: k.Kind, Object: u, Placement: plan.Read(u)}
}

// clusters returns all Clusters, in no order.
func (v *view) clusters() (all []*unstructured.Unstructured) {
	for _, obj := range v.Informers(v1beta1.ClustersResource).GetStore().List() {
		all = append(all, held.Object(obj))
	}
	return all
}

// clusterTarget returns a Cluster as plan needs it, and whether it is known: a joining cluster may be engaged before our cache
// has it, and a leaving one may still be engaged. Nothing is decided about unknown ones.
func (v *view) clusterTarget(m *member) (plan.Target, bool) {
	obj, ok, _ := v.Informers(v1beta1.ClustersResource).GetStore().GetByKey(m.Name)
	if !ok {
		return plan.Target{Cluster: &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}, Federation: v.Federation, HeartbeatsStale: true}, false
	}
	u := held.Object(obj)
	return plan.Target{Cluster: asTarget(u), Federation: v.Federation, HeartbeatsStale: m.heartbeatsStale() || plan.IsSilent(u)}, true
}

// asTarget keeps of a Cluster what selects it, and what bounds its copies' status.
func asTarget(u *unstructured.Unstructured) *v1beta1.Cluster {
	cluster := &v1beta1.Cluster{}
	cluster.Name, cluster.Labels = u.GetName(), u.GetLabels()
	cluster.Status.Zones, _, _ = unstructured.NestedStringSlice(u.Object, "status", "zones")
	cluster.Status.Region, _, _ = unstructured.NestedString(u.Object, "status", "region")
	cluster.Spec.LoadBalancerCIDRs, _, _ = unstructured.NestedStringSlice(u.Object, "spec", "loadBalancerCIDRs")
	cluster.Spec.AllowedNamespaces, _, _ = unstructured.NestedStringSlice(u.Object, "spec", "allowedNamespaces")
	return cluster
}
