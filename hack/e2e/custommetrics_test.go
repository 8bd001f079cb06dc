package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
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
)

const askedNamespace = "asked"

const askedObjects = `---
{apiVersion: federation/v1beta1, kind: PlacementPolicy, metadata: {name: whole, namespace: asked}, spec: {
  resourceSelectors: [{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler}], autoscaling: {scope: Federation}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: asked}, spec: {
  replicas: 3, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: "i:1"}]}}}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: asked}, spec: {
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 3, maxReplicas: 12,
  metrics: [{type: Pods, pods: {metric: {name: requests}, target: {type: AverageValue, averageValue: "10"}}}],
  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}}}
`

// aggregated are the objects by which a member's API server has a group of its API answered by a server of the test.
const aggregated = `
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: %[1]s.%[2]s}, spec: {
  group: %[2]s, version: %[1]s, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {namespace: default, name: e2e-metrics, port: %[3]s}}}
`

// metricsService is the name by which API servers find the server of the test.
const metricsService = `{apiVersion: v1, kind: Service, metadata: {name: e2e-metrics, namespace: default}, spec: {type: ExternalName, externalName: localhost}}`

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// adapter answers a member's custom.metrics.k8s.io and external.metrics.k8s.io.
type adapter struct {
	member  cluster
	load    *atomic.Int64 // of all pods together
	running *atomic.Int64 // that share it
	waiting atomic.Int64  // outside
	hangs   atomic.Bool
}

// ServeHTTP implements http.Handler.
func (a *adapter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	w.Header().Set("Content-Type", "application/json")
	switch {
	case len(path) <= 3: // discovery, by which the API server finds out whether it is available
		fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":%q,"resources":[]}`, strings.TrimPrefix(strings.Trim(r.URL.Path, "/"), "apis/"))
	case a.hangs.Load():
		<-r.Context().Done()
	case strings.HasPrefix(r.URL.Path, "/apis/external.metrics.k8s.io/v1beta1/namespaces/") && strings.HasSuffix(r.URL.Path, "/waiting"):
		fmt.Fprintf(w, `{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","metadata":{},"items":[{"metricName":"waiting","timestamp":"2026-01-01T00:00:00Z","value":"%d"}]}`, a.waiting.Load())
	case r.URL.Path == "/apis/custom.metrics.k8s.io/v1beta2/namespaces/asked/pods/*/requests":
		var items []string
		pods := a.runningPods(r.Context(), r.URL.Query().Get("labelSelector"))
		for _, p := range pods {
			items = append(items, fmt.Sprintf(`{"describedObject":{"kind":"Pod","namespace":"asked","name":%q,"apiVersion":"/v1"},"metric":{"name":"requests"},"timestamp":"2026-01-01T00:00:00Z","value":"%dm"}`,
				p.Name, 1000*a.load.Load()/max(1, a.running.Load())))
		}
		fmt.Fprintf(w, `{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta2","metadata":{},"items":[%s]}`, strings.Join(items, ","))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (a *adapter) runningPods(ctx context.Context, selector string) (pods []corev1.Pod) {
	list, err := a.member.client.CoreV1().Pods(askedNamespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil
	}
	for _, p := range list.Items {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			pods = append(pods, p)
		}
	}
	return pods
}

// serveOthers has all members serve both groups, until the test ends.
func serveOthers(t *testing.T, load, running *atomic.Int64) map[string]*adapter {
	adapters := map[string]*adapter{}
	for name, m := range s.members {
		a := &adapter{member: m, load: load, running: running}
		adapters[name] = a
		server := httptest.NewTLSServer(a)
		t.Cleanup(server.CloseClientConnections)
		at, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		create(t, m, metricsService, corev1.SchemeGroupVersion.WithResource("services"), "default")
		for group, version := range map[string]string{"custom.metrics.k8s.io": "v1beta2", "external.metrics.k8s.io": "v1beta1"} {
			create(t, m, fmt.Sprintf(aggregated, version, group, at.Port()), apiServices, "")
		}
	}
	return adapters
}

// create creates an object in a member until the test ends.
func create(t *testing.T, m cluster, text string, resource schema.GroupVersionResource, namespace string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	if _, err := m.dyn.Resource(resource).Namespace(namespace).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_ = m.dyn.Resource(resource).Namespace(namespace).Delete(ctx, u.GetName(), metav1.DeleteOptions{})
	})
}

// asks waits until the workload asks for so many replicas, and so many are ready.
func asks(t *testing.T, replicas int32, why string) {
	t.Helper()
	took := eventually(t, 3*time.Minute, func() string {
		d, err := s.fed.client.AppsV1().Deployments(askedNamespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if *d.Spec.Replicas != replicas || d.Status.ReadyReplicas != replicas {
			out, _ := s.kubectl(t, "", "describe", "hpa", "web", "-n", askedNamespace)
			return fmt.Sprintf("%s: %d replicas, %d ready, want %d\n%s", why, *d.Spec.Replicas, d.Status.ReadyReplicas, replicas, out)
		}
		return ""
	})
	t.Logf("%s: %d replicas after %v", why, replicas, took.Round(time.Second))
}

func patchAutoscaler(t *testing.T, patch string) {
	t.Helper()
	if out, err := s.kubectl(t, "", "patch", "hpa", "web", "-n", askedNamespace, "--type=merge", "-p", patch); err != nil {
		t.Fatal(out)
	}
}

// saysOfAutoscaler waits until what people read of the autoscaler has some texts.
func saysOfAutoscaler(t *testing.T, texts ...string) {
	t.Helper()
	eventually(t, 2*time.Minute, func() string {
		out, err := s.kubectl(t, "", "describe", "hpa", "web", "-n", askedNamespace)
		if err != nil {
			return out
		}
		for _, text := range texts {
			if !strings.Contains(out, text) {
				return fmt.Sprintf("no %q in\n%s", text, out)
			}
		}
		return ""
	})
}

// One autoscaler scales for all clusters by metrics that the members' own APIs have: of pods, and from outside. One of them stops to answer:
// nothing is scaled down by what it does not say. None has them any more: the autoscaler says so.
func TestOneAutoscalerByCustomMetrics(t *testing.T) {
	var load, running atomic.Int64
	load.Store(30)
	adapters := serveOthers(t, &load, &running)
	if out, err := s.kubectl(t, "", "create", "namespace", askedNamespace); err != nil {
		t.Fatal(out)
	}
	t.Cleanup(func() {
		_, _ = s.kubectlIn(context.Background(), "", "delete", "namespace", askedNamespace, "--wait=false")
	})
	if out, err := s.kubectl(t, askedObjects, "apply", "-f", "-"); err != nil {
		t.Fatal(out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // those that run share the load
		for ; ctx.Err() == nil; time.Sleep(time.Second) {
			n := 0
			for _, a := range adapters {
				n += len(a.runningPods(ctx, "app=web"))
			}
			running.Store(int64(n))
		}
	}()
	asks(t, 3, "30 requests")
	load.Store(60)
	asks(t, 6, "60 requests")

	adapters["west-a"].hangs.Store(true)
	load.Store(48) // of the 6 replicas 2 are not seen: the others do 32, and these count as 20
	saysOfAutoscaler(t, "MetricNotSeen", "cluster west-a: no answer within 3s")
	asks(t, 6, "48 requests, and one cluster does not answer")
	adapters["west-a"].hangs.Store(false)
	asks(t, 5, "48 requests")

	for name, waiting := range map[string]int64{"east-a": 20, "east-b": 20, "west-a": 60} {
		adapters[name].waiting.Store(waiting)
	}
	patchAutoscaler(t, `{"spec":{"metrics":[{"type":"External","external":{"metric":{"name":"waiting"},"target":{"type":"AverageValue","averageValue":"10"}}}]}}`)
	asks(t, 10, "100 wait in three queues")
	patchAutoscaler(t, `{"metadata":{"annotations":{"federation.kubernetes.io/metrics-across-clusters":"{\"waiting\":\"Max\"}"}}}`)
	asks(t, 6, "60 wait in one queue that all clusters see")
	for _, m := range s.members {
		for _, name := range []string{"v1beta2.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io"} {
			if err := m.dyn.Resource(apiServices).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	saysOfAutoscaler(t, "FailedGetExternalMetric", "no cluster says what it is: cluster east-a: ")
	asks(t, 6, "nothing is known")
	out, err := s.kubectl(t, "", "federation", "explain", "hpa/web", "-n", askedNamespace)
	if err != nil || !strings.Contains(out, "does not scale: ScalingActive is False (FailedGetExternalMetric)") {
		t.Errorf("explain: %v\n%s", err, out)
	}
	t.Log(out)
}

const scaledObjects = `---
{apiVersion: federation/v1beta1, kind: PlacementPolicy, metadata: {name: whole, namespace: scaled}, spec: {
  resourceSelectors: [{apiVersion: scaled.example/v1, kind: Gadget}, {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler}],
  autoscaling: {scope: Federation}, replicaPreferences: {rebalance: true, clusters: {"*": {weight: 1}}}}}
---
{apiVersion: scaled.example/v1, kind: Gadget, metadata: {name: one, namespace: scaled}, spec: {replicas: 3}}
`

const gadgetDefinition = `---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.scaled.example}, spec: {
  group: scaled.example, scope: Namespaced, names: {plural: gadgets, singular: gadget, kind: Gadget}, versions: [{name: v1, served: true, storage: true,
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}},
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}
`

const gadgetScaler = `---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: one, namespace: scaled}, spec: {
  scaleTargetRef: {apiVersion: scaled.example/v1, kind: Gadget, name: one}, minReplicas: 3, maxReplicas: 12,
  metrics: [{type: External, external: {metric: {name: waiting}, target: {type: AverageValue, averageValue: "10"}}}]}}
`

var gadgets = schema.GroupVersionResource{Group: "scaled.example", Version: "v1", Resource: "gadgets"}

// operate does in all members what the operator of the kind would do there: it says how many replicas there are, and what selects them.
func operate(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(500 * time.Millisecond) {
		for _, m := range s.members {
			in := m.dyn.Resource(gadgets).Namespace("scaled")
			if u, err := in.Get(ctx, "one", metav1.GetOptions{}); err == nil {
				n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
				_, _ = in.Patch(ctx, "one", types.MergePatchType, fmt.Appendf(nil, `{"status":{"replicas":%d,"selector":"app=one"}}`, n), metav1.PatchOptions{}, "status")
			}
		}
	}
}

// An object of a custom kind with the subresource scale is divided, scaled by kubectl, and by an autoscaler for all clusters together.
func TestACustomKindIsScaled(t *testing.T) {
	var none atomic.Int64
	for _, a := range serveOthers(t, &none, &none) {
		a.waiting.Store(30)
	}
	for _, member := range names {
		joinAgain(t, member, "--custom-kinds=gadgets.scaled.example")
	}
	apply(t, gadgetDefinition)
	if out, err := s.kubectl(t, "", "create", "namespace", "scaled"); err != nil {
		t.Fatal(out)
	}
	t.Cleanup(func() { _, _ = s.kubectlIn(context.Background(), "", "delete", "namespace", "scaled", "--wait=false") })
	eventually(t, 20*time.Second, func() string { // the kind takes a moment to be served
		out, err := s.kubectl(t, scaledObjects, "apply", "-f", "-")
		if err == nil {
			return ""
		}
		return out
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go operate(ctx)
	are := func(why string, each int64) {
		t.Helper()
		took := eventually(t, 2*time.Minute, func() string {
			for _, member := range names {
				u, err := s.members[member].dyn.Resource(gadgets).Namespace("scaled").Get(t.Context(), "one", metav1.GetOptions{})
				if err != nil {
					return err.Error()
				}
				if n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); n != each {
					out, _ := s.kubectl(t, "", "describe", "hpa", "-n", "scaled")
					return fmt.Sprintf("%s: %s has %d, want %d\n%s", why, member, n, each, out)
				}
			}
			out, err := s.kubectl(t, "", "get", "--raw", "/apis/scaled.example/v1/namespaces/scaled/gadgets/one/scale")
			if want := fmt.Sprintf(`"status":{"replicas":%d,"selector":"app=one"}`, 3*each); err != nil || !strings.Contains(out, want) {
				return fmt.Sprintf("%s: %v, the scale is %s, want %s", why, err, out, want)
			}
			return ""
		})
		t.Logf("%s: %d in each cluster after %v", why, each, took.Round(time.Second))
	}
	are("applied", 1)
	if out, err := s.kubectl(t, "", "scale", "gadgets.scaled.example/one", "-n", "scaled", "--replicas=6"); err != nil {
		t.Fatal(out)
	}
	are("kubectl scale", 2)
	if out, err := s.kubectl(t, gadgetScaler, "apply", "-f", "-"); err != nil {
		t.Fatal(out)
	}
	are("90 wait", 3)
}
