package drillschedule

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
	base "federation/apiserver/registry/strategy"
	"federation/apiserver/validation"
)

// strategy handles creates and updates of a schedule.
type strategy struct{ base.WithStatus }

func newStrategy() strategy { return strategy{base.WithStatus{Base: base.NewBase()}} }

// PrepareForCreate records the creator of the schedule.
func (strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s := obj.(*v1beta1.FailoverDrillSchedule)
	s.Status, s.Generation = v1beta1.FailoverDrillScheduleStatus{RequestedBy: base.UserOf(ctx)}, 1
}

// PrepareForUpdate records who changes what the schedule makes. Suspending it does not.
func (strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s, was := obj.(*v1beta1.FailoverDrillSchedule), old.(*v1beta1.FailoverDrillSchedule)
	s.Status = was.Status
	if !apiequality.Semantic.DeepEqual(s.Spec, was.Spec) {
		s.Generation = was.Generation + 1
	}
	if was.MakesOther(s) {
		s.Status.RequestedBy = base.UserOf(ctx)
	}
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateFailoverDrillSchedule(obj.(*v1beta1.FailoverDrillSchedule))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateFailoverDrillScheduleUpdate(obj.(*v1beta1.FailoverDrillSchedule), old.(*v1beta1.FailoverDrillSchedule))
}

// statusStrategy handles updates of a schedule's status by the controller. It keeps the owner.
type statusStrategy struct {
	strategy
	base.OfStatus
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	s, was := obj.(*v1beta1.FailoverDrillSchedule), old.(*v1beta1.FailoverDrillSchedule)
	s.Spec, s.Status.RequestedBy = was.Spec, was.Status.RequestedBy
}
