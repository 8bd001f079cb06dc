package memapi

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// builtin knows the schemas of the kinds that Kubernetes has: they are one large document, read once.
var builtin = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

// custom is the schema of all other kinds: as deduced from the object, but for the lists that several write to.
var custom = sync.OnceValue(func() managedfields.TypeConverter {
	parser, err := typed.NewParser(customSchema)
	if err != nil {
		panic(err) // the schema is below
	}
	return oneType{parser.Type("object")}
})

const customSchema = `types:
- name: object
  map:
    fields:
    - {name: metadata, type: {namedType: metadata}}
    - {name: spec, type: {namedType: any}}
    - {name: status, type: {namedType: status}}
    elementType: {namedType: any}
- name: metadata
  map:
    fields:
    - name: finalizers
      type: {list: {elementType: {scalar: string}, elementRelationship: associative}}
    elementType: {namedType: any}
- name: status
  map:
    fields:
    - name: conditions
      type: {list: {elementType: {namedType: any}, elementRelationship: associative, keys: [type]}}
    elementType: {namedType: any}
- name: any
  scalar: untyped
  list: {elementType: {namedType: whole}, elementRelationship: atomic}
  map: {elementType: {namedType: any}, elementRelationship: separable}
- name: whole
  scalar: untyped
  list: {elementType: {namedType: whole}, elementRelationship: atomic}
  map: {elementType: {namedType: whole}, elementRelationship: atomic}
`

// oneType takes every object for one of the same type.
type oneType struct{ typed.ParseableType }

// ObjectToTyped implements managedfields.TypeConverter.
func (t oneType) ObjectToTyped(obj runtime.Object, o ...typed.ValidationOptions) (*typed.TypedValue, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("a %T in place of an unstructured object", obj)
	}
	return t.FromUnstructured(u.Object, o...)
}

// TypedToObject implements managedfields.TypeConverter.
func (oneType) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	m, ok := v.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a %T in place of an object", v.AsValue().Unstructured())
	}
	return &unstructured.Unstructured{Object: m}, nil
}
