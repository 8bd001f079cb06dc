package main

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// decision is what the placement's own rules say of an object.
type decision struct {
	reasons map[string][]string
	notes   []string
	// everywhere: without a placement it goes to every selected cluster.
	everywhere bool
}

// decide runs the rules that place objects on what was read.
func decide(e evidence) decision {
	d := decision{everywhere: workloadOf(e.resource) == nil && v1beta1.FederatedKindOf(e.resource.GroupResource()) != nil}
	return d
}

// selected tells whether the object's annotation, if it has one, selects the cluster.
func selected(o *unstructured.Unstructured, c *v1beta1.Cluster) bool {
	value, ok := o.GetAnnotations()[v1beta1.ClusterSelectorAnnotation]
	if !ok {
		return true
	}
	selector, errs := v1beta1.ParseClusterSelector(value, field.NewPath(v1beta1.ClusterSelectorAnnotation))
	return len(errs) == 0 && selector.Matches(labels.Set(c.Labels))
}

// inSync tells whether a copy is as it is to be.
func inSync(e evidence, c *v1beta1.Cluster, u *unstructured.Unstructured) bool {
	return u.GetAnnotations()[v1beta1.SourceAnnotation] == string(e.object.GetUID())
}
