package plan

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// applyOverrides applies the policy's overrides for the cluster to u, which must not be shared. The error names the policy,
// the field and the cause; u is then unusable.
func (s Source) applyOverrides(u *unstructured.Unstructured, t Target) (*unstructured.Unstructured, error) {
	if s.Policy == nil {
		return u, nil
	}
	var p *patch
	for i, o := range s.Policy.Spec.Overrides {
		if o.Clusters != nil && !o.Clusters.Matches(t.Cluster) {
			continue
		}
		if p == nil {
			p = newPatch(u.Object)
			u = &unstructured.Unstructured{Object: s.protectedFields(u.Object)}
		}
		for j, op := range o.JSONPatch {
			if err := p.apply(op); err != nil {
				return nil, fmt.Errorf("policy %s: spec.overrides[%d].jsonPatch[%d]: %s %s: %w", s.Policy.Name, i, j, op.Op, op.Path, err)
			}
		}
	}
	if p == nil {
		return u, nil
	}
	out, err := s.overridden(u.Object, p)
	if err != nil {
		return nil, fmt.Errorf("policy %s: spec.overrides: %w", s.Policy.Name, err)
	}
	return out, nil
}

// Try returns the error of the policy's overrides on the object for a cluster, whether it goes there or not.
func (s Source) Try(t Target) error {
	_, err := s.contentFor(t)
	return err
}

// fixedFields returns the fields that overrides may not change, besides those in metadata.
func (s Source) fixedFields() [][]string {
	fields := [][]string{{"apiVersion"}, {"kind"}, {"status"}}
	if f := s.dividedField(); f != "" {
		fields = append(fields, []string{"spec", f})
	}
	if s.Kind.Kind == secretKind && !s.Kind.Custom {
		fields = append(fields, []string{"type"})
	}
	return fields
}

const secretKind = "Secret"

// protectedFields copies what overrides may not change.
func (s Source) protectedFields(object map[string]any) map[string]any {
	out := map[string]any{"metadata": protectedMetadata(object)}
	for _, path := range s.fixedFields() {
		if value, ok, _ := unstructured.NestedFieldCopy(object, path...); ok {
			_ = unstructured.SetNestedField(out, value, path...) // the path is created here
		}
	}
	return out
}

// overridden returns the patched object, if it is valid. fixed is its state before the patch.
func (s Source) overridden(fixed map[string]any, p *patch) (*unstructured.Unstructured, error) {
	object, ok := p.root.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("an object must remain")
	}
	for _, path := range s.fixedFields() {
		was, _, _ := unstructured.NestedFieldNoCopy(fixed, path...)
		is, _, _ := unstructured.NestedFieldNoCopy(object, path...)
		if !reflect.DeepEqual(was, is) {
			return nil, fmt.Errorf("/%s may not be overridden: it is not the policy's", strings.Join(path, "/"))
		}
	}
	if !reflect.DeepEqual(fixed["metadata"], protectedMetadata(object)) {
		return nil, fmt.Errorf("of metadata only labels and annotations may be overridden")
	}
	for _, field := range []string{"labels", "annotations"} {
		if _, _, err := unstructured.NestedStringMap(object, "metadata", field); err != nil {
			return nil, fmt.Errorf("/metadata/%s: values must be strings", field)
		}
	}
	out := &unstructured.Unstructured{Object: object}
	kind, _, _ := unstructured.NestedString(object, "type")
	if !s.Kind.Custom && !v1beta1.Federated(s.Kind.Resource.GroupResource(), out.GetNamespace(), out.GetName(), corev1.SecretType(kind)) {
		return nil, fmt.Errorf("what they make of it is not federated: each cluster has its own")
	}
	if n := len(JSON(object)); n > maxPatched {
		return nil, fmt.Errorf("they make it %d bytes long; at most %d bytes can be stored", n, maxPatched)
	}
	return out, nil
}

// protectedMetadata copies what overrides may not change of an object's metadata.
func protectedMetadata(object map[string]any) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	out := map[string]any{}
	for key, value := range meta {
		if key != "labels" && key != "annotations" {
			out[key] = value
		}
	}
	return out
}
