package servicedns

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/servicedns/plan"
)

// Watched resources.
var (
	servicesResource  = corev1.SchemeGroupVersion.WithResource("services")
	ingressesResource = networkingv1.SchemeGroupVersion.WithResource("ingresses")
)

// stores are the caches of the watched resources. Without names there are neither Ingresses nor grants.
type stores struct {
	objects                    map[string]cache.SharedIndexInformer // by kind
	clusters, policies, grants cache.SharedIndexInformer
}

func newStores(from Informers, names bool) stores {
	s := stores{
		objects:  map[string]cache.SharedIndexInformer{plan.KindService: from(servicesResource)},
		clusters: from(v1beta1.ClustersResource), policies: from(v1beta1.PoliciesResource),
	}
	if names {
		s.objects[plan.KindIngress], s.grants = from(ingressesResource), from(v1beta1.DNSNameGrantsResource)
	}
	return s
}

// subscribe records changes in c until unsubscribe is called.
func (s *stores) subscribe(c *changes, told *conditions) (unsubscribe func(), synced []cache.InformerSynced, err error) {
	var ends []func()
	on := func(i cache.SharedIndexInformer, same func(a, b *unstructured.Unstructured) bool, note func(key string)) {
		handler, failed := i.AddEventHandler(changeHandler(same, note))
		if failed != nil {
			err = errors.Join(err, failed)
			return
		}
		synced = append(synced, handler.HasSynced)
		ends = append(ends, func() { _ = i.RemoveEventHandler(handler) }) // fails only for a handler that is not registered
	}
	for kind, i := range s.objects {
		on(i, sameObject, c.objectHandler(kind))
	}
	on(s.clusters, sameStatus, c.addCluster)
	on(s.policies, samePolicy, c.addPolicy)
	if s.grants != nil {
		on(s.objects[plan.KindService], sameCondition, told.objectHandler(plan.KindService))
		on(s.clusters, sameCondition, told.handleCluster)
		on(s.grants, samePolicy, c.addGrant)
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}, synced, err
}

// changeHandler calls note with the key of a changed object, unless it is the same for us.
func changeHandler(same func(a, b *unstructured.Unstructured) bool, note func(key string)) cache.ResourceEventHandler {
	noteObject := func(obj any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			note(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    noteObject,
		DeleteFunc: noteObject,
		UpdateFunc: func(before, now any) {
			a, ok1 := before.(*unstructured.Unstructured)
			b, ok2 := now.(*unstructured.Unstructured)
			if !ok1 || !ok2 || !same(a, b) {
				noteObject(now)
			}
		},
	}
}

func sameObject(a, b *unstructured.Unstructured) bool {
	x, y := a.GetAnnotations(), b.GetAnnotations()
	return a.GetUID() == b.GetUID() && (a.GetDeletionTimestamp() == nil) == (b.GetDeletionTimestamp() == nil) &&
		x[v1beta1.ServiceIngressesAnnotation] == y[v1beta1.ServiceIngressesAnnotation] && x[v1beta1.DNSAnnotation] == y[v1beta1.DNSAnnotation] &&
		plan.IsReported(a) == plan.IsReported(b) && plan.IsBalanced(a) == plan.IsBalanced(b) && slices.Equal(plan.BalancedAt(a), plan.BalancedAt(b)) && typeOf(a) == typeOf(b) && slices.Equal(plan.Hosts(a), plan.Hosts(b)) && maps.Equal(a.GetLabels(), b.GetLabels())
}

// sameCondition reports whether our condition on a Service or Cluster is unchanged.
func sameCondition(a, b *unstructured.Unstructured) bool {
	return a.GetUID() == b.GetUID() && reflect.DeepEqual(ownCondition(a), ownCondition(b))
}

func ownCondition(u *unstructured.Unstructured) any {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	all, _ := list.([]any)
	for _, item := range all {
		c, _ := item.(map[string]any)
		if c["type"] == v1beta1.ConditionDNSPublished || c["type"] == string(v1beta1.ClusterDNSIncomplete) {
			return item
		}
	}
	return nil
}

func typeOf(u *unstructured.Unstructured) string {
	t, _, _ := unstructured.NestedString(u.Object, "spec", "type")
	return t
}

// sameStatus compares Clusters, whose capacity is written often.
func sameStatus(a, b *unstructured.Unstructured) bool {
	if sameButForCapacity(a, b) {
		return true
	}
	x, y := clusterOf(a), clusterOf(b)
	return x != nil && y != nil && reflect.DeepEqual(plan.ClusterOf(x, nil), plan.ClusterOf(y, nil)) &&
		reflect.DeepEqual(x.Status.Failover, y.Status.Failover) && reflect.DeepEqual(x.Condition(v1beta1.ClusterReady), y.Condition(v1beta1.ClusterReady)) &&
		reflect.DeepEqual(x.Drill(), y.Drill()) && x.OutOfService() == y.OutOfService() // one that is counts among none that vanished together
}

// sameButForCapacity reports whether nothing of a Cluster differs but its capacity, without decoding either version.
func sameButForCapacity(a, b *unstructured.Unstructured) bool {
	x, _ := a.Object["status"].(map[string]any)
	y, _ := b.Object["status"].(map[string]any)
	same := func(key string) bool { return key == "capacity" || reflect.DeepEqual(x[key], y[key]) }
	for _, status := range []map[string]any{x, y} {
		for key := range status {
			if !same(key) {
				return false
			}
		}
	}
	return a.GetUID() == b.GetUID() && reflect.DeepEqual(a.Object["spec"], b.Object["spec"]) && maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations())
}

// samePolicy compares policies and grants.
func samePolicy(a, b *unstructured.Unstructured) bool {
	return a.GetUID() == b.GetUID() && reflect.DeepEqual(a.Object["spec"], b.Object["spec"])
}

// clusterOf decodes a Cluster; nil if that fails.
func clusterOf(u *unstructured.Unstructured) *v1beta1.Cluster {
	cluster := &v1beta1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, cluster); err != nil {
		klog.ErrorS(err, "Cannot decode the Cluster", "cluster", u.GetName())
		return nil
	}
	return cluster
}

// object returns a Service or Ingress by its key, or nil.
func (s *stores) object(key string) *unstructured.Unstructured {
	kind, key, _ := strings.Cut(key, " ")
	obj, _, _ := s.objects[kind].GetStore().GetByKey(key) // never fails for an in-memory store
	u, _ := obj.(*unstructured.Unstructured)
	return u
}
