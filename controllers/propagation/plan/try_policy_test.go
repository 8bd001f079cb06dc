package plan

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestTryOverrides_ForTheClustersTheyAreFor(t *testing.T) {
	clusters := []*v1beta1.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "west-a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "east-a"}}}
	web := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": map[string]any{"namespace": "default", "name": "web"},
		"spec": map[string]any{"replicas": int64(3), "template": map[string]any{}},
	}}
	of := func(clusters *v1beta1.ClusterAffinity, op v1beta1.JSONPatchOperation) *v1beta1.PlacementPolicy {
		return &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: v1beta1.PlacementPolicySpec{
			Overrides: []v1beta1.Override{{Clusters: clusters, JSONPatch: []v1beta1.JSONPatchOperation{op}}}}}
	}
	value := apiextensionsv1.JSON{Raw: []byte(`"x"`)}
	bad := v1beta1.JSONPatchOperation{Op: "replace", Path: "/spec/template/spec/containers/7/image", Value: &value}
	west, mars := &v1beta1.ClusterAffinity{Names: []string{"west-a"}}, &v1beta1.ClusterAffinity{Names: []string{"mars"}}
	for name, c := range map[string]struct {
		policy *v1beta1.PlacementPolicy
		want   string
	}{
		"a path that is not there":  {of(nil, bad), "cluster east-a: policy p: spec.overrides[0].jsonPatch[0]: replace /spec/template/spec/containers/7/image"},
		"in one cluster":            {of(west, bad), "cluster west-a: policy p"},
		"for no cluster":            {of(mars, bad), ""},
		"a field that is fixed":     {of(nil, v1beta1.JSONPatchOperation{Op: "replace", Path: "/kind", Value: &value}), "kind"},
		"an annotation, which fits": {of(nil, v1beta1.JSONPatchOperation{Op: "add", Path: "/spec/minReadySeconds", Value: &apiextensionsv1.JSON{Raw: []byte("5")}}), ""},
	} {
		err := TryOverrides(c.policy, web, clusters)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
