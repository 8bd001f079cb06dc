package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const narrow = "narrow"

func podQuota(pods string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}}}
}

// readyIn waits until a Deployment has so many replicas ready in each member.
func readyIn(t *testing.T, limit time.Duration, name string, want map[string]int32) time.Duration {
	t.Helper()
	return eventually(t, limit, func() string {
		got, as := map[string]int32{}, true
		for member, n := range want {
			d, err := s.members[member].client.AppsV1().Deployments(narrow).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			got[member] = d.Status.ReadyReplicas
			as = as && got[member] == n
		}
		if as {
			return ""
		}
		return fmt.Sprintf("%s: ready %v, want %v", name, got, want)
	})
}

// TestAQuotaOfAMember: what a member's own ResourceQuota refuses runs elsewhere, people are told, and it comes back when the quota allows
// it, for the policy has replicas rebalanced.
func TestAQuotaOfAMember(t *testing.T) {
	apply(t, `
apiVersion: v1
kind: Namespace
metadata: {name: narrow}
`)
	quotas := s.members["east-b"].client.CoreV1().ResourceQuotas(narrow)
	eventually(t, 30*time.Second, func() string { // once the namespace is there
		_, err := quotas.Create(t.Context(), podQuota("2"), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // by a try whose answer was lost: the test before cuts connections
			return ""
		}
		return errText(err)
	})
	remove(t, func(ctx context.Context) error { return quotas.Delete(ctx, "pods", metav1.DeleteOptions{}) })
	eventually(t, 30*time.Second, func() string {
		q, err := quotas.Get(t.Context(), "pods", metav1.GetOptions{})
		if err != nil || len(q.Status.Used) == 0 {
			return fmt.Sprintf("the member has not counted its quota: %v %+v", err, q)
		}
		return ""
	})
	apply(t, `
apiVersion: federation/v1beta1
kind: PlacementPolicy
metadata: {name: even, namespace: narrow}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  replicaPreferences: {rebalance: true, clusters: {"*": {weight: 1}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: narrow}
spec:
  replicas: 12
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
`)
	began := time.Now()
	readyIn(t, 3*time.Minute, "web", map[string]int32{"east-a": 5, "east-b": 2, "west-a": 5})
	t.Logf("2 of 4 refused in east-b → 12 ready, elsewhere: %s", time.Since(began).Round(time.Millisecond))
	d, err := s.fed.client.AppsV1().Deployments(narrow).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(d.Status.Conditions); !strings.Contains(text, "cluster east-b could not make") || !strings.Contains(text, "exceeded quota: pods") {
		t.Errorf("the Deployment does not say what a cluster refuses: %s", text)
	}
	if out, err := s.plugin(t, "explain", "deployment/web", "-n", narrow); err != nil || !strings.Contains(out, "cannot be created there") {
		t.Errorf("explain: %v:\n%s", err, out)
	}

	if _, err := quotas.Update(t.Context(), podQuota("20"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The member's own controller waits for up to 17 minutes before it tries a refused pod again; a change of the ReplicaSet hurries it.
	sets := s.members["east-b"].client.AppsV1().ReplicaSets(narrow)
	list, err := sets.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range list.Items {
		if _, err := sets.Patch(t.Context(), set.Name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"tried":"again"}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("quota raised → back: %s", readyIn(t, 3*time.Minute, "web", map[string]int32{"east-a": 4, "east-b": 4, "west-a": 4}).Round(time.Millisecond))
}
