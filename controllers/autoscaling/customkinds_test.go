package autoscaling

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"federation/apiserver/apis/federation/v1beta1"
)

var (
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	anybody dynamic.Interface // an administrator
)

const widgetDefinition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, spec: {
  group: example.com, scope: Namespaced, names: {plural: widgets, singular: widget, kind: Widget}, versions: [{name: v1, served: true, storage: true,
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}},
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`

// madeWidget makes the kind, and a widget that is placed in a member with 70 waiting, in a namespace of its own.
func madeWidget(t *testing.T, namespace, path string) dynamic.ResourceInterface {
	t.Helper()
	definitions := anybody.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := definitions.Create(t.Context(), &unstructured.Unstructured{Object: *parse[map[string]any](t, widgetDefinition)}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	connect(t, "custom-a")
	hasNamespace("custom-a", namespace, federationUID)
	says("custom-a", path, external("70"))
	in := anybody.Resource(widgets).Namespace(namespace)
	widget := &unstructured.Unstructured{Object: *parse[map[string]any](t, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: web}, spec: {replicas: 2}}`)}
	until(t, func() string { // the kind takes a moment to be served
		if _, err := in.Create(t.Context(), widget, metav1.CreateOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	placement := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1beta1.PlacementAnnotation, `{"clusters":{"custom-a":2}}`)
	until(t, func() string { // so does the right to it
		_, err := controllers.Discovery().RESTClient().Patch(types.MergePatchType).AbsPath("/apis/example.com/v1/namespaces/custom/widgets/web").Body(placement).DoRaw(t.Context())
		if err != nil {
			return err.Error()
		}
		return ""
	})
	return in
}

// An object of a custom kind is scaled by its subresource scale, as kubectl scale does.
func TestScalesACustomKind(t *testing.T) {
	const namespace, path = "custom", "/apis/external.metrics.k8s.io/v1beta1/namespaces/custom/waiting"
	in := madeWidget(t, namespace, path)
	autoscaler := parse[autoscalingv2.HorizontalPodAutoscaler](t, strings.ReplaceAll(fmt.Sprintf(scaling, `{type: External, external: {metric: {name: waiting}, target: {type: AverageValue, averageValue: "10"}}}`),
		"apiVersion: apps/v1, kind: Deployment", "apiVersion: example.com/v1, kind: Widget"))
	if _, err := kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Create(t.Context(), autoscaler, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	place(t, "horizontalpodautoscalers", namespace, `{"clusters":{},"atFederation":true}`)
	wantInactive(t, namespace, "InvalidSelector", "missing a selector")

	status := &unstructured.Unstructured{Object: *parse[map[string]any](t, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: web}, status: {replicas: 2, selector: "app=web"}}`)}
	body, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Patch(t.Context(), "web", types.MergePatchType, body, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		u, err := in.Get(t.Context(), "web", metav1.GetOptions{}, "scale")
		if err != nil {
			return err.Error()
		}
		is := &autoscalingv1.Scale{}
		if err := convert(u, is); err != nil || is.Spec.Replicas != 7 {
			return fmt.Sprintf("%v: %d replicas, want 7; ScalingActive: %s", err, is.Spec.Replicas, condition(t, namespace, autoscalingv2.ScalingActive))
		}
		return ""
	})
	patch := []byte(`{"spec":{"scaleTargetRef":{"kind":"Gadget"}}}`)
	if _, err := kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, func() string { // it moved to another lane
		if is := condition(t, namespace, autoscalingv2.AbleToScale); !strings.Contains(is, "Gadget.example.com: must be a Deployment, ReplicaSet or StatefulSet, or a custom kind") {
			return "AbleToScale: " + is
		}
		return ""
	})
}

func convert(u *unstructured.Unstructured, into any) error {
	body, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}
