// Package openapi holds the generated OpenAPI definitions of the federation's own types, apart from
// the types so that those stay free of what only a server needs. hack/update-codegen.sh makes them.
package openapi

import (
	"maps"
	"strings"

	upstream "k8s.io/kubernetes/pkg/generated/openapi"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// All returns Kubernetes' definitions and ours.
//
// The generator names Kubernetes' types in ours by their Go path (k8s.io/api/core/v1.Pod), Kubernetes'
// own definitions by model name (io.k8s.api.core.v1.Pod): the former are made the latter here.
func All(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := upstream.GetOpenAPIDefinitions(ref)
	ours := GetOpenAPIDefinitions(func(name string) spec.Ref { return ref(modelName(name)) })
	for name, definition := range ours {
		for i, dependency := range definition.Dependencies {
			definition.Dependencies[i] = modelName(dependency)
		}
		ours[name] = definition
	}
	maps.Copy(all, ours)
	return all
}

// modelName makes the model name of a Go path, and leaves what is a model name.
func modelName(name string) string {
	if strings.Contains(name, "/") {
		return util.ToRESTFriendlyName(name)
	}
	return name
}
