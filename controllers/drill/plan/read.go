package plan

import (
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"federation/apiserver/apis/federation/v1beta1"
)

// FieldManager owns what drills write of Clusters, and the drills' own status.
const FieldManager = "federation-drill"

// StoppedBy returns why no drill may run, by the annotations of the federation's namespace; "" if drills may.
func StoppedBy(annotations map[string]string) string {
	why, there := annotations[v1beta1.StopDrillsAnnotation]
	if there && why == "" {
		why = "no reason is given"
	}
	return why
}

// ReadObject reads what drills need of a federated object. A Job has no replicas that stay ready.
func ReadObject(u *unstructured.Unstructured) Object {
	o := Object{Name: u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName(), namespace: u.GetNamespace()}
	if p := v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation]); p != nil {
		o.Placed, o.Unplaced, o.Home = p.Clusters, p.Unschedulable, p.Home
	}
	if o.Counts = u.GetKind() != "Job"; o.Counts {
		o.Ready, _, _ = unstructured.NestedInt64(u.Object, "status", "readyReplicas")
		for _, n := range o.Placed {
			o.Asked += n
		}
		o.Asked += o.Unplaced
	}
	propagated := v1beta1.ConditionOf(u, v1beta1.ConditionPropagated)
	if o.Moving = propagated != nil && propagated["status"] != string(metav1.ConditionTrue); o.Moving {
		since, _ := propagated["lastTransitionTime"].(string)
		o.Since, _ = time.Parse(time.RFC3339, since) // zero if unknown
	}
	o.pods, _, _ = unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "labels")
	return o
}

// selected is a PodDisruptionBudget's selector and its index among the world's.
type selected struct {
	labels.Selector
	index int
}

// AddBudget adds a PodDisruptionBudget to the world. All must be added before the first object.
func (w *World) AddBudget(b *policyv1.PodDisruptionBudget) {
	if b.DeletionTimestamp != nil || b.Spec.Selector == nil {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return // the API rejects those
	}
	if w.selects == nil {
		w.selects = map[string][]selected{}
	}
	w.selects[b.Namespace] = append(w.selects[b.Namespace], selected{selector, len(w.Budgets)})
	w.Budgets = append(w.Budgets, Budget{Name: b.Namespace + "/" + b.Name, MinAvailable: b.Spec.MinAvailable, MaxUnavailable: b.Spec.MaxUnavailable})
}

// Add adds an object to the world, and to the budgets that select its pods.
func (w *World) Add(o *Object) {
	w.Objects = append(w.Objects, *o)
	for _, s := range w.selects[o.namespace] {
		if o.Counts && s.Matches(labels.Set(o.pods)) {
			w.Budgets[s.index].Objects = append(w.Budgets[s.index].Objects, len(w.Objects)-1)
		}
	}
}
