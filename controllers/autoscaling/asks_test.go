package autoscaling

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/wire"
)

const federationUID = "11111111-2222-3333-4444-555555555555"

// members are what answers for members, by name: paths to answers. A path of others is not found.
var members = struct {
	sync.Mutex
	clients map[string]rest.Interface
	answers map[string]map[string]string
}{clients: map[string]rest.Interface{}, answers: map[string]map[string]string{}}

func memberAPI(cluster string) (rest.Interface, error) {
	members.Lock()
	defer members.Unlock()
	if client := members.clients[cluster]; client != nil {
		return client, nil
	}
	return nil, fmt.Errorf("cluster %q is not connected", cluster)
}

// Answers that are no bodies.
const (
	hangs   = "hangs"
	forbids = "forbids"
	floods  = "floods"
)

// connect has a member answer.
func connect(t *testing.T, cluster string) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		members.Lock()
		body, there := members.answers[cluster][r.URL.Path]
		members.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case !there:
			w.WriteHeader(http.StatusNotFound)
		case body == hangs:
			select {
			case <-r.Context().Done():
			case <-time.After(time.Minute):
			}
		case body == forbids:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"the account may not"}`)
		case body == floods:
			for n := 0; n < 100; n++ {
				fmt.Fprint(w, strings.Repeat(" ", 1<<20))
			}
		default:
			fmt.Fprint(w, body)
		}
	}))
	t.Cleanup(server.CloseClientConnections)
	client, err := kubernetes.NewForConfig(wire.Protobuf(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1}))
	if err != nil {
		t.Fatal(err)
	}
	members.Lock()
	defer members.Unlock()
	members.clients[cluster], members.answers[cluster] = client.Discovery().RESTClient(), map[string]string{}
}

// says has a member answer to a path.
func says(cluster, path, answer string) {
	members.Lock()
	defer members.Unlock()
	if members.answers[cluster][path] = answer; answer == "" {
		delete(members.answers[cluster], path)
	}
}

// hasNamespace has a member have a namespace.
func hasNamespace(cluster, namespace, of string) {
	says(cluster, "/api/v1/namespaces/"+namespace, fmt.Sprintf(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":%q,"labels":{%q:%q}}}`, namespace, v1beta1.ManagedByLabel, of))
}

func external(values ...string) string {
	var items []string
	for _, v := range values {
		items = append(items, fmt.Sprintf(`{"metricName":"waiting","timestamp":"2026-01-01T00:00:00Z","value":%q}`, v))
	}
	return `{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","items":[` + strings.Join(items, ",") + `]}`
}

func object(value string) string {
	return fmt.Sprintf(`{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta1","items":[{"describedObject":{"kind":"Ingress","name":"web"},"metricName":"hits","timestamp":"2026-01-01T00:00:00Z","value":%q}]}`, value)
}

// wantReplicas waits until a workload is scaled to a number.
func wantReplicas(t *testing.T, namespace string, n int32, why string) {
	t.Helper()
	until(t, func() string {
		if is := replicas(t, namespace); is != n {
			return fmt.Sprintf("%s: %d replicas, want %d; ScalingActive: %s", why, is, n, condition(t, namespace, autoscalingv2.ScalingActive))
		}
		return ""
	})
}

// wantInactive waits until the autoscaler says why it does not scale.
func wantInactive(t *testing.T, namespace, reason string, texts ...string) {
	t.Helper()
	until(t, func() string {
		is := condition(t, namespace, autoscalingv2.ScalingActive)
		for _, text := range append(texts, "False "+reason) {
			if !strings.Contains(is, text) {
				return fmt.Sprintf("ScalingActive: %s, want %q", is, text)
			}
		}
		return ""
	})
}

// annotate has the autoscaler say how values of clusters become one.
func annotate(t *testing.T, namespace, value string) error {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1beta1.MetricsAcrossClustersAnnotation, value)
	_, err := kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// Values from outside are added up, or the largest counts. Members that hang, forbid, lie or flood cost their own part.
func TestScalesByWhatIsOutside(t *testing.T) {
	const namespace, path = "outside", "/apis/external.metrics.k8s.io/v1beta1/namespaces/outside/waiting"
	connect(t, "out-a")
	connect(t, "out-b")
	made(t, namespace, `{type: External, external: {metric: {name: waiting}, target: {type: AverageValue, averageValue: "10"}}}`)
	place(t, "deployments", namespace, `{"clusters":{"out-a":2,"out-b":2}}`)
	place(t, "horizontalpodautoscalers", namespace, `{"clusters":{},"atFederation":true}`)
	wantInactive(t, namespace, "FailedGetExternalMetric", "cluster out-a: the server could not find", "cluster out-b: ")

	hasNamespace("out-a", namespace, federationUID)
	hasNamespace("out-b", namespace, federationUID)
	says("out-a", path, external("60"))
	says("out-b", path, external("20", "30"))
	wantReplicas(t, namespace, 11, "60 and 50 wait")
	if err := annotate(t, namespace, `{"waiting":"Least"}`); err == nil || !strings.Contains(err.Error(), `supported values: "Sum", "Max"`) {
		t.Errorf("an unknown combination: %v", err)
	}
	if err := annotate(t, namespace, `{"waiting":"Max"}`); err != nil {
		t.Fatal(err)
	}
	wantReplicas(t, namespace, 6, "the same 60 wait for both")
	if err := annotate(t, namespace, `{}`); err != nil {
		t.Fatal(err)
	}
	wantReplicas(t, namespace, 11, "60 and 50 wait")

	for _, answer := range []string{forbids, hangs, floods, external("1e999999999"), external("NaN"), `{"kind":"Status"}`, "no JSON", external()} {
		says("out-b", path, answer)
		says("out-a", path, external("70"))
		wantReplicas(t, namespace, 7, "70 wait, out-b says "+answer)
		says("out-a", path, external("80"))
		wantReplicas(t, namespace, 8, "80 wait, out-b says "+answer)
	}
	says("out-b", path, external("-100"))
	says("out-a", path, external("90"))
	wantReplicas(t, namespace, 9, "90 wait, and less than nothing")
	says("out-b", path, external("20"))
	wantReplicas(t, namespace, 11, "90 and 20 wait")
	hasNamespace("out-b", namespace, "another")
	wantReplicas(t, namespace, 9, "another's namespace is not asked")

	says("out-a", path, forbids)
	wantInactive(t, namespace, "FailedGetExternalMetric", "cluster out-a: the account may not (join the cluster again", "cluster out-b: the namespace there is not the federation's")
	if n := replicas(t, namespace); n != 9 {
		t.Errorf("without any value, %d replicas", n)
	}
	until(t, func() string {
		select {
		case event := <-recorder.Events:
			if strings.Contains(event, "MetricNotSeen") && strings.Contains(event, "waiting") && strings.Contains(event, "cluster out-b: ") {
				return ""
			}
		default:
		}
		return "no event says what is not seen"
	})
}

// Values of an object are added up. A member that serves the first version only is asked in that.
func TestScalesByAnObject(t *testing.T) {
	const namespace = "objects"
	connect(t, "of-a")
	connect(t, "of-b")
	made(t, namespace, `{type: Object, object: {describedObject: {apiVersion: networking.k8s.io/v1, kind: Ingress, name: web}, metric: {name: hits}, target: {type: Value, value: "100"}}}`)
	place(t, "deployments", namespace, `{"clusters":{"of-a":6,"of-b":2}}`)
	place(t, "horizontalpodautoscalers", namespace, `{"clusters":{},"atFederation":true}`)
	wantInactive(t, namespace, "FailedGetObjectMetric", "cluster of-a: ")
	for version, cluster := range map[string]string{"v1beta1": "of-a", "v1beta2": "of-b"} {
		hasNamespace(cluster, namespace, federationUID)
		says(cluster, "/apis/custom.metrics.k8s.io/"+version+"/namespaces/objects/ingresses.networking.k8s.io/web/hits", object("75"))
	}
	wantReplicas(t, namespace, 12, "150 of 100 for 8 replicas")
	says("of-a", "/apis/custom.metrics.k8s.io/v1beta1/namespaces/objects/ingresses.networking.k8s.io/web/hits", object("25"))
	says("of-b", "/apis/custom.metrics.k8s.io/v1beta2/namespaces/objects/ingresses.networking.k8s.io/web/hits", "")
	wantReplicas(t, namespace, 4, "25 of 100, and 25 for the two replicas of the other, for 8 replicas")
}

// Of the pods' metrics a member without them says why, and what is not connected.
func TestMetricsOfPodsThatAreNotServed(t *testing.T) {
	const namespace = "others"
	connect(t, "pods-a")
	hasNamespace("pods-a", namespace, federationUID)
	made(t, namespace, `{type: Pods, pods: {metric: {name: requests}, target: {type: AverageValue, averageValue: "10"}}}`)
	place(t, "deployments", namespace, `{"clusters":{"pods-a":3,"pods-b":1}}`)
	place(t, "horizontalpodautoscalers", namespace, `{"clusters":{},"atFederation":true}`)
	wantInactive(t, namespace, "FailedGetPodsMetric", "cluster pods-a: the server could not find", `cluster pods-b: cluster "pods-b" is not connected`)
}

// Two autoscalers whose workloads have pods with the same labels scale nothing, in whatever lanes they are.
func TestPodsOfTwoAutoscalers(t *testing.T) {
	const namespace = "twice"
	made(t, namespace, byCPU)
	other := parse[autoscalingv2.HorizontalPodAutoscaler](t, fmt.Sprintf(scaling, byCPU))
	workload, err := kube.AppsV1().Deployments(namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		name := fmt.Sprint("other", n)
		again := workload.DeepCopy()
		again.ObjectMeta = metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}
		if _, err := kube.AppsV1().Deployments(namespace).Create(t.Context(), again, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		other.Name, other.Spec.ScaleTargetRef.Name = name, name
		if _, err := kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Create(t.Context(), other.DeepCopy(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, resource := range []string{"deployments", "horizontalpodautoscalers"} {
			placeNamed(t, resource, namespace, name, map[string]string{"deployments": `{"clusters":{"east-a":1}}`, "horizontalpodautoscalers": `{"clusters":{},"atFederation":true}`}[resource])
		}
	}
	place(t, "deployments", namespace, `{"clusters":{"east-a":3}}`)
	place(t, "horizontalpodautoscalers", namespace, `{"clusters":{},"atFederation":true}`)
	until(t, func() string {
		is := condition(t, namespace, autoscalingv2.ScalingActive)
		if !strings.Contains(is, "AmbiguousSelector") && !strings.Contains(is, "are controlled by other autoscalers, too: other0, ") {
			return "ScalingActive: " + is
		}
		return ""
	})
}
