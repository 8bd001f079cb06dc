// Package strategy has what the strategies of our own kinds share.
package strategy

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"federation/apiserver/apis/federation/v1beta1"
)

// Base is embedded by the strategy of a cluster-scoped kind of our own: objects are created only by a create, may be
// updated without a version, and have no warnings.
type Base struct {
	runtime.ObjectTyper
	names.NameGenerator
}

// NewBase returns the base for kinds of the process's scheme.
func NewBase() Base { return Base{legacyscheme.Scheme, names.SimpleNameGenerator} }

// NamespaceScoped implements rest.RESTCreateStrategy.
func (Base) NamespaceScoped() bool { return false }

// AllowCreateOnUpdate implements rest.RESTUpdateStrategy.
func (Base) AllowCreateOnUpdate() bool { return false }

// AllowUnconditionalUpdate implements rest.RESTUpdateStrategy.
func (Base) AllowUnconditionalUpdate() bool { return true }

// Canonicalize implements rest.RESTCreateStrategy.
func (Base) Canonicalize(runtime.Object) {}

// WarningsOnCreate implements rest.RESTCreateStrategy.
func (Base) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (Base) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string { return nil }

// WithStatus is embedded in place of Base by the strategy of a kind whose status only a subresource sets.
type WithStatus struct{ Base }

// GetResetFields implements rest.ResetFieldsStrategy.
func (WithStatus) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set { return field("status") }

// OfStatus is embedded, beside the strategy of the kind, by that of a subresource that sets only the status.
type OfStatus struct{}

// GetResetFields implements rest.ResetFieldsStrategy.
func (OfStatus) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set { return field("spec") }

// field names one field of the objects.
func field(name string) map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1beta1.SchemeGroupVersion.String()): fieldpath.NewSet(fieldpath.MakePathOrDie(name)),
	}
}

// UserOf returns the name of the user of ctx, or "".
func UserOf(ctx context.Context) string {
	if u, ok := genericapirequest.UserFrom(ctx); ok {
		return u.GetName()
	}
	return ""
}
