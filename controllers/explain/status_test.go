package explain

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metadatafake "k8s.io/client-go/metadata/fake"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/explain/plan"
)

// TestStatusSeesKindsWithoutConditions checks that a Secret with a foreign object in a cluster is reported.
func TestStatusSeesKindsWithoutConditions(t *testing.T) {
	f := newFederation(t)
	create := func(resource, kind, name, condition string) {
		o := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Finalizers: []string{v1beta1.DeleteFromClustersFinalizer}}}
		if condition != "" {
			o.Annotations = map[string]string{v1beta1.PropagatedAnnotation: condition}
		}
		r := v1beta1.FederatedKindOf(schema.GroupResource{Resource: resource}).Resource
		if err := f.Metadata.(*metadatafake.FakeMetadataClient).Tracker().Create(r, o, "shop"); err != nil {
			t.Fatal(err)
		}
	}
	create("configmaps", "ConfigMap", "settings", "")
	s, err := ReadStatus(t.Context(), f)
	if err != nil || len(s.OutOfSync) > 0 || !s.Healthy {
		t.Fatalf("%+v %v", s, err)
	}
	create("secrets", "Secret", "login", `{"type":"Propagated","status":"False","reason":"Conflict","message":"west-a: not ours","lastTransitionTime":"2026-01-01T12:00:00Z"}`)
	if s, err = ReadStatus(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if want := (plan.ObjectStatus{Kind: "Secret", Namespace: "shop", Name: "login", Reason: "Conflict", Message: "west-a: not ours", Since: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}); s.Healthy || len(s.OutOfSync) != 1 || s.OutOfSync[0] != want {
		t.Errorf("%+v", s)
	}
}

// TestRevisionsAreNotCounted: a ReplicaSet that is a revision of a Deployment goes to no cluster.
func TestRevisionsAreNotCounted(t *testing.T) {
	f := newFederation(t)
	for name, labels := range map[string]map[string]any{"web": nil, "web-7d4b9": {v1beta1.RevisionOfLabel: "Deployment"}} {
		_, err := f.Dynamic.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace("shop").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": map[string]any{"name": name, "labels": labels},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Propagated", "status": "True"}}},
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := ReadStatus(t.Context(), f)
	if err != nil || len(s.Kinds) != 1 || s.Kinds[0].Objects != 1 {
		t.Errorf("%+v %v", s, err)
	}
}

// TestStatusHasLoadBalancers reads one whose Lease nobody renews.
func TestStatusHasLoadBalancers(t *testing.T) {
	f := newFederation(t)
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.LoadBalancersNamespace, Name: "east-1", Annotations: map[string]string{
		v1beta1.LoadBalancerAnnotation: `{"region":"east","zone":"a","addresses":["192.0.2.80"]}`,
	}}}
	l.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(-time.Hour)))
	if _, err := f.Kube.CoordinationV1().Leases(l.Namespace).Create(t.Context(), l, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if read, err := ReadStatus(t.Context(), f); err != nil || len(read.LoadBalancers) != 1 || read.LoadBalancers[0].Alive {
		t.Errorf("%+v, %v", read, err)
	}
}
