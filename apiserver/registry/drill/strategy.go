package drill

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
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

// PrepareForCreate gives the drill its finalizer, so that there is none that a delete would not undo, and notes who makes it. What a schedule makes
// is made by whose it is: the controllers say so.
func (strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	d := obj.(*v1beta1.FailoverDrill)
	by := base.UserOf(ctx)
	if by == pki.ControllersUser {
		by = d.Status.RequestedBy
	}
	d.Status, d.Generation = v1beta1.FailoverDrillStatus{RequestedBy: by}, 1
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

// statusStrategy is what is done to a drill whose status the controller writes. What people decided about it stays.
type statusStrategy struct {
	strategy
}

func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return base.ResetField("spec")
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	d, was := obj.(*v1beta1.FailoverDrill), old.(*v1beta1.FailoverDrill)
	d.Spec, d.Status.RequestedBy, d.Status.Approved, d.Status.Abort = was.Spec, was.Status.RequestedBy, was.Status.Approved, was.Status.Abort
}

// decisionStrategy is what is done to a drill about which somebody decides, by the subresource abort or approval: all else stays, and so does what was
// decided first.
type decisionStrategy struct {
	strategy
	of   func(*v1beta1.FailoverDrillStatus) **v1beta1.DrillDecision
	path *field.Path
}

func (decisionStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return base.ResetField("spec")
}

func (s decisionStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	d, was := obj.(*v1beta1.FailoverDrill), old.(*v1beta1.FailoverDrill)
	asked := *s.of(&d.Status)
	d.ObjectMeta, d.Spec, d.Status = was.ObjectMeta, was.Spec, was.Status
	if *s.of(&was.Status) != nil || was.Over() {
		return
	}
	decision := &v1beta1.DrillDecision{At: metav1.Now(), By: base.UserOf(ctx)}
	if asked != nil {
		decision.Reason = asked.Reason
	}
	*s.of(&d.Status) = decision
}

func (s decisionStrategy) ValidateUpdate(_ context.Context, obj, _ runtime.Object) field.ErrorList {
	return validation.ValidateDrillDecision(*s.of(&obj.(*v1beta1.FailoverDrill).Status), s.path)
}
