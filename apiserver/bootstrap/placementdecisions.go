package bootstrap

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// placementDecisions returns the CustomResourceDefinition of PlacementDecisions: what the PlacementDecision API (KEP-5313) has in
// its version v1alpha1.
func placementDecisions() *apiextensionsv1.CustomResourceDefinition {
	most, text := int64(100), func(most int64) schema { return schema{Type: "string", MaxLength: &most} }
	object := func(of map[string]schema, required ...string) schema {
		return schema{Type: "object", Properties: of, Required: required}
	}
	ref := object(map[string]schema{"apiVersion": text(317), "kind": text(63), "namespace": text(63), "name": text(253)}, "name")
	decision := object(map[string]schema{"clusterProfileRef": ref, "reason": text(1024)}, "clusterProfileRef")
	whole := object(map[string]schema{
		"apiVersion": {Type: "string"}, "kind": {Type: "string"}, "metadata": {Type: "object"}, "schedulerName": text(253),
		"decisions": {Type: "array", MaxItems: &most, Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &decision}},
	}, "decisions")
	at := v1beta1.PlacementDecisionsResource
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: at.GroupResource().String()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: at.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: at.Resource, Singular: "placementdecision", Kind: "PlacementDecision", ListKind: "PlacementDecisionList", Categories: []string{"multicluster"},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: at.Version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &whole},
				AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{
					{Name: "Scheduler", Type: "string", JSONPath: ".schedulerName"},
					{Name: "Clusters", Type: "string", JSONPath: ".decisions[*].clusterProfileRef.name"},
					{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
				},
			}},
		},
	}
}
