package client

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"federation/apiserver/apis/federation/v1beta1"
)

// PageSize is the number of objects per page.
const PageSize = 500

// ListPages calls each with every object of a resource, page by page; without a selector, with those that are no revisions.
func ListPages(ctx context.Context, r dynamic.ResourceInterface, o metav1.ListOptions, each func(*unstructured.Unstructured) error) error {
	o.Limit = PageSize
	if o.LabelSelector == "" {
		o.LabelSelector = v1beta1.NotRevisions
	}
	for {
		page, err := r.List(ctx, o)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := each(&page.Items[i]); err != nil {
				return err
			}
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}

// ListMetadata is ListPages of the metadata only.
func (f *Federation) ListMetadata(ctx context.Context, r schema.GroupVersionResource, each func(metav1.Object)) error {
	o := metav1.ListOptions{Limit: PageSize, LabelSelector: v1beta1.NotRevisions}
	for {
		page, err := f.Metadata.Resource(r).List(ctx, o)
		if err != nil {
			return err
		}
		for i := range page.Items {
			each(&page.Items[i])
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return nil
		}
	}
}

// ReadAll reads all objects of one of our own kinds.
func ReadAll[T any](ctx context.Context, from dynamic.ResourceInterface) (all []*T, err error) {
	err = ListPages(ctx, from, metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
		one, err := typed[T](u)
		all = append(all, one)
		return err
	})
	return all, err
}

// Read reads an object of one of our own kinds.
func Read[T any](ctx context.Context, from dynamic.ResourceInterface, name string) (*T, error) {
	u, err := from.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return typed[T](u)
}

// typed returns an object without its managed fields, which mean nothing to users.
func typed[T any](u *unstructured.Unstructured) (*T, error) {
	u.SetManagedFields(nil)
	one := new(T)
	return one, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, one)
}

// IgnoreNotFound turns "not found" into no error.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
