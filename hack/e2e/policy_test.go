package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
)

// apply applies objects to the federation with kubectl, and deletes them in the end.
func apply(t *testing.T, objects string) {
	t.Helper()
	if out, err := s.kubectl(t, objects, "apply", "-f", "-"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience*time.Minute)
		defer cancel()
		if out, err := s.kubectlIn(ctx, objects, "delete", "--ignore-not-found", "--timeout=150s", "-f", "-"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// TestAPolicySpreadsAndOverrides: two regions, another image in the west, and the ConfigMap that the pods mount
// goes along.
func TestAPolicySpreadsAndOverrides(t *testing.T) {
	apply(t, `
apiVersion: federation/v1beta1
kind: PlacementPolicy
metadata: {name: shop, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {part: shop}}}]
  spreadConstraints: [{spreadBy: Region, minGroups: 2}, {spreadBy: Cluster, maxGroups: 2}]
  propagateReferences: true
  overrides:
  - clusters: {regions: [west]}
    jsonPatch: [{op: replace, path: /spec/template/spec/containers/0/image, value: "web:west"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: shop-config, namespace: default}
data: {key: value}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: default, labels: {part: shop}}
spec:
  replicas: 4
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers: [{name: web, image: "web:1", envFrom: [{configMapRef: {name: shop-config}}]}]
`)
	images := map[string]string{"east-a": "web:1", "east-b": "web:1", "west-a": "web:west"}
	eventually(t, 60*time.Second, func() string {
		there, replicas := []string{}, int32(0)
		for _, member := range names {
			d, err := s.members[member].client.AppsV1().Deployments(ns).Get(t.Context(), "shop", metav1.GetOptions{})
			runs := err == nil && *d.Spec.Replicas > 0 // where it was placed before admission knew the policy, a copy without replicas is left
			if _, err := s.members[member].client.CoreV1().ConfigMaps(ns).Get(t.Context(), "shop-config", metav1.GetOptions{}); runs != (err == nil) {
				return fmt.Sprintf("%s runs the Deployment: %t, but of its ConfigMap says: %v", member, runs, err)
			}
			if !runs {
				continue
			}
			there, replicas = append(there, member), replicas+d.Status.ReadyReplicas
			if image := d.Spec.Template.Spec.Containers[0].Image; image != images[member] {
				return fmt.Sprintf("%s has image %s, want %s", member, image, images[member])
			}
		}
		if len(there) != 2 || there[1] != "west-a" || replicas != 4 {
			return fmt.Sprintf("it is in %v with %d ready, want one of the east and west-a with 4", there, replicas)
		}
		return ""
	})
	if out, err := s.kubectl(t, "", "rollout", "status", "deployment/shop", "--timeout=90s"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	out, err := s.kubectl(t, "", "federation", "explain", "deployment/shop")
	if err != nil || !strings.Contains(out, "shop") || !strings.Contains(out, "west-a") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestACustomKind is spread as soon as a policy names it, and taken back when none does.
func TestACustomKind(t *testing.T) {
	for _, member := range names {
		if out, err := joinMember(t, member, "--custom-kinds=widgets.e2e.example"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	apply(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.e2e.example}
spec:
  group: e2e.example
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`)
	const policy = `
apiVersion: federation/v1beta1
kind: PlacementPolicy
metadata: {name: widgets, namespace: default}
spec:
  resourceSelectors: [{apiVersion: e2e.example/v1, kind: Widget}]
  clusters: {regions: [east]}
`
	const widget = `
apiVersion: e2e.example/v1
kind: Widget
metadata: {name: one, namespace: default}
spec: {size: 3}
`
	eventually(t, 20*time.Second, func() string {
		if out, err := s.kubectl(t, policy+"---"+widget, "apply", "-f", "-"); err != nil {
			return out // the kind takes a moment to be served
		}
		return ""
	})
	widgets := schema.GroupVersionResource{Group: "e2e.example", Version: "v1", Resource: "widgets"}
	are := func(in ...string) time.Duration {
		t.Helper()
		return eventually(t, 60*time.Second, func() string {
			var there []string
			for _, member := range names {
				_, err := s.members[member].dyn.Resource(widgets).Namespace(ns).Get(t.Context(), "one", metav1.GetOptions{})
				if err == nil {
					there = append(there, member)
				} else if !apierrors.IsNotFound(err) {
					return err.Error()
				}
			}
			if strings.Join(there, " ") != strings.Join(in, " ") {
				return fmt.Sprintf("it is in %v, want %v", there, in)
			}
			return ""
		})
	}
	t.Logf("policy and object → in the members, the definition before: %.1f s", are("east-a", "east-b").Seconds())
	if out, err := s.kubectl(t, "", "delete", "placementpolicy", "widgets"); err != nil {
		t.Fatal(out)
	}
	t.Logf("policy deleted → out of the members: %.1f s", are().Seconds())
	eventually(t, 20*time.Second, func() string {
		u, err := s.fed.dyn.Resource(widgets).Namespace(ns).Get(t.Context(), "one", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, f := range u.GetFinalizers() {
			if f == v1beta1.DeleteFromClustersFinalizer {
				return "it still bears our finalizer"
			}
		}
		return ""
	})
	if out, err := s.kubectl(t, policy, "apply", "-f", "-"); err != nil {
		t.Fatal(out)
	}
	are("east-a", "east-b")
	if out, err := s.kubectl(t, policy+"---"+widget, "delete", "--timeout=90s", "-f", "-"); err != nil {
		t.Fatal(out)
	}
	are()
}
