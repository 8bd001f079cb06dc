package autoscaling

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/servertest"
	"federation/clusterregistry/wire"
)

// A federation's API server with the controller beside it, by the rights that controllers have there. Its members are servers of metrics
// (asks_test.go): what pods do is tested with real ones in hack/e2e.
var (
	kube        kubernetes.Interface // of an administrator
	controllers kubernetes.Interface
	recorder    = record.NewFakeRecorder(10000)
)

func TestMain(m *testing.M) {
	servertest.Main(m, func(ctx context.Context, r *servertest.Running) error {
		kube, anybody = r.Kube, r.Dynamic
		return run(ctx, r.Server.ControllersConfig())
	})
}

// run runs the controller with informers as those of the federation's process.
func run(ctx context.Context, config *rest.Config) (err error) {
	config = rest.CopyConfig(config)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	if controllers, err = kubernetes.NewForConfig(wire.Protobuf(config)); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	metrics, err := metricsclient.NewForConfig(config)
	if err != nil {
		return err
	}
	shared := wire.NewInformers(wire.Source{Kube: controllers, Dynamic: client, Slim: func(metav1.Object) {}})
	c := New(Options{
		Kube: controllers, Pods: controllers, Metrics: metrics, Member: memberAPI, Federation: federationUID, Informers: shared.ForResource, Recorder: recorder, Period: 200 * time.Millisecond,
		Resolve: func(kind schema.GroupKind) (schema.GroupVersionResource, error) {
			if kind == (schema.GroupKind{Group: "example.com", Kind: "Widget"}) {
				return widgets, nil
			}
			return schema.GroupVersionResource{}, errors.New("there is no such kind")
		},
	})
	shared.Start(ctx.Done())
	go func() { _ = c.Run(ctx) }() // it has no errors
	return nil
}

func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// until waits for what says nothing more.
func until(t *testing.T, says func() string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if last := says(); last == "" {
			return
		} else if time.Now().After(end) {
			t.Fatal(last)
		}
	}
}

// place writes a placement, as the placement controller does.
func place(t *testing.T, resource, namespace, placement string) {
	t.Helper()
	placeNamed(t, resource, namespace, "web", placement)
}

func placeNamed(t *testing.T, resource, namespace, name, placement string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1beta1.PlacementAnnotation, placement)
	var err error
	if resource == "deployments" {
		_, err = controllers.AppsV1().Deployments(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	} else {
		_, err = controllers.AutoscalingV2().HorizontalPodAutoscalers(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

const (
	workload = `{metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: "web:1", resources: {requests: {cpu: 100m}}}]}}}}`
	scaling  = `{metadata: {name: web}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 3, maxReplicas: 99, metrics: [%s], behavior: {scaleDown: {stabilizationWindowSeconds: 0}, scaleUp: {policies: [{type: Pods, value: 99, periodSeconds: 15}]}}}}`
	byCPU    = `{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}`
)

// made makes a workload and its autoscaler in a namespace of their own.
func made(t *testing.T, namespace, metric string) {
	t.Helper()
	if _, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := kube.AppsV1().Deployments(namespace).Create(t.Context(), parse[appsv1.Deployment](t, workload), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Create(t.Context(), parse[autoscalingv2.HorizontalPodAutoscaler](t, fmt.Sprintf(scaling, metric)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func replicas(t *testing.T, namespace string) int32 {
	t.Helper()
	d, err := kube.AppsV1().Deployments(namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *d.Spec.Replicas
}

// condition returns a condition of the autoscaler: status, reason and message.
func condition(t *testing.T, namespace string, kind autoscalingv2.HorizontalPodAutoscalerConditionType) string {
	t.Helper()
	a, err := kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range a.Status.Conditions {
		if c.Type == kind {
			return fmt.Sprint(c.Status, " ", c.Reason, ": ", c.Message)
		}
	}
	return ""
}

// An autoscaler scales at the federation as long as its placement says so. Without one of its pods it changes nothing: who cannot see does
// not know.
func TestScalesWhatStaysAtTheFederation(t *testing.T) {
	const namespace = "stays"
	made(t, namespace, byCPU)
	place(t, "horizontalpodautoscalers", namespace, `{"clusters":{"east-a":1}}`)
	time.Sleep(time.Second)
	if n := replicas(t, namespace); n != 1 {
		t.Fatalf("it is the clusters', and was scaled to %d", n)
	}
	place(t, "horizontalpodautoscalers", namespace, `{"clusters":{},"atFederation":true}`)
	until(t, func() string {
		if n := replicas(t, namespace); n != 3 {
			return fmt.Sprintf("%d replicas, its minimum is 3", n)
		}
		return ""
	})
	place(t, "deployments", namespace, `{"clusters":{"east-a":3}}`)
	until(t, func() string { // nobody shows what is placed
		if is := condition(t, namespace, autoscalingv2.ScalingActive); !strings.HasPrefix(is, "False FailedGetResourceMetric") {
			return "ScalingActive: " + is
		}
		return ""
	})
	if is := condition(t, namespace, autoscalingv2.AbleToScale); !strings.HasPrefix(is, "True") {
		t.Error("AbleToScale: " + is)
	}
	if n := replicas(t, namespace); n != 3 {
		t.Errorf("without any pods, %d replicas", n)
	}
	place(t, "horizontalpodautoscalers", namespace, `{"clusters":{"east-a":1}}`)
	time.Sleep(time.Second)
	if _, err := kube.AppsV1().Deployments(namespace).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if n := replicas(t, namespace); n != 1 {
		t.Errorf("it has gone back to clusters, and scales to %d", n)
	}
}
