package views

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/registry/rest"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/views/canonical"
)

// object is an object of a member.
type object interface {
	runtime.Object
	metav1.Object
}

// kind is what a view shows: one row per kind.
type kind struct {
	resource   schema.GroupVersionResource
	singular   string
	shortNames []string
	categories []string
	namespaced bool
	make       func() object
	makeList   func() runtime.Object
	// listKind is the kind of its lists, and form how one object is written, where lists are passed on: see format. nil: they are decoded.
	listKind string
	form     *canonical.Form
	// table makes what kubectl get shows.
	table func(ctx context.Context, object, options runtime.Object) (*metav1.Table, error)
	// adorn changes what else of an object is shown differently.
	adorn func(ctx context.Context, o object, cluster string, owners *lookup)
}

// podForm returns by themselves the fields that copies of pods show differently, and those that say where these go.
var podForm = canonical.Of[corev1.Pod]("metadata.", "metadata.name", "metadata.namespace", "metadata.labels.", "metadata.annotations", "metadata.ownerReferences", "metadata.finalizers", "metadata.managedFields",
	"spec.", "spec.nodeName")

var pods = kind{
	resource: corev1.SchemeGroupVersion.WithResource("pods"), singular: "pod", shortNames: []string{"po"}, categories: []string{"all"}, namespaced: true,
	make: func() object { return &corev1.Pod{} }, makeList: func() runtime.Object { return &corev1.PodList{} }, table: toTable,
	listKind: "PodList", form: podForm,
	adorn: func(ctx context.Context, o object, cluster string, owners *lookup) {
		pod := o.(*corev1.Pod)
		owners.setController(ctx, pod)
		if pod.Spec.NodeName != "" {
			pod.Spec.NodeName = nameAt(pod.Spec.NodeName, cluster)
		}
	},
}

var nodes = kind{
	resource: corev1.SchemeGroupVersion.WithResource("nodes"), singular: "node", shortNames: []string{"no"},
	make: func() object { return &corev1.Node{} }, makeList: func() runtime.Object { return &corev1.NodeList{} }, table: toTable,
	adorn: asItIs,
}

// The metrics of kubectl top. Members without metrics report that they have none.
var (
	podMetrics = kind{
		resource: metricsv1beta1.SchemeGroupVersion.WithResource("pods"), singular: "podmetrics", namespaced: true,
		make: func() object { return &metricsv1beta1.PodMetrics{} }, makeList: func() runtime.Object { return &metricsv1beta1.PodMetricsList{} },
		table: rest.NewDefaultTableConvertor(metricsv1beta1.Resource("pods")).ConvertToTable, adorn: asItIs,
	}
	nodeMetrics = kind{
		resource: metricsv1beta1.SchemeGroupVersion.WithResource("nodes"), singular: "nodemetrics",
		make: func() object { return &metricsv1beta1.NodeMetrics{} }, makeList: func() runtime.Object { return &metricsv1beta1.NodeMetricsList{} },
		table: rest.NewDefaultTableConvertor(metricsv1beta1.Resource("nodes")).ConvertToTable, adorn: asItIs,
	}
)

func asItIs(context.Context, object, string, *lookup) {}

// isValid reports whether an object may have that namespace and name.
func (k *kind) isValid(namespace, name string) bool {
	return len(validation.IsDNS1123Subdomain(name)) == 0 && k.namespaced == (namespace != "")
}

// show turns an object of a member into the shown one. It returns false for an invalid one.
func (k *kind) show(ctx context.Context, o object, cluster string, owners *lookup) bool {
	if !k.isValid(o.GetNamespace(), o.GetName()) {
		return false
	}
	k.adorn(ctx, o, cluster, owners)
	o.SetName(nameAt(o.GetName(), cluster))
	o.SetManagedFields(nil)
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1beta1.ClusterLabel] = cluster
	o.SetLabels(labels)
	return true
}
