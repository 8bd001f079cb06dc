package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
)

// Object returns what to apply to the Cluster's status with FieldManager and force. It names the UID and the version of the
// Cluster that the mark was decided from: the API server refuses it with a conflict once the Cluster has changed.
func (m Mark) Object() (*unstructured.Unstructured, error) {
	status := &v1beta1.ClusterStatus{}
	if m.Condition != nil {
		status.Conditions = []v1beta1.ClusterCondition{*m.Condition}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": content}}
	u.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind("Cluster"))
	u.SetName(m.Cluster.Name)
	u.SetUID(m.Cluster.UID)
	u.SetResourceVersion(m.Cluster.ResourceVersion)
	return u, nil
}

// Unstructured returns an object of the group federation, a *v1beta1.FailoverDrill for example, as dynamic clients take it.
func Unstructured(obj any, kind string) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind(kind))
	return u, nil
}
