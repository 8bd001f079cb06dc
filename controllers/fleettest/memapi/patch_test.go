package memapi

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestNormalizeDoesAsJSONDoes: what is copied without JSON is as it is with JSON, and the original is left alone.
func TestNormalizeDoesAsJSONDoes(t *testing.T) {
	for name, value := range map[string]any{
		"numbers": []any{1, int32(2), int64(3), 4.0, 4.5, 1e30, uint8(7)},
		"nothing": []any{nil, []any(nil), map[string]any(nil), []any{}, map[string]any{}},
		"strings": []any{"a", "ä<&>", "a\xffb", []string{"typed"}, map[string]string{"a": "b"}},
		"nested":  map[string]any{"list": []any{map[string]any{"n": int32(1), "b": true}}},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "A", "spec": value}}
		data, err := u.MarshalJSON()
		want := &unstructured.Unstructured{}
		if err != nil || want.UnmarshalJSON(data) != nil {
			t.Fatal(err)
		}
		if got := normalize(u); !reflect.DeepEqual(got.Object, want.Object) {
			t.Errorf("%s: %#v is made %#v, by JSON %#v", name, value, got.Object["spec"], want.Object["spec"])
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "A", "spec": map[string]any{"list": []any{"a"}}}}
	normalize(u).Object["spec"].(map[string]any)["list"].([]any)[0] = "b"
	if u.Object["spec"].(map[string]any)["list"].([]any)[0] != "a" {
		t.Error("the copy shares what it was copied from")
	}
}
