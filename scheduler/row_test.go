package scheduler

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestAMadeUpKindIsOneRow: a row of v1beta1.FederatedKinds is all that a divided kind needs to be read and divided.
func TestAMadeUpKindIsOneRow(t *testing.T) {
	before := v1beta1.FederatedKinds
	t.Cleanup(func() { v1beta1.FederatedKinds = before })
	v1beta1.FederatedKinds = append(before[:len(before):len(before)], v1beta1.FederatedKind{
		Resource: schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}, Kind: "Widget",
		Preferences: "example.org/widget-preferences", Replicas: "size", Ready: "readySize",
	})
	o, err := Read(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget", "spec": map[string]any{"size": int64(9), "replicas": int64(1)},
		"metadata": map[string]any{"namespace": "shop", "name": "web", "annotations": map[string]any{
			"example.org/widget-preferences": `{"rebalance":true,"clusters":{"a":{"weight":2},"b":{"weight":1}}}`}},
	}})
	if err != nil || !o.Divided || o.Replicas != 9 || Preferences(schema.GroupKind{Group: "example.org", Kind: "Widget"}) == "" {
		t.Fatalf("read as %+v, %v", o, err)
	}
	d := Decide(o, NewWorld([]*v1beta1.Cluster{cluster("a", 0), cluster("b", 0), cluster("c", 0)}, nil), now)
	if want := map[string]int64{"a": 6, "b": 3}; !maps.Equal(d.Placement.Clusters, want) {
		t.Errorf("placed as %v, want %v", d.Placement.Clusters, want)
	}
	other := o
	other.APIVersion, other.Kind = "example.com/v1", "Widget"
	if rowOf(&o) == nil || rowOf(&other) != nil {
		t.Error("a kind of another group has no row")
	}
}
