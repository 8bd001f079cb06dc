package join

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Names of SIG Multicluster's About API (KEP-2149): what a cluster is called in its cluster set, and what that is called.
const (
	clusterProperty    = "cluster.clusterset.k8s.io"
	clusterSetProperty = "clusterset.k8s.io"
)

var (
	propertiesResource  = schema.GroupVersionResource{Group: "about.k8s.io", Version: "v1beta1", Resource: "clusterproperties"}
	definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// establishTimeout is how long the member may take to serve a kind that was defined.
const establishTimeout = 30 * time.Second

// ensureProperties tells the cluster who it is, for tools in it: its name and the federation's, as ClusterProperties. The federation's role owns
// them, so they go when the cluster leaves. Those that somebody else has written stay as they are.
func (r *Request) ensureProperties(ctx context.Context, m metav1.ObjectMeta) error {
	if r.MemberDynamic == nil {
		return nil
	}
	_, err := r.MemberDynamic.Resource(definitionsResource).Create(ctx, propertiesDefinition(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("definition of ClusterProperties: %w", err)
	}
	for _, p := range [][2]string{{clusterProperty, r.Name}, {clusterSetProperty, r.federationName}} {
		if err := r.ensureProperty(ctx, m, p[0], p[1]); err != nil {
			return fmt.Errorf("ClusterProperty %s: %w", p[0], err)
		}
	}
	return nil
}

func (r *Request) ensureProperty(ctx context.Context, m metav1.ObjectMeta, name, value string) error {
	if value == "" {
		return nil // the federation does not say what it is called
	}
	client := r.MemberDynamic.Resource(propertiesResource)
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, establishTimeout, true, func(ctx context.Context) (bool, error) {
		old, err := client.Get(ctx, name, metav1.GetOptions{})
		if err == nil && old.GetLabels()[FederationLabel] != m.Labels[FederationLabel] {
			is, _, _ := unstructured.NestedString(old.Object, "spec", "value")
			r.say("ClusterProperty %s stays as it is, %q: it is not this federation's", name, is)
			return true, nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
		property := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": propertiesResource.GroupVersion().String(), "kind": "ClusterProperty", "spec": map[string]any{"value": value},
		}}
		property.SetName(name)
		property.SetLabels(m.Labels)
		property.SetOwnerReferences(m.OwnerReferences)
		_, err = client.Apply(ctx, name, property, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		if apierrors.IsNotFound(err) {
			return false, nil // the kind is not served yet
		}
		if err == nil {
			r.say("ClusterProperty %s is %q", name, value)
		}
		return true, err
	})
}

// propertiesDefinition returns the CustomResourceDefinition of ClusterProperties, in the API's version v1beta1.
func propertiesDefinition() *unstructured.Unstructured {
	text := map[string]any{"type": "string"}
	object := func(of map[string]any, required ...any) map[string]any {
		out := map[string]any{"type": "object", "properties": of}
		if len(required) > 0 {
			out["required"] = required
		}
		return out
	}
	value := map[string]any{"type": "string", "minLength": int64(1), "maxLength": int64(128000)}
	whole := object(map[string]any{
		"apiVersion": text, "kind": text, "metadata": map[string]any{"type": "object"},
		"spec": object(map[string]any{"value": value}, "value"), "status": map[string]any{"type": "object"},
	})
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": definitionsResource.GroupVersion().String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name": propertiesResource.GroupResource().String(),
			// The API server wants to know where a group of Kubernetes' own was agreed upon.
			"annotations": map[string]any{"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/issues/2149"},
		},
		"spec": map[string]any{
			"group": propertiesResource.Group, "scope": "Cluster",
			"names": map[string]any{"plural": propertiesResource.Resource, "singular": "clusterproperty", "kind": "ClusterProperty", "listKind": "ClusterPropertyList"},
			"versions": []any{map[string]any{
				"name": propertiesResource.Version, "served": true, "storage": true,
				"schema":                   map[string]any{"openAPIV3Schema": whole},
				"subresources":             map[string]any{"status": map[string]any{}},
				"additionalPrinterColumns": []any{map[string]any{"name": "Value", "type": "string", "jsonPath": ".spec.value"}, map[string]any{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}},
			}},
		},
	}}
}
