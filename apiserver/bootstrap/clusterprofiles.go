package bootstrap

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inventoryGroup is the API group of SIG Multicluster: of its Cluster Inventory API and its Multi-Cluster Services API.
const inventoryGroup = "multicluster.x-k8s.io"

// EnsureMultiClusterKinds defines ClusterProfiles, PlacementDecisions, ServiceExports and ServiceImports, unless somebody has: a
// definition that is there is left as it is.
func EnsureMultiClusterKinds(ctx context.Context, definitions apiextensions.CustomResourceDefinitionInterface) error {
	all, err := multiClusterServices()
	if err != nil {
		return err
	}
	for _, d := range append(all, clusterProfiles(), placementDecisions()) {
		if _, err := definitions.Create(ctx, d, metav1.CreateOptions{}); err != nil && !errors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// clusterProfiles returns the CustomResourceDefinition of ClusterProfiles: what the Cluster Inventory API (KEP-4322) has in
// its versions v1alpha1 and v1alpha2.
func clusterProfiles() *apiextensionsv1.CustomResourceDefinition {
	version := func(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		schema := schemaOfProfile()
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: storage,
			Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{
				{Name: "Manager", Type: "string", JSONPath: ".spec.clusterManager.name"},
				{Name: "Version", Type: "string", JSONPath: ".status.version.kubernetes"},
				{Name: "Healthy", Type: "string", JSONPath: `.status.conditions[?(@.type=="ControlPlaneHealthy")].status`},
				{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
			},
		}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: "clusterprofiles." + inventoryGroup,
			// The API server wants to know where a group of Kubernetes' own was agreed upon.
			Annotations: map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "https://github.com/kubernetes/enhancements/pull/4323"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: inventoryGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "clusterprofiles", Singular: "clusterprofile", Kind: "ClusterProfile", ListKind: "ClusterProfileList", Categories: []string{"multicluster"},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1alpha1", true), version("v1alpha2", false)},
		},
	}
}

type schema = apiextensionsv1.JSONSchemaProps

func schemaOfProfile() schema {
	text := func(most int64) schema { return schema{Type: "string", MaxLength: &most} }
	list := func(key string, of schema) schema {
		kind := "map"
		return schema{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &of}, XListType: &kind, XListMapKeys: []string{key}}
	}
	object := func(of map[string]schema, required ...string) schema {
		return schema{Type: "object", Properties: of, Required: required}
	}
	open := true
	anything := schema{Type: "object", XPreserveUnknownFields: &open}
	date := schema{Type: "string", Format: "date-time"}
	manager := object(map[string]schema{"name": text(63)}, "name")
	manager.XValidations = apiextensionsv1.ValidationRules{{Rule: "self == oldSelf", Message: "must stay as it is"}}
	way := object(map[string]schema{
		"server": text(2048), "tls-server-name": text(253), "insecure-skip-tls-verify": {Type: "boolean"},
		"certificate-authority-data": {Type: "string", Format: "byte"}, "certificate-authority": text(4096), "proxy-url": text(2048), "disable-compression": {Type: "boolean"},
		"extensions": list("name", object(map[string]schema{"name": text(253), "extension": anything}, "name", "extension")),
	}, "server")
	provider := object(map[string]schema{"name": text(253), "cluster": way}, "name", "cluster")
	status := object(map[string]schema{
		"conditions": list("type", object(map[string]schema{
			"type": text(316), "status": {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"True"`)}, {Raw: []byte(`"False"`)}, {Raw: []byte(`"Unknown"`)}}},
			"reason": text(1024), "message": text(32768), "lastTransitionTime": date, "observedGeneration": {Type: "integer", Format: "int64"},
		}, "type", "status", "reason", "message", "lastTransitionTime")),
		"version":         object(map[string]schema{"kubernetes": text(256)}),
		"properties":      list("name", object(map[string]schema{"name": text(253), "value": text(1024), "lastObservedTime": date}, "name", "value")),
		"accessProviders": list("name", provider),
	})
	return object(map[string]schema{
		"apiVersion": {Type: "string"}, "kind": {Type: "string"}, "metadata": {Type: "object"},
		"spec":   object(map[string]schema{"displayName": text(1024), "clusterManager": manager}, "clusterManager"),
		"status": status,
	}, "spec")
}
