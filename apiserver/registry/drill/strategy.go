package drill

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
	base "federation/apiserver/registry/strategy"
	"federation/apiserver/validation"
)

// strategy handles creates and updates of a drill.
type strategy struct{ base.WithStatus }

func newStrategy() strategy { return strategy{base.WithStatus{Base: base.NewBase()}} }

// PrepareForCreate adds the finalizer, so that a delete undoes every drill, and records the creator. For a drill of a
// schedule that is the schedule's owner, as the controllers say.
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

// statusStrategy handles updates of a drill's status by the controller. It keeps people's decisions about it.
type statusStrategy struct {
	strategy
	base.OfStatus
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	d, was := obj.(*v1beta1.FailoverDrill), old.(*v1beta1.FailoverDrill)
	d.Spec, d.Status.RequestedBy, d.Status.Approved, d.Status.Abort = was.Spec, was.Status.RequestedBy, was.Status.Approved, was.Status.Abort
}

// decisionStrategy handles somebody's decision about a drill, by the subresource abort or approval: all else stays, and
// so does the first decision.
type decisionStrategy struct {
	strategy
	base.OfStatus
	of   func(*v1beta1.FailoverDrillStatus) **v1beta1.DrillDecision
	path *field.Path
}

func (s decisionStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	d, was := obj.(*v1beta1.FailoverDrill), old.(*v1beta1.FailoverDrill)
	asked := *s.of(&d.Status)
	d.ObjectMeta, d.Spec, d.Status = was.ObjectMeta, was.Spec, was.Status
	if *s.of(&was.Status) != nil || was.IsFinished() {
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
