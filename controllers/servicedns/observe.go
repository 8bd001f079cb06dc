package servicedns

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/servicedns/plan"
)

// subscribe makes changes of the two kinds be noted. It returns the end of that.
func (c *Controller) subscribe() (unsubscribe func(), synced []cache.InformerSynced, err error) {
	services, err1 := c.services.AddEventHandler(notes(sameService, c.changed.service))
	clusters, err2 := c.clusters.AddEventHandler(notes(sameCluster, c.changed.cluster))
	unsubscribe = func() {
		_ = c.services.RemoveEventHandler(services) // fails only for a handler that is not there
		_ = c.clusters.RemoveEventHandler(clusters)
	}
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, err
	}
	return unsubscribe, []cache.InformerSynced{services.HasSynced, clusters.HasSynced}, nil
}

// notes calls note with the key of what has changed, unless it is the same for us.
func notes(same func(a, b *unstructured.Unstructured) bool, note func(key string)) cache.ResourceEventHandler {
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

func sameService(a, b *unstructured.Unstructured) bool {
	return a.GetUID() == b.GetUID() && typeOf(a) == typeOf(b) &&
		(a.GetDeletionTimestamp() == nil) == (b.GetDeletionTimestamp() == nil) &&
		a.GetAnnotations()[v1beta1.ServiceIngressesAnnotation] == b.GetAnnotations()[v1beta1.ServiceIngressesAnnotation]
}

func sameCluster(a, b *unstructured.Unstructured) bool {
	x, y := clusterOf(a), clusterOf(b)
	return x.Ready == y.Ready && x.Drained == y.Drained && x.Region == y.Region && slices.Equal(x.Zones, y.Zones)
}

func typeOf(s *unstructured.Unstructured) corev1.ServiceType {
	t, _, _ := unstructured.NestedString(s.Object, "spec", "type")
	return corev1.ServiceType(t)
}

// serviceOf reads a Service. One that is being deleted has no ingresses any more. It fails when the
// annotation cannot be read.
func serviceOf(obj any) (plan.Service, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return plan.Service{}, fmt.Errorf("a %T in place of an unstructured Service", obj)
	}
	s := plan.Service{Namespace: u.GetNamespace(), Name: u.GetName(), Type: typeOf(u)}
	value := u.GetAnnotations()[v1beta1.ServiceIngressesAnnotation]
	if value == "" || u.GetDeletionTimestamp() != nil {
		return s, nil
	}
	if err := json.Unmarshal([]byte(value), &s.Ingresses); err != nil {
		return s, fmt.Errorf("annotation %s: %w", v1beta1.ServiceIngressesAnnotation, err)
	}
	return s, nil
}

func clustersOf(objects []any) []plan.Cluster {
	clusters := make([]plan.Cluster, 0, len(objects))
	for _, obj := range objects {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			clusters = append(clusters, clusterOf(u))
		}
	}
	return clusters
}

// clusterOf reads a Cluster. What cannot be read counts as a cluster that is not ready.
func clusterOf(u *unstructured.Unstructured) plan.Cluster {
	var cluster v1beta1.Cluster
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &cluster); err != nil {
		return plan.Cluster{Name: u.GetName()}
	}
	return plan.Cluster{
		Name: u.GetName(), Ready: cluster.IsReady(), Drained: cluster.DNSWeight() == 0,
		Zones: cluster.Status.Zones, Region: cluster.Status.Region,
	}
}
