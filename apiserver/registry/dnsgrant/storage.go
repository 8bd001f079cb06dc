package dnsgrant

import (
	"context"
	"reflect"

	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/store"
	base "federation/apiserver/registry/strategy"
	"federation/apiserver/registry/table"
	"federation/apiserver/validation"
)

// NewREST returns the storage of dnsnamegrants.
func NewREST(options generic.RESTOptionsGetter) (*store.REST, error) {
	return store.New(store.Kind{
		Object: &v1beta1.DNSNameGrant{}, List: &v1beta1.DNSNameGrantList{}, Resource: v1beta1.DNSNameGrantsResource, ShortName: "dng", Strategy: strategy{base.NewBase()}, Tables: tables,
	}, options)
}

// tables are the columns of `kubectl get dnsnamegrants`.
var tables = table.Convertor[*v1beta1.DNSNameGrant]{
	Columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the grant."},
		{Name: "Suffix", Type: "string", Description: "The name at and below which hosts are granted."},
		{Name: "Namespaces", Type: "string", Description: "The namespaces whose objects may have hosts there."},
		{Name: "Age", Type: "string", Description: "Time since the grant was made."},
	},
	Row: func(g *v1beta1.DNSNameGrant) []any {
		return []any{g.Name, g.Spec.Suffix, table.OrNone(table.FirstOf(maxWords, g.Spec.Namespaces, ",")), metatable.ConvertToHumanReadableDateType(g.CreationTimestamp)}
	},
}

// maxWords is how many names a cell shows.
const maxWords = 5

// strategy handles creates and updates of a grant.
type strategy struct{ base.Base }

func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	obj.(*v1beta1.DNSNameGrant).Generation = 1
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	g, was := obj.(*v1beta1.DNSNameGrant), old.(*v1beta1.DNSNameGrant)
	if !reflect.DeepEqual(g.Spec, was.Spec) {
		g.Generation = was.Generation + 1
	}
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateDNSNameGrant(obj.(*v1beta1.DNSNameGrant))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateDNSNameGrantUpdate(obj.(*v1beta1.DNSNameGrant), old.(*v1beta1.DNSNameGrant))
}
