package plan

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
)

// The scale of an object of a custom kind has the sum of its copies' replicas, and what most of these say that selects their pods.
func TestScaleStatus(t *testing.T) {
	copyWith := func(cluster string, status map[string]any) Copy {
		return Copy{Cluster: cluster, Object: &unstructured.Unstructured{Object: map[string]any{"status": status}}}
	}
	says := func(cluster string, replicas int64, selector string) Copy {
		return copyWith(cluster, map[string]any{"replicas": replicas, "selector": selector})
	}
	long := "app in (" + strings.Repeat("a,", maxSelector) + "b)"
	for _, c := range []struct {
		name   string
		now    map[string]any
		copies []Copy
		want   map[string]any
	}{
		{"all say the same", nil, []Copy{says("a", 2, "app=web"), says("b", 3, "app=web")}, map[string]any{"replicas": int64(5), "selector": "app=web"}},
		{"nothing changes", map[string]any{"replicas": int64(5), "selector": "app=web"}, []Copy{says("a", 2, "app=web"), says("b", 3, "app=web")}, map[string]any{}},
		{"one lies", nil, []Copy{says("a", -2, "app=other"), says("b", 3, "app=web"), says("c", 3, "app=web")}, map[string]any{"replicas": int64(6), "selector": "app=web"}},
		{"one of two lies: the present one stays", map[string]any{"replicas": int64(6), "selector": "app=web"}, []Copy{says("a", 3, "app=other"), says("b", 3, "app=web")}, map[string]any{}},
		{"no selectors", map[string]any{"selector": "app=web"}, []Copy{says("a", 1, "not a selector!"), says("b", 1, ""), says("c", 1, long)}, map[string]any{"replicas": int64(3)}},
		{"huge", nil, []Copy{says("a", 1<<62, ""), says("b", 1<<62, "")}, map[string]any{"replicas": int64((1<<31 - 1) / 2 * 2)}},
		{"other types", nil, []Copy{copyWith("a", map[string]any{"replicas": "3", "selector": int64(3)})}, map[string]any{"replicas": int64(0)}},
		{"no copy", nil, []Copy{{Cluster: "a"}}, map[string]any{"replicas": int64(0)}},
	} {
		row := CustomKind(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, "Widget")
		row.Scale = &Scale{Replicas: "replicas", Selector: "selector"}
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(5)}, "status": c.now}}
		s := Source{Kind: &row, Object: object, Policy: &v1beta1.PlacementPolicy{Spec: v1beta1.PlacementPolicySpec{ReplicaPreferences: &v1beta1.ReplicaPreferences{}}}}
		if got := ScaleStatus(s, c.copies); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		s.Policy = nil
		if got := ScaleStatus(s, c.copies); got != nil {
			t.Errorf("%s: it is not divided, and %v is written", c.name, fmt.Sprint(got))
		}
	}
}
