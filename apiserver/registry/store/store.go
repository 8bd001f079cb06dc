// Package store makes the storage of our own kinds.
package store

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Kind is a kind of our own.
type Kind struct {
	// Object and List are empty ones.
	Object, List runtime.Object
	Resource     schema.GroupVersionResource
	// ShortName is what kubectl knows it by, beside its singular and plural.
	ShortName string
	// Strategy handles its creates, updates and deletes, and may say what users cannot set.
	Strategy Strategy
	Tables   rest.TableConvertor
}

// Strategy handles creates, updates and deletes.
type Strategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
	rest.RESTDeleteStrategy
}

// REST serves a kind of our own.
type REST struct {
	*genericregistry.Store
	shortName string
}

var (
	_ rest.ShortNamesProvider = &REST{}
	_ rest.CategoriesProvider = &REST{}
)

// ShortNames returns the short name that kubectl knows.
func (r *REST) ShortNames() []string { return []string{r.shortName} }

// Categories adds the kind to "kubectl get federation".
func (*REST) Categories() []string { return []string{"federation"} }

// New returns the storage of a kind.
func New(k Kind, options generic.RESTOptionsGetter) (*REST, error) {
	resets, _ := k.Strategy.(rest.ResetFieldsStrategy)
	singular := strings.ToLower(reflect.TypeOf(k.Object).Elem().Name())
	s := &genericregistry.Store{
		NewFunc:                   k.Object.DeepCopyObject,
		NewListFunc:               k.List.DeepCopyObject,
		DefaultQualifiedResource:  k.Resource.GroupResource(),
		SingularQualifiedResource: schema.GroupResource{Group: k.Resource.Group, Resource: singular},
		CreateStrategy:            k.Strategy,
		UpdateStrategy:            k.Strategy,
		DeleteStrategy:            k.Strategy,
		ResetFieldsStrategy:       resets,
		TableConvertor:            k.Tables,
	}
	if err := s.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options}); err != nil {
		return nil, err
	}
	return &REST{s, k.ShortName}, nil
}
