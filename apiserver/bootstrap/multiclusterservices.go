package bootstrap

import (
	"bytes"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/mcs-api/config/crd"
)

// multiClusterServices returns the CustomResourceDefinitions of the Multi-Cluster Services API (KEP-1645), as its module has them:
// ServiceExports and ServiceImports, in the versions v1alpha1 and v1beta1 (stored).
func multiClusterServices() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, text := range [][]byte{crd.ServiceExportCRD, crd.ServiceImportCRD} {
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text)).Decode(d); err != nil {
			return nil, fmt.Errorf("definition of the Multi-Cluster Services API: %w", err)
		}
		all = append(all, d)
	}
	return all, nil
}
