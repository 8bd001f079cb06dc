// Package openapi holds the generated OpenAPI definitions of the federation's own types, apart from the types so that
// those do not depend on what only a server needs. hack/update-codegen.sh makes them.
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
// The generator names Kubernetes' types in ours by their Go path (k8s.io/api/core/v1.Pod), Kubernetes' own definitions use model
// names (io.k8s.api.core.v1.Pod): All converts the former.
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

// modelName converts a Go path to a model name, and leaves model names alone.
func modelName(name string) string {
	if strings.Contains(name, "/") {
		return util.ToRESTFriendlyName(name)
	}
	return name
}
