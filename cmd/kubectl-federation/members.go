package main

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// isOurCopy reports whether an object in a member is a copy of this federation's.
func isOurCopy(u *unstructured.Unstructured, uid string) bool {
	return u != nil && v1beta1.IsCopy(u, u.GroupVersionKind().GroupKind(), uid)
}
