package drillschedule

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"federation/apiserver/apis/federation/v1beta1"
	base "federation/apiserver/registry/strategy"
	"federation/apiserver/validation"
)

// strategy is what is done to a schedule that is created or changed.
type strategy struct{ base.Base }

func newStrategy() strategy { return strategy{base.NewBase()} }

// GetResetFields names what users cannot set in the main resource.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return base.ResetField("status")
}

// PrepareForCreate notes who makes the schedule.
func (strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s := obj.(*v1beta1.FailoverDrillSchedule)
	s.Status, s.Generation = v1beta1.FailoverDrillScheduleStatus{RequestedBy: base.UserOf(ctx)}, 1
}

// PrepareForUpdate notes who changes what the schedule makes. Who suspends it changes nothing of that.
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

// statusStrategy is what is done to a schedule whose status the controller writes. Whose it is stays.
type statusStrategy struct {
	strategy
}

func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return base.ResetField("spec")
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	s, was := obj.(*v1beta1.FailoverDrillSchedule), old.(*v1beta1.FailoverDrillSchedule)
	s.Spec, s.Status.RequestedBy = was.Spec, was.Status.RequestedBy
}
