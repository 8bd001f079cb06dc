// Package v1beta1 holds the API types of the group "federation", version v1beta1, and the
// annotations and labels by which users and components of a federation talk to each other.
//
// There is no separate internal version: the apiserver registers these very types as internal
// too, so no conversion exists that could go wrong.
//
// The package is pure: values in, values out.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=federation.v1beta1
// +groupName=federation
package v1beta1
