package placement

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
)

// An autoscaler leaves clusters when its workload asks for what their own numbers have made, and these are placed. Otherwise they would
// fall back to the number that the workload had before.
func TestAnAutoscalerLeavesWhenItsWorkloadAsksForWhatClustersHave(t *testing.T) {
	autoscalers := schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	inFleet(t, func(f *fleet) {
		create := func(r schema.GroupVersionResource, object map[string]any) {
			t.Helper()
			if _, err := f.client.Resource(r).Namespace("shop").Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		f.cluster("east-a", "True")
		f.cluster("west-a", "True")
		f.replicaSet(2, nil)
		sets := f.client.Resource(replicaSets).Namespace("shop")
		u, err := sets.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		u.Object["status"] = map[string]any{"replicas": int64(9)} // clusters' autoscalers have made them
		if _, err := sets.Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		create(autoscalers, map[string]any{
			"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "a1"},
			"spec": map[string]any{"maxReplicas": int64(20), "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}},
		})
		f.settle()
		f.client.ClearActions()
		create(v1beta1.PoliciesResource, map[string]any{
			"apiVersion": "federation/v1beta1", "kind": "PlacementPolicy", "metadata": map[string]any{"name": "gold", "namespace": "shop", "uid": "p1"},
			"spec": map[string]any{
				"resourceSelectors": []any{map[string]any{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}},
				"autoscaling":       map[string]any{"scope": "Federation"},
			},
		})
		f.settle()
		time.Sleep(5 * retryAfter)
		f.settle()
		u, err = sets.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); n != 9 {
			t.Errorf("the workload asks for %d replicas, clusters have 9", n)
		}
		autoscaler, err := f.client.Resource(autoscalers).Namespace("shop").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !v1beta1.StaysAtFederation(autoscaler) {
			t.Errorf("its placement is %q", placementOf(autoscaler))
		}
		var order []string
		for _, a := range f.client.Actions() {
			if a.GetVerb() == "patch" && a.GetResource() != v1beta1.PoliciesResource {
				order = append(order, a.GetResource().Resource+"/"+a.GetSubresource())
			}
		}
		if len(order) != 3 || order[0] != "replicasets/scale" || order[1] != "replicasets/" || order[2] != "horizontalpodautoscalers/" {
			t.Errorf("it wrote %v: want the scale, where its replicas go, and then the autoscaler", order)
		}
	})
}
