package admission

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"federation/apiserver/apis/federation/v1beta1"
)

// keepClusterSetIPs leaves a Service the addresses that it has when its user asks for some again, as every apply of his
// manifest does.
func keepClusterSetIPs(object metav1.Object, old map[string]string) {
	const key = v1beta1.ClusterSetIPAnnotation
	if object.GetAnnotations()[key] == v1beta1.ClusterSetIPAuto && old[key] != "" {
		annotate(object, key, old[key])
	}
}

// checkClusterSetIPs refuses addresses that the federation has not given: two Services could have the same.
func checkClusterSetIPs(a admission.Attributes, object metav1.Object, old map[string]string) field.ErrorList {
	const key = v1beta1.ClusterSetIPAnnotation
	value, there := object.GetAnnotations()[key]
	if !there || value == v1beta1.ClusterSetIPAuto || value == old[key] || ofControllers(a) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "annotations").Key(key), `addresses are given by the federation: write "`+v1beta1.ClusterSetIPAuto+`"`)}
}
