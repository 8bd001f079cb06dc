package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
)

const autoscaledNamespace = "autoscaled"

const autoscaledObjects = `---
{apiVersion: federation/v1beta1, kind: PlacementPolicy, metadata: {name: whole, namespace: autoscaled}, spec: {
  resourceSelectors: [{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler}, {apiVersion: apps/v1, kind: Deployment}],
  autoscaling: {scope: Federation}, failover: {gracePeriodSeconds: 60}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: autoscaled}, spec: {
  replicas: 3, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: "i:1", resources: {requests: {cpu: 100m}}}]}}}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: autoscaled}, spec: {
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 3, maxReplicas: 12,
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}],
  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}}}
`

// podMetricsDefinition has a member's own API server serve metrics.k8s.io, with what the test writes.
const podMetricsDefinition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
  metadata: {name: pods.metrics.k8s.io, annotations: {api-approved.kubernetes.io: "unapproved, a test"}},
  spec: {group: metrics.k8s.io, scope: Namespaced, names: {plural: pods, singular: podmetrics, kind: PodMetrics, listKind: PodMetricsList}, versions: [
    {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`

var (
	podMetricsResource  = schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods"}
	definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// load is what all pods of the test have to do together, in thousandths of a processor. Those that run share it.
type load struct{ total atomic.Int64 }

// measure writes what each pod uses into the members that are not stopped, until ctx is done.
func (l *load) measure(ctx context.Context, stopped *atomic.Value) {
	for ; ctx.Err() == nil; time.Sleep(time.Second) {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second) // a member may stop in the midst of it
		pods, n := map[string][]corev1.Pod{}, int64(0)
		for name, m := range s.members {
			if name == stopped.Load() {
				continue
			}
			if list, err := m.client.CoreV1().Pods(autoscaledNamespace).List(ctx, metav1.ListOptions{}); err == nil {
				pods[name] = slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil })
				n += int64(len(pods[name]))
			}
		}
		for name, of := range pods {
			l.write(ctx, s.members[name], of, l.total.Load()/max(n, 1))
		}
		cancel()
	}
}

// write writes what each pod of a member uses.
func (l *load) write(ctx context.Context, m cluster, pods []corev1.Pod, each int64) {
	metrics, names := m.dyn.Resource(podMetricsResource).Namespace(autoscaledNamespace), map[string]bool{}
	for _, p := range pods {
		names[p.Name] = true
		body, _ := json.Marshal(map[string]any{
			"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics", "metadata": map[string]any{"name": p.Name, "namespace": p.Namespace, "labels": p.Labels},
			"timestamp": time.Now().UTC().Format(time.RFC3339), "window": "1s",
			"containers": []any{map[string]any{"name": "c", "usage": map[string]any{"cpu": fmt.Sprintf("%dm", each), "memory": "10Mi"}}},
		})
		_, _ = metrics.Patch(ctx, p.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "e2e", Force: new(true)})
	}
	list, err := metrics.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, u := range list.Items {
		if !names[u.GetName()] {
			_ = metrics.Delete(ctx, u.GetName(), metav1.DeleteOptions{})
		}
	}
}

// serveMetrics has all members serve metrics of pods until the test ends.
func serveMetrics(t *testing.T) {
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(podMetricsDefinition), &definition.Object); err != nil {
		t.Fatal(err)
	}
	for name, m := range s.members {
		definitions := m.dyn.Resource(definitionsResource)
		if _, err := definitions.Create(t.Context(), definition.DeepCopy(), metav1.CreateOptions{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			_ = definitions.Delete(ctx, definition.GetName(), metav1.DeleteOptions{})
		})
	}
}

// askedFor returns the replicas of the workload, and where they are placed.
func askedFor(t *testing.T) (replicas int32, placed map[string]int64) {
	t.Helper()
	d, err := s.fed.client.AppsV1().Deployments(autoscaledNamespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if p := v1beta1.ParsePlacement(d.Annotations[v1beta1.PlacementAnnotation]); p != nil {
		placed = p.Clusters
	}
	return *d.Spec.Replicas, placed
}

// runs waits until the workload asks for so many replicas, and so many run in each of some members.
func runs(t *testing.T, replicas int32, each int32, in ...string) {
	t.Helper()
	took := eventually(t, 3*time.Minute, func() string {
		if n, placed := askedFor(t); n != replicas {
			return fmt.Sprintf("%d replicas, want %d; placed %v", n, replicas, placed)
		}
		for _, name := range in {
			d, err := s.members[name].client.AppsV1().Deployments(autoscaledNamespace).Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			if d.Status.ReadyReplicas != each {
				return fmt.Sprintf("%s has %d ready, want %d", name, d.Status.ReadyReplicas, each)
			}
		}
		return ""
	})
	t.Logf("%d replicas, %d in each of %v, after %v", replicas, each, in, took.Round(time.Second))
}

// copiesOfAutoscaler waits until members have a copy of the autoscaler, or none has.
func copiesOfAutoscaler(t *testing.T, there bool, in ...string) {
	t.Helper()
	eventually(t, time.Minute, func() string {
		for _, name := range in {
			_, err := s.members[name].client.AutoscalingV2().HorizontalPodAutoscalers(autoscaledNamespace).Get(t.Context(), "web", metav1.GetOptions{})
			if (err == nil) != there {
				return fmt.Sprintf("%s: %v, want a copy: %t", name, err, there)
			}
		}
		return ""
	})
}

// scope changes what the policy says of autoscalers.
func scope(t *testing.T, scope string) {
	t.Helper()
	if out, err := s.kubectl(t, "", "patch", "pp", "whole", "-n", autoscaledNamespace, "--type=merge", "-p", `{"spec":{"autoscaling":{"scope":"`+scope+`"}}}`); err != nil {
		t.Fatal(out)
	}
}

// One autoscaler scales for all clusters together, with real members and Kubernetes' own controller: the load goes up, the federation
// scales, the replicas are divided. A member dies: nothing is scaled down because its pods are not seen, and its replicas are placed
// elsewhere. By policy the clusters scale for themselves again, and the federation takes over what they have made.
func TestOneAutoscalerForAllClusters(t *testing.T) {
	serveMetrics(t)
	if out, err := s.kubectl(t, "", "create", "namespace", autoscaledNamespace); err != nil {
		t.Fatal(out)
	}
	t.Cleanup(func() {
		_, _ = s.kubectlIn(context.Background(), "", "delete", "namespace", autoscaledNamespace, "--wait=false")
	})
	if out, err := s.kubectl(t, autoscaledObjects, "apply", "-f", "-"); err != nil {
		t.Fatal(out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var work load
	var stopped atomic.Value
	work.total.Store(150)
	go work.measure(ctx, &stopped)
	all := []string{"east-a", "east-b", "west-a"}
	runs(t, 3, 1, all...)

	work.total.Store(300)
	runs(t, 6, 2, all...)
	work.total.Store(2000) // more than 12 can do
	runs(t, 12, 4, all...)
	copiesOfAutoscaler(t, false, all...)
	describesWell(t)
	work.total.Store(600)

	// Each of the pods that are seen does less than it should: by themselves they would be scaled to 7.
	stopped.Store("west-a")
	resume := s.stop(t, "west-a")
	work.total.Store(8 * 40)
	ends := time.Now().Add(4 * time.Minute)
	for least := int32(12); ; time.Sleep(100 * time.Millisecond) {
		n, placed := askedFor(t)
		if least = min(least, n); least < 12 {
			t.Fatalf("scaled to %d while west-a is not seen; placed %v", least, placed)
		}
		if placed["west-a"] == 0 {
			break
		}
		if time.Now().After(ends) {
			t.Fatalf("its replicas are not placed elsewhere: %v", placed)
		}
	}
	work.total.Store(600) // what came to it comes to the others
	out, _ := s.kubectl(t, "", "get", "events", "-n", autoscaledNamespace)
	if !strings.Contains(out, "ReplicasNotSeen") || !strings.Contains(out, "4 in west-a") {
		t.Errorf("no event says that replicas are not seen:\n%s", out)
	}
	runs(t, 12, 6, "east-a", "east-b")

	scope(t, "Cluster")
	copiesOfAutoscaler(t, true, "east-a", "east-b")
	work.total.Store(900) // clusters scale their own
	eventually(t, 3*time.Minute, func() string {
		n := 0
		for _, name := range []string{"east-a", "east-b"} {
			d, err := s.members[name].client.AppsV1().Deployments(autoscaledNamespace).Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			n += int(d.Status.ReadyReplicas)
		}
		d, err := s.fed.client.AppsV1().Deployments(autoscaledNamespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if asks := *d.Spec.Replicas; n < 18 || d.Status.Replicas < 18 || asks != 12 { // the federation goes by what is reported
			return fmt.Sprintf("%d ready, %d reported, want 18; the federation asks for %d, want 12", n, d.Status.Replicas, asks)
		}
		return ""
	})
	if out, err := s.kubectl(t, "", "patch", "hpa", "web", "-n", autoscaledNamespace, "--type=merge", "-p", `{"spec":{"maxReplicas":30}}`); err != nil {
		t.Fatal(out)
	}
	scope(t, "Federation")
	copiesOfAutoscaler(t, false, "east-a", "east-b")
	if n, _ := askedFor(t); n < 18 {
		t.Errorf("the federation took over %d replicas of 18", n)
	}
	resume()
	phase(t, "west-a", v1beta1.PhaseServing) // the next test begins with all clusters
}

// describesWell checks what people and tools read of the autoscaler.
func describesWell(t *testing.T) {
	t.Helper()
	eventually(t, time.Minute, func() string {
		a, err := s.fed.client.AutoscalingV2().HorizontalPodAutoscalers(autoscaledNamespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		is := map[string]string{}
		for _, c := range a.Status.Conditions {
			is[string(c.Type)] = string(c.Status)
		}
		for kind, want := range map[string]string{"AbleToScale": "True", "ScalingActive": "True", "ScalingLimited": "True", "Propagated": "True"} {
			if is[kind] != want {
				return fmt.Sprintf("%s is %q, want %s", kind, is[kind], want)
			}
		}
		if a.Status.CurrentReplicas != 12 || len(a.Status.CurrentMetrics) != 1 {
			return fmt.Sprintf("its status is %+v", a.Status)
		}
		return ""
	})
	out, err := s.kubectl(t, "", "describe", "hpa", "web", "-n", autoscaledNamespace)
	if err != nil || !strings.Contains(out, "Deployment pods:") || !strings.Contains(out, "12 current / 12 desired") || !strings.Contains(out, "it goes to no cluster") {
		t.Errorf("describe hpa: %v\n%s", err, out)
	}
	t.Log(out)
}
