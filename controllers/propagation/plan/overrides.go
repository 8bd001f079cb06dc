package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// override applies the overrides of the policy that match the cluster. The error names the policy, the field
// and the cause.
func (s Source) override(u *unstructured.Unstructured, t Target) (*unstructured.Unstructured, error) {
	if s.Policy == nil {
		return u, nil
	}
	var doc []byte
	for i, o := range s.Policy.Spec.Overrides {
		if o.Clusters != nil && !o.Clusters.Matches(t.Cluster) {
			continue
		}
		for j, op := range o.JSONPatch {
			at := fmt.Sprintf("policy %s: spec.overrides[%d].jsonPatch[%d]", s.Policy.Name, i, j)
			if doc == nil {
				var err error
				if doc, err = u.MarshalJSON(); err != nil {
					return nil, fmt.Errorf("%s: %w", at, err)
				}
			}
			var err error
			if doc, err = patched(doc, op); err != nil {
				return nil, fmt.Errorf("%s: %s %s: %w", at, op.Op, op.Path, err)
			}
		}
	}
	if doc == nil {
		return u, nil
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(doc); err != nil {
		return nil, fmt.Errorf("policy %s: spec.overrides: %w", s.Policy.Name, err)
	}
	if err := s.untouched(u, out); err != nil {
		return nil, fmt.Errorf("policy %s: spec.overrides: %w", s.Policy.Name, err)
	}
	return out, nil
}

var errNothingThere = errors.New("there is nothing at that path")

// patched applies one operation of a JSON patch.
func patched(doc []byte, op v1beta1.JSONPatchOperation) ([]byte, error) {
	if err := applicable(doc, op); err != nil {
		return nil, err
	}
	body, err := json.Marshal([]v1beta1.JSONPatchOperation{op})
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	out, err := patch.Apply(doc)
	switch {
	case errors.Is(err, jsonpatch.ErrMissing):
		return nil, errNothingThere
	case errors.Is(err, jsonpatch.ErrTestFailed):
		return nil, errors.New("another value is there")
	}
	return out, err
}

// untouched tells which field was changed that overrides may not change.
func (s Source) untouched(before, after *unstructured.Unstructured) error {
	fields := [][]string{{"apiVersion"}, {"kind"}, {"status"}}
	if f := s.divided(); f != "" {
		fields = append(fields, []string{"spec", f})
	}
	for _, path := range fields {
		was, _, _ := unstructured.NestedFieldNoCopy(before.Object, path...)
		is, _, _ := unstructured.NestedFieldNoCopy(after.Object, path...)
		if !reflect.DeepEqual(was, is) {
			return fmt.Errorf("/%s may not be overridden: it is not the policy's", strings.Join(path, "/"))
		}
	}
	if meta := metadata(after); !reflect.DeepEqual(metadata(before), meta) {
		return fmt.Errorf("of metadata only labels and annotations may be overridden")
	}
	return nil
}

func metadata(u *unstructured.Unstructured) map[string]any {
	meta, _ := u.Object["metadata"].(map[string]any)
	out := map[string]any{}
	for key, value := range meta {
		if key != "labels" && key != "annotations" {
			out[key] = value
		}
	}
	return out
}
