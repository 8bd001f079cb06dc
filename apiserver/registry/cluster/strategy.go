package cluster

import (
	"context"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
	base "federation/apiserver/registry/strategy"
	"federation/apiserver/validation"
)

// strategy handles creates and updates of a Cluster.
type strategy struct{ base.WithStatus }

func newStrategy() strategy { return strategy{base.WithStatus{Base: base.NewBase()}} }

func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	c := obj.(*v1beta1.Cluster)
	c.Status = v1beta1.ClusterStatus{}
	c.Generation = 1
	dateTaints(c.Spec.Taints, nil)
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	c, was := obj.(*v1beta1.Cluster), old.(*v1beta1.Cluster)
	c.Status = was.Status
	dateTaints(c.Spec.Taints, was.Spec.Taints)
	if !reflect.DeepEqual(c.Spec, was.Spec) {
		c.Generation = was.Generation + 1
	}
}

// dateTaints sets since when objects have had to leave: an existing taint keeps its date.
func dateTaints(taints, old []corev1.Taint) {
	for i := range taints {
		t := &taints[i]
		if t.Effect != corev1.TaintEffectNoExecute || t.TimeAdded != nil {
			continue
		}
		if j := slices.IndexFunc(old, func(was corev1.Taint) bool { return was.MatchTaint(t) }); j >= 0 && old[j].TimeAdded != nil {
			t.TimeAdded = old[j].TimeAdded
		} else {
			t.TimeAdded = new(metav1.Now().Rfc3339Copy())
		}
	}
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateCluster(obj.(*v1beta1.Cluster))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateClusterUpdate(obj.(*v1beta1.Cluster), old.(*v1beta1.Cluster))
}

// statusStrategy handles updates of a Cluster's status.
type statusStrategy struct {
	strategy
	base.OfStatus
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	obj.(*v1beta1.Cluster).Spec = old.(*v1beta1.Cluster).Spec
}

func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateClusterStatusUpdate(obj.(*v1beta1.Cluster), old.(*v1beta1.Cluster))
}
