package policy

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
	base "federation/apiserver/registry/strategy"
	"federation/apiserver/validation"
)

// strategy handles creates and updates of a policy.
type strategy struct{ base.WithStatus }

func newStrategy() strategy { return strategy{base.WithStatus{Base: base.NewBase()}} }

// NamespaceScoped implements rest.RESTCreateStrategy.
func (strategy) NamespaceScoped() bool { return true }

func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	p := obj.(*v1beta1.PlacementPolicy)
	p.Status = v1beta1.PlacementPolicyStatus{}
	p.Generation = 1
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	p, was := obj.(*v1beta1.PlacementPolicy), old.(*v1beta1.PlacementPolicy)
	p.Status = was.Status
	if !reflect.DeepEqual(p.Spec, was.Spec) {
		p.Generation = was.Generation + 1
	}
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidatePlacementPolicy(obj.(*v1beta1.PlacementPolicy))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePlacementPolicyUpdate(obj.(*v1beta1.PlacementPolicy), old.(*v1beta1.PlacementPolicy))
}

func (strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return validation.WarnOfPlacementPolicy(obj.(*v1beta1.PlacementPolicy))
}

func (strategy) WarningsOnUpdate(_ context.Context, obj, _ runtime.Object) []string {
	return validation.WarnOfPlacementPolicy(obj.(*v1beta1.PlacementPolicy))
}

// statusStrategy handles updates of a policy's status.
type statusStrategy struct {
	strategy
	base.OfStatus
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	obj.(*v1beta1.PlacementPolicy).Spec = old.(*v1beta1.PlacementPolicy).Spec
}

func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePlacementPolicyStatusUpdate(obj.(*v1beta1.PlacementPolicy), old.(*v1beta1.PlacementPolicy))
}

func (statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
