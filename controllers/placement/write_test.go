package placement

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// A placement replaces only the one it was decided from: a former leader that does not know yet moves nothing.
func TestAPlacementReplacesTheOneItWasDecidedFrom(t *testing.T) {
	object := func(uid string, annotations map[string]any) *unstructured.Unstructured {
		metadata := map[string]any{"name": "web", "uid": uid}
		if annotations != nil {
			metadata["annotations"] = annotations
		}
		return &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
	}
	with := func(placement string) map[string]any {
		return map[string]any{"team": "a", v1beta1.PlacementAnnotation: placement}
	}
	for name, c := range map[string]struct {
		known, live *unstructured.Unstructured
		was         string
		refused     bool
	}{
		"the same":                          {object("1", with("old")), object("1", with("old")), "old", false},
		"another process has decided since": {object("1", with("old")), object("1", with("newer")), "old", true},
		"taken away since":                  {object("1", with("old")), object("1", map[string]any{"team": "a"}), "old", true},
		"our own of before, not cached yet": {object("1", with("old")), object("1", with("ours")), "ours", false},
		"another object of the name":        {object("1", with("old")), object("2", with("old")), "old", true},
		"none yet":                          {object("1", map[string]any{"team": "a"}), object("1", map[string]any{"team": "b"}), "", false},
		"none yet, and one by now":          {object("1", map[string]any{"team": "a"}), object("1", with("newer")), "", true},
		"no annotations":                    {object("1", nil), object("1", nil), "", false},
		"no annotations, and some by now":   {object("1", nil), object("1", with("newer")), "", true},
		"emptied":                           {object("1", with("")), object("1", with("")), "", false},
		"emptied, and decided since":        {object("1", with("")), object("1", with("newer")), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal((&intent{u: c.known, value: "decided", was: c.was}).operations())
			if err != nil {
				t.Fatal(err)
			}
			patch, err := jsonpatch.DecodePatch(body)
			if err != nil {
				t.Fatal(err)
			}
			before, _ := c.live.MarshalJSON()
			after, err := patch.Apply(before)
			if (err != nil) != c.refused {
				t.Fatalf("%s, %v; refused: want %v", after, err, c.refused)
			}
			if err != nil {
				return
			}
			var got unstructured.Unstructured
			if err := json.Unmarshal(after, &got.Object); err != nil || placementOf(&got) != "decided" || got.GetAnnotations()["team"] != c.live.GetAnnotations()["team"] {
				t.Errorf("%s, %v", after, err)
			}
		})
	}
}
