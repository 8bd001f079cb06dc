package drill

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"federation/apiserver/apis/federation/v1beta1"
	base "federation/apiserver/registry/strategy"
	"federation/apiserver/validation"
)

// strategy is what is done to a drill that is created or changed.
type strategy struct{ base.Base }

func newStrategy() strategy { return strategy{base.NewBase()} }

// GetResetFields names what users cannot set in the main resource.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return base.ResetField("status")
}

// PrepareForCreate gives the drill its finalizer, so that there is none that a delete would not undo.
func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	d := obj.(*v1beta1.FailoverDrill)
	d.Status, d.Generation = v1beta1.FailoverDrillStatus{}, 1
	if !slices.Contains(d.Finalizers, v1beta1.DrillFinalizer) {
		d.Finalizers = append(d.Finalizers, v1beta1.DrillFinalizer)
	}
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	obj.(*v1beta1.FailoverDrill).Status = old.(*v1beta1.FailoverDrill).Status
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateFailoverDrill(obj.(*v1beta1.FailoverDrill))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateFailoverDrillUpdate(obj.(*v1beta1.FailoverDrill), old.(*v1beta1.FailoverDrill))
}

// statusStrategy is what is done to a drill whose status the controller writes. Who aborted it stays.
type statusStrategy struct {
	strategy
}

func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return base.ResetField("spec")
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	d, was := obj.(*v1beta1.FailoverDrill), old.(*v1beta1.FailoverDrill)
	d.Spec, d.Status.Abort = was.Spec, was.Status.Abort
}

// abortStrategy is what is done to a drill that somebody aborts: all but the reason stays, and who asked first stays who asked.
type abortStrategy struct {
	strategy
}

func (abortStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return base.ResetField("spec")
}

func (abortStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	d, was := obj.(*v1beta1.FailoverDrill), old.(*v1beta1.FailoverDrill)
	asked := d.Status.Abort
	d.ObjectMeta, d.Spec, d.Status = was.ObjectMeta, was.Spec, was.Status
	if was.Status.Abort != nil || was.Over() {
		return
	}
	d.Status.Abort = &v1beta1.DrillDecision{At: metav1.Now()}
	if asked != nil {
		d.Status.Abort.Reason = asked.Reason
	}
	if u, ok := genericapirequest.UserFrom(ctx); ok {
		d.Status.Abort.By = u.GetName()
	}
}

func (abortStrategy) ValidateUpdate(_ context.Context, obj, _ runtime.Object) field.ErrorList {
	return validation.ValidateDrillAbort(obj.(*v1beta1.FailoverDrill))
}
