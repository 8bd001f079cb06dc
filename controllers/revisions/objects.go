package revisions

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/revisions/plan"
)

// Select selects revisions.
func Select(o *metav1.ListOptions) { o.LabelSelector = v1beta1.RevisionOfLabel }

// Slim takes off a revision what is not held of it: its template, in whose place it gets the hash.
func Slim(o metav1.Object) {
	o.SetManagedFields(nil)
	var template map[string]any
	switch r := o.(type) {
	case *appsv1.ReplicaSet:
		template, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(&r.Spec.Template) // fails for no template; "" is no hash
		r.Spec.Template, r.Spec.Selector = corev1.PodTemplateSpec{}, nil
	case *appsv1.ControllerRevision:
		template = templateIn(r.Data.Raw)
		r.Data = runtime.RawExtension{}
	default:
		return
	}
	hash := ""
	if template != nil {
		hash = plan.HashOf(o.GetLabels()[v1beta1.RevisionOfLabel], template)
	}
	o.SetAnnotations(with(o.GetAnnotations(), plan.HashAnnotation, hash))
}

// templateIn returns the template in the data of a ControllerRevision; nil where there is none.
func templateIn(data []byte) map[string]any {
	var content map[string]any
	if json.Unmarshal(data, &content) != nil {
		return nil // somebody else has written it
	}
	template, _, _ := unstructured.NestedMap(content, "spec", "template")
	delete(template, "$patch")
	return template
}

// workload is a workload as plan knows it.
func workload(u *unstructured.Unstructured) plan.Workload {
	w := plan.Workload{Kind: u.GetKind(), Name: u.GetName(), Annotations: u.GetAnnotations()}
	w.Template, _, _ = unstructured.NestedMap(u.Object, "spec", "template")
	w.HistoryLimit, _, _ = unstructured.NestedInt64(u.Object, "spec", "revisionHistoryLimit")
	if u.GetKind() != "Deployment" {
		return w
	}
	w.Paused, _, _ = unstructured.NestedBool(u.Object, "spec", "paused")
	w.Pods.Wanted, _, _ = unstructured.NestedInt64(u.Object, "spec", "replicas")
	status := func(field string) (n int64) { n, _, _ = unstructured.NestedInt64(u.Object, "status", field); return n }
	w.Pods.Total, w.Pods.Updated, w.Pods.Ready, w.Pods.Available = status("replicas"), status("updatedReplicas"), status("readyReplicas"), status("availableReplicas")
	return w
}

// read is a revision as plan knows it.
func read(u *unstructured.Unstructured) plan.Revision {
	r := plan.Revision{Name: u.GetName(), Annotations: maps.Clone(u.GetAnnotations())}
	r.Template = r.Annotations[plan.HashAnnotation]
	delete(r.Annotations, plan.HashAnnotation)
	if u.GetKind() == "ControllerRevision" {
		r.Number, _, _ = unstructured.NestedInt64(u.Object, "revision")
		return r
	}
	r.Number, _ = strconv.ParseInt(r.Annotations[plan.RevisionAnnotation], 10, 64)
	delete(r.Annotations, plan.RevisionAnnotation)
	r.Replicas, _, _ = unstructured.NestedInt64(u.Object, "spec", "replicas")
	status := func(field string) (n int64) { n, _, _ = unstructured.NestedInt64(u.Object, "status", field); return n }
	r.Status = plan.Status{Replicas: status("replicas"), Ready: status("readyReplicas"), Available: status("availableReplicas")}
	return r
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// revision is a new revision of a workload.
func (k *kind) revision(u *unstructured.Unstructured, w plan.Revision) *unstructured.Unstructured {
	template, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	template = plan.WithoutNulls(template)
	labels, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
	annotations := with(w.Annotations)
	out := &unstructured.Unstructured{}
	if k.revisions == replicaSets {
		annotations[plan.RevisionAnnotation] = number(w.Number)
		set(template, w.Template, "metadata", "labels", k.hashLabel)
		selector, _, _ := unstructured.NestedMap(u.Object, "spec", "selector")
		set(selector, w.Template, "matchLabels", k.hashLabel)
		out.Object = map[string]any{"spec": map[string]any{"replicas": w.Replicas, "selector": selector, "template": template}}
	} else {
		template["$patch"] = "replace"
		out.Object = map[string]any{"revision": w.Number, "data": map[string]any{"spec": map[string]any{"template": template}}}
	}
	out.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(k.revisionKind))
	out.SetNamespace(u.GetNamespace())
	out.SetName(w.Name)
	out.SetLabels(with(labels, k.hashLabel, w.Template, v1beta1.RevisionOfLabel, k.name))
	out.SetAnnotations(annotations)
	out.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(u, appsv1.SchemeGroupVersion.WithKind(k.name))})
	return out
}

// with copies labels or annotations, and adds keys and values.
func with(from map[string]string, added ...string) map[string]string {
	out := maps.Clone(from)
	if out == nil {
		out = map[string]string{}
	}
	for i := 0; i < len(added); i += 2 {
		out[added[i]] = added[i+1]
	}
	return out
}

// set sets a label in a map of maps. Where one of these is no map, the server refuses the whole.
func set(in map[string]any, value string, path ...string) {
	_ = unstructured.SetNestedField(in, value, path...)
}
