package review

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"federation/apiserver/apis/federation/v1beta1"
)

// federationOf returns clients of a federation with a ready cluster a, which has all three replicas of an object, and b.
func federationOf(t *testing.T) (*dynamicfake.FakeDynamicClient, *fake.Clientset) {
	t.Helper()
	lists := map[schema.GroupVersionResource]string{v1beta1.ClustersResource: "ClusterList", v1beta1.PoliciesResource: "PlacementPolicyList", v1beta1.DNSNameGrantsResource: "DNSNameGrantList"}
	for _, k := range v1beta1.FederatedKinds {
		lists[k.Resource] = k.Kind + "List"
	}
	var objects []runtime.Object
	for _, name := range []string{"a", "b"} {
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "Cluster", "metadata": map[string]any{"name": name},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
		}})
	}
	placement := v1beta1.Placement{Clusters: map[string]int64{"a": 3}}
	objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": map[string]any{"replicas": int64(3)},
		"metadata": map[string]any{"namespace": "shop", "name": "web", "annotations": map[string]any{v1beta1.PlacementAnnotation: placement.String()}},
	}})
	info := v1beta1.Info{Name: "prod", DNSZone: "example.com", DNSTTL: 15 * time.Second, FailoverMaxZones: 1, FailoverWindow: time.Minute}
	kube := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: v1beta1.InfoConfigMap}, Data: info.ConfigMapData()})
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...), kube
}

func lossOf(cluster string) *v1beta1.FailoverReview {
	return &v1beta1.FailoverReview{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: v1beta1.FailoverReviewSpec{Clusters: []string{cluster}}}
}

func TestReviewer_AnswersFromTheAPI(t *testing.T) {
	r := &Reviewer{}
	if err := r.ReviewFailover(t.Context(), lossOf("a")); !apierrors.IsServiceUnavailable(err) {
		t.Fatalf("before it has clients: %v", err)
	}
	client, kube := federationOf(t)
	r.Use(client, kube)
	asked := lossOf("a")
	if err := r.ReviewFailover(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	if s := asked.Status; s.ReplicasMoved != 3 || len(s.Moves) != 1 || s.Moves[0].Name != "web" {
		t.Errorf("the loss of a: %+v", s)
	}
	if asked = lossOf("b"); r.ReviewFailover(t.Context(), asked) != nil || asked.Status.ReplicasMoved != 0 {
		t.Errorf("the loss of b, which has nothing: %+v", asked.Status)
	}
	if err := r.ReviewFailover(t.Context(), lossOf("mars")); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.clusters[0]") {
		t.Errorf("the loss of a cluster that is none: %v", err)
	}
}

// TestReviewer_SaysWhatCannotBeRead: an answer from a part of the objects would be wrong.
func TestReviewer_SaysWhatCannotBeRead(t *testing.T) {
	for _, resource := range []string{"clusters", "placementpolicies", "replicasets", "services"} {
		client, kube := federationOf(t)
		client.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("away") })
		r, asked := &Reviewer{}, lossOf("a")
		r.Use(client, kube)
		if err := r.ReviewFailover(t.Context(), asked); err == nil || !strings.Contains(err.Error(), "reading "+resource) || asked.Status.Moves != nil {
			t.Errorf("%s: %v, %+v", resource, err, asked.Status)
		}
	}
	client, kube := federationOf(t)
	kube.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("away") })
	r := &Reviewer{}
	if r.Use(client, kube); r.ReviewFailover(t.Context(), lossOf("a")) == nil {
		t.Error("settings that cannot be read are no error")
	}
}

// TestReviewer_ReadsRoutes: the Ingresses of load balancers, the Services that they name, and which load balancers are alive.
func TestReviewer_ReadsRoutes(t *testing.T) {
	client, kube := federationOf(t)
	backend := map[string]any{"service": map[string]any{"name": "web", "port": map[string]any{"number": int64(80)}}}
	for r, u := range map[schema.GroupVersionResource]map[string]any{
		networkingv1.SchemeGroupVersion.WithResource("ingresses"): {
			"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": map[string]any{"namespace": "shop", "name": "front"},
			"spec": map[string]any{"ingressClassName": v1beta1.IngressClassName, "defaultBackend": backend},
		},
		corev1.SchemeGroupVersion.WithResource("services"): {
			"apiVersion": "v1", "kind": "Service", "spec": map[string]any{"type": "LoadBalancer", "ports": []any{map[string]any{"port": int64(80)}}},
			"metadata": map[string]any{"namespace": "shop", "name": "web", "annotations": map[string]any{v1beta1.ServiceIngressesAnnotation: `{"items":[{"cluster":"a","items":[{"ip":"192.0.2.1"}]}]}`}},
		},
	} {
		if _, err := client.Resource(r).Namespace("shop").Create(t.Context(), &unstructured.Unstructured{Object: u}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	alive := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: v1beta1.LoadBalancersConfigMap}, Data: map[string]string{"lb": `{"region":"east","addresses":["192.0.2.80"]}`}}
	if err := kube.Tracker().Add(alive); err != nil {
		t.Fatal(err)
	}
	if err := client.Tracker().Update(v1beta1.ClustersResource, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "Cluster", "metadata": map[string]any{"name": "a"},
		"status": map[string]any{"region": "east", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}}, ""); err != nil {
		t.Fatal(err)
	}
	r, asked := &Reviewer{}, &v1beta1.FailoverReview{Spec: v1beta1.FailoverReviewSpec{Regions: []string{"east"}}}
	r.Use(client, kube)
	if err := r.ReviewFailover(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	if s := asked.Status; len(s.Routes) != 1 || s.Routes[0].Ingress != "front" || len(s.LoadBalancers) != 1 || s.LoadBalancersLeft == nil || *s.LoadBalancersLeft != 0 {
		t.Errorf("routes %v, load balancers %v", s.Routes, s.LoadBalancers)
	}
	kube.PrependReactor("get", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.(clienttesting.GetAction).GetName() == v1beta1.LoadBalancersConfigMap {
			return true, nil, errors.New("away")
		}
		return false, nil, nil
	})
	if r.ReviewFailover(t.Context(), asked) == nil {
		t.Error("load balancers that cannot be read are no error")
	}
}
