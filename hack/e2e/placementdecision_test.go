package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestPlacementDecisions: who labels objects with a placement key finds by it where they go, in the clusters' ClusterProfiles, while
// that changes and until they are gone. Nobody else writes it.
func TestPlacementDecisions(t *testing.T) {
	const key, policy = "release-7", `
apiVersion: federation/v1beta1
kind: PlacementPolicy
metadata: {name: decided, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, names: [decided]}]
  clusters: {names: [%s]}
`
	decisions := s.fed.dyn.Resource(v1beta1.PlacementDecisionsResource).Namespace(ns)
	selected := metav1.ListOptions{LabelSelector: v1beta1.PlacementKeyLabel + "=" + key}
	is := func(want ...string) func() string {
		return func() string {
			list, err := decisions.List(context.Background(), selected)
			if err != nil {
				return err.Error()
			}
			var got []string
			for i := range list.Items {
				got = append(got, list.Items[i].GetName()+": "+strings.Join(clustersOf(&list.Items[i]), " "))
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				return fmt.Sprintf("decisions %q, want %q", got, want)
			}
			return ""
		}
	}
	apply(t, fmt.Sprintf(policy, "east-a, west-a"))
	apply(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: decided, namespace: default, labels: {multicluster.x-k8s.io/placement-key: release-7}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: undisclosed, namespace: default}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: decided, namespace: default, labels: {multicluster.x-k8s.io/placement-key: release-7}}
spec:
  replicas: 4
  selector: {matchLabels: {app: decided}}
  template:
    metadata: {labels: {app: decided}}
    spec: {containers: [{name: web, image: web}]}
`)
	all := "configmap-decided-0: " + strings.Join(names, " ")
	took := eventually(t, 30*time.Second, is(all, "deployment-decided-0: east-a west-a"))
	t.Logf("published %v after kubectl apply ended", took.Round(10*time.Millisecond))
	for _, name := range names { // what is referred to exists
		if _, err := s.fed.dyn.Resource(v1beta1.PlacementDecisionsResource.GroupVersion().WithResource("clusterprofiles")).Namespace(v1beta1.FederationNamespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}

	apply(t, fmt.Sprintf(policy, "east-b"))
	eventually(t, 60*time.Second, is(all, "deployment-decided-0: east-b"))

	// An administrator writes none; one that is deleted comes back.
	_, err := decisions.Patch(t.Context(), "deployment-decided-0", types.MergePatchType, []byte(`{"decisions": []}`), metav1.PatchOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("an administrator emptied a decision: %v", err)
	}
	if err := decisions.Delete(t.Context(), "deployment-decided-0", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	eventually(t, 30*time.Second, is(all, "deployment-decided-0: east-b"))

	// Nothing is written while nothing changes.
	before := versions(t, selected)
	time.Sleep(3 * time.Second)
	if after := versions(t, selected); before != after {
		t.Errorf("decisions were written again: %s, then %s", before, after)
	}

	// Without the label, and without the object, they are gone, though its copies stay.
	configMaps := s.fed.client.CoreV1().ConfigMaps(ns)
	if _, err := configMaps.Patch(t.Context(), "decided", types.MergePatchType, []byte(`{"metadata": {"labels": null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, is("deployment-decided-0: east-b"))
	orphan := metav1.DeletePropagationOrphan
	if err := s.fed.client.AppsV1().Deployments(ns).Delete(t.Context(), "decided", metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.members["east-b"].client.AppsV1().Deployments(ns).Delete(context.Background(), "decided", metav1.DeleteOptions{})
	})
	eventually(t, 30*time.Second, is())
}

// clustersOf returns the clusters that a PlacementDecision names.
func clustersOf(u *unstructured.Unstructured) (in []string) {
	all, _, _ := unstructured.NestedSlice(u.Object, "decisions")
	for _, d := range all {
		name, _, _ := unstructured.NestedString(d.(map[string]any), "clusterProfileRef", "name")
		in = append(in, name)
	}
	return in
}

func versions(t *testing.T, of metav1.ListOptions) string {
	t.Helper()
	list, err := s.fed.dyn.Resource(v1beta1.PlacementDecisionsResource).Namespace(ns).List(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].GetName()+"="+list.Items[i].GetResourceVersion())
	}
	return strings.Join(out, " ")
}
