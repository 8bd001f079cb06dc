package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestTogether: small Deployments of a namespace are in one cluster by default. With a policy that demands it, larger ones are, too;
// when that cluster is lost, all are in another one, and when it returns, all are back.
func TestTogether(t *testing.T) {
	policies := s.fed.dyn.Resource(v1beta1.PoliciesResource).Namespace(ns)
	apply(t, workload("small-1", 1)+workload("small-2", 1)+workload("small-3", 1)+workload("small-4", 1))
	var first string
	for i := range 4 {
		name := fmt.Sprint("small-", i+1)
		eventually(t, 60*time.Second, func() string {
			in := readyBy(t, name)
			if len(in) != 1 || first != "" && !strings.HasPrefix(in[0], first) {
				return fmt.Sprintf("%s is in %v, small-1 in %s", name, in, first)
			}
			first, _, _ = strings.Cut(in[0], "=")
			return ""
		})
	}

	apply(t, `
apiVersion: federation/v1beta1
kind: PlacementPolicy
metadata: {name: together, namespace: default}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment, names: [front, back]}
  - {apiVersion: v1, kind: ConfigMap, names: [together]}
  workloadAffinity: Required
---
apiVersion: v1
kind: ConfigMap
metadata: {name: together, namespace: default}
`+workload("front", 6)+workload("back", 1))
	where := func() string {
		u, err := policies.Get(t.Context(), "together", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		in, _, _ := unstructured.NestedStringSlice(u.Object, "status", "clusters")
		return strings.Join(in, " ")
	}
	is := func(cluster string) func() string {
		return func() string {
			front, back := readyBy(t, "front"), readyBy(t, "back")
			if !slices.Equal(front, []string{cluster + "=6"}) || !slices.Equal(back, []string{cluster + "=1"}) || where() != cluster {
				return fmt.Sprintf("front is in %v, back in %v, the policy in %q, want %s", front, back, where(), cluster)
			}
			if _, err := s.members[cluster].client.CoreV1().ConfigMaps(ns).Get(t.Context(), "together", metav1.GetOptions{}); err != nil {
				return err.Error()
			}
			return ""
		}
	}
	eventually(t, 60*time.Second, is(first))
	out, err := s.plugin(t, "explain", "deployment/back", "-n", ns)
	if want := "policy together keeps all that it governs together in " + first; err != nil || strings.Count(out, want) != 2 {
		t.Errorf("explain: %v: want %q of that cluster, and of the others\n%s", err, want, out)
	}

	resume := s.stop(t, first)
	var second string
	took := eventually(t, 90*time.Second, func() string {
		if second = where(); second == first || second == "" {
			return "the policy is still in " + first
		}
		return is(second)()
	})
	t.Logf("together in %s %v after %s was stopped", second, took.Round(time.Second), first)
	resume()
	took = eventually(t, 10*time.Minute, is(first))
	t.Logf("together in %s %v after it was back", first, took.Round(time.Second))
}

// readyBy returns CLUSTER=READY of each cluster where a Deployment is to have replicas, sorted. What a stopped one has does not count.
func readyBy(t *testing.T, name string) (in []string) {
	t.Helper()
	d, err := s.fed.client.AppsV1().Deployments(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := v1beta1.ParsePlacement(d.Annotations[v1beta1.PlacementAnnotation])
	if p == nil {
		return nil
	}
	for cluster, n := range p.Clusters {
		if n == 0 {
			continue
		}
		ready := int32(-1)
		if copied, err := s.members[cluster].client.AppsV1().Deployments(ns).Get(t.Context(), name, metav1.GetOptions{}); err == nil {
			ready = copied.Status.ReadyReplicas
		}
		in = append(in, fmt.Sprintf("%s=%d", cluster, ready))
	}
	slices.Sort(in)
	return in
}

// workload returns a Deployment.
func workload(name string, replicas int) string {
	return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: web, image: web}]}
`, name, replicas)
}
