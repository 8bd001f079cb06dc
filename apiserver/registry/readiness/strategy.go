package readiness

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
	base "federation/apiserver/registry/strategy"
	"federation/apiserver/validation"
)

// strategy handles creates and updates of a FailoverReadiness.
type strategy struct{ base.WithStatus }

func newStrategy() strategy { return strategy{base.WithStatus{Base: base.NewBase()}} }

func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	r := obj.(*v1beta1.FailoverReadiness)
	r.Status = v1beta1.FailoverReadinessStatus{}
	r.Generation = 1
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	obj.(*v1beta1.FailoverReadiness).Status = old.(*v1beta1.FailoverReadiness).Status
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateFailoverReadiness(obj.(*v1beta1.FailoverReadiness))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateFailoverReadinessUpdate(obj.(*v1beta1.FailoverReadiness), old.(*v1beta1.FailoverReadiness))
}

// statusStrategy handles updates of its status.
type statusStrategy struct {
	strategy
	base.OfStatus
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	obj.(*v1beta1.FailoverReadiness).Spec = old.(*v1beta1.FailoverReadiness).Spec
}

func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateFailoverReadinessStatusUpdate(obj.(*v1beta1.FailoverReadiness), old.(*v1beta1.FailoverReadiness))
}
