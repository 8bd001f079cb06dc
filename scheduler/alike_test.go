package scheduler

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestAsksNoMore(t *testing.T) {
	read := func(change func(u *unstructured.Unstructured)) *Object {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {tier: front}
  annotations: {federation.kubernetes.io/placement: '{"clusters":{"a":2,"b":2}}'}
spec:
  replicas: 4
  template: {spec: {containers: [{name: web, resources: {requests: {cpu: "1"}}}]}}
`), u); err != nil {
			t.Fatal(err)
		}
		change(u)
		o, err := Read(u)
		if err != nil {
			t.Fatal(err)
		}
		return &o
	}
	set := func(value any, fields ...string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, value, fields...) }
	}
	front := &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front"}, Spec: v1beta1.PlacementPolicySpec{ResourceSelectors: []v1beta1.ResourceSelector{
		{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}}}}}}
	w := NewWorld(nil, []*v1beta1.PlacementPolicy{front})
	before := read(func(*unstructured.Unstructured) {})
	for name, c := range map[string]struct {
		change       func(*unstructured.Unstructured)
		asksNo, same bool
	}{
		"nothing":        {func(*unstructured.Unstructured) {}, true, true},
		"placement":      {set(`{"clusters":{"a":1,"b":3}}`, "metadata", "annotations", "federation.kubernetes.io/placement"), true, false},
		"fewer replicas": {set(int64(3), "spec", "replicas"), true, false},
		"more replicas":  {set(int64(5), "spec", "replicas"), false, false},
		"labels":         {set("new", "metadata", "labels", "version"), true, false},
		"other policy":   {set("back", "metadata", "labels", "tier"), false, false},
		"preferences":    {set(`{"clusters":{"a":{"weight":1}}}`, "metadata", "annotations", "federation.kubernetes.io/deployment-preferences"), false, false},
		"requests": {set([]any{map[string]any{"name": "web", "resources": map[string]any{"requests": map[string]any{"cpu": "2"}}}}, "spec", "template", "spec", "containers"),
			false, false},
	} {
		o := read(c.change)
		if got := w.AsksNoMore(o, before); got != c.asksNo {
			t.Errorf("%s: asks no more: %v", name, got)
		}
		if got := Alike(o, before); got != c.same {
			t.Errorf("%s: alike: %v", name, got)
		}
	}
}

// A compact object gets the decision of the whole one, and keeps none of the content that it was read from.
func TestCompact(t *testing.T) {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  replicas: 4
  template: {spec: {volumes: [{configMap: {name: files}}], containers: [{name: db, resources: {requests: {cpu: "2", memory: 1Gi}}}]}}
`), u); err != nil {
		t.Fatal(err)
	}
	whole, err := Read(u)
	if err != nil || len(whole.References()) != 1 {
		t.Fatalf("%v, refers to %v", err, whole.References())
	}
	compact := whole
	compact.Compact()
	if !Alike(&whole, &compact) || fmt.Sprint(compact.Requests()) != fmt.Sprint(whole.Requests()) {
		t.Errorf("%+v is not like %+v", compact, whole)
	}
	if len(compact.References()) > 0 || compact.content != nil || compact.template != nil {
		t.Errorf("content is kept: %+v", compact)
	}
}
