package propagation

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"federation/apiserver/apis/federation/v1beta1"
)

func deployment(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": int64(3)}}}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetUID("u1")
	u.SetAnnotations(map[string]string{v1beta1.PlacementAnnotation: `{"clusters":{"east-a":2,"west-a":1}}`})
	return u
}

// TestObjectMetrics: a namespace with very many objects takes no series from one with few, and what is left out is counted.
func TestObjectMetrics(t *testing.T) {
	objects := []runtime.Object{deployment("small", "web")}
	for i := range 500 {
		objects = append(objects, deployment("greedy", fmt.Sprint("d-", i)))
	}
	for _, name := range []string{"east-a", "west-a"} {
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "federation/v1beta1", "kind": "Cluster", "metadata": map[string]any{"name": name}}})
	}
	copied := deployment("small", "web")
	copied.SetLabels(mark)
	copied.SetAnnotations(map[string]string{v1beta1.CopyOfAnnotation: "Deployment.apps/small/web", v1beta1.SourceAnnotation: "u1"})
	copied.Object["status"] = map[string]any{"replicas": int64(2), "readyReplicas": int64(2)}
	federation, member := newAPI(objects...), newAPI(copied)
	for _, c := range []struct{ limit, series, omitted int }{{100, 99, 468}, {100000, 1503, 0}} {
		o := Options{Client: federation.client, Informers: federation.informers, Federation: "fed", Recorder: record.NewFakeRecorder(100), ObjectMetrics: c.limit}
		m := newController(o.withDefaults()).metrics
		m.add(newMember(Member{Name: "east-a", Client: member.client, Informers: member.informers}, m.view))
		for i := range m.Kinds {
			federation.informers(m.Kinds[i].Resource)
			member.informers(m.Kinds[i].Resource)
		}
		federation.informers(v1beta1.ClustersResource)
		federation.factory.Start(t.Context().Done())
		member.factory.Start(t.Context().Done())
		federation.factory.WaitForCacheSync(t.Context().Done())
		member.factory.WaitForCacheSync(t.Context().Done())

		got := gathered(t, m)
		omitted := got["federation_object_metrics_omitted{}"]
		delete(got, "federation_object_metrics_omitted{}")
		if len(got) != c.series || omitted != float64(c.omitted) {
			t.Errorf("limit %d: %d series, and %v objects left out; want %d, %d", c.limit, len(got), omitted, c.series, c.omitted)
		}
		maps.DeleteFunc(got, func(name string, _ float64) bool { return !strings.Contains(name, "small") })
		want := map[string]float64{
			"federation_object_spec_replicas{cluster=east-a,kind=Deployment,name=web,namespace=small}":         2,
			"federation_object_spec_replicas{cluster=west-a,kind=Deployment,name=web,namespace=small}":         1,
			"federation_object_status_replicas_ready{cluster=east-a,kind=Deployment,name=web,namespace=small}": 2,
		}
		if !maps.Equal(got, want) {
			t.Errorf("limit %d: of a namespace with one object: %v, want %v", c.limit, got, want)
		}
	}
}

// gathered returns the metrics of a collector.
func gathered(t testing.TB, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			got[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = m.GetGauge().GetValue()
		}
	}
	return got
}
