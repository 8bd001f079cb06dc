package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
)

// asking has a scenario's workload scaled by a metric of the type Pods, Object or External, and no other.
func asking(s *scenario, m autoscalingv2.MetricSpec) Ask {
	s.w.By.Metrics = []autoscalingv2.MetricSpec{m}
	return Asks(s.w.By)[0]
}

func byPods(target string) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "requests"}, Target: average(target),
	}}
}

func byExternal(target autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "waiting"}, Target: target,
	}}
}

func average(q string) autoscalingv2.MetricTarget {
	return autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse(q))}
}

func whole(q string) autoscalingv2.MetricTarget {
	return autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: new(resource.MustParse(q))}
}

// given are the metrics that Kubernetes' calculator receives.
type given struct {
	metrics.MetricsClient
	pods  metrics.PodMetricsInfo
	value int64
}

func (g given) GetRawMetric(string, string, labels.Selector, labels.Selector) (metrics.PodMetricsInfo, time.Time, error) {
	return g.pods, time.Time{}, nil
}

func (g given) GetExternalMetric(string, string, labels.Selector) ([]int64, time.Time, error) {
	return []int64{g.value}, time.Time{}, nil
}

func (g given) GetObjectMetric(string, string, *autoscalingv2.CrossVersionObjectReference, labels.Selector) (int64, time.Time, error) {
	return g.value, time.Time{}, nil
}

// calculator is Kubernetes', with what counts of a scenario.
func calculator(s *scenario, g given) (*podautoscaler.ReplicaCalculator, Counted) {
	counted := s.counted()
	return podautoscaler.NewReplicaCalculator(g, shownPods{pods: counted.Pods}, 5*time.Minute, 30*time.Second), counted
}

// needsByPods is what Kubernetes makes of a metric of the type Pods.
func needsByPods(s *scenario, a Ask, said map[string][]Said) (int32, error) {
	_, counted := calculator(s, given{})
	all := metrics.PodMetricsInfo{}
	for name, value := range s.w.PodValues(a, counted, said) {
		all[name] = metrics.PodMetric{Value: value}
	}
	of, _ := calculator(s, given{pods: all})
	n, _, _, err := of.GetMetricReplicas(int32(s.w.Most), a.target.AverageValue.MilliValue(), a.Name, podautoscaler.Tolerances{}, "shop", labels.Everything(), labels.Everything())
	return n, err
}

// needsByExternal is what Kubernetes makes of a metric of the type External.
func needsByExternal(t *testing.T, s *scenario, a Ask, by v1beta1.Combination, said map[string]int64) int32 {
	t.Helper()
	of, _ := calculator(s, given{value: s.w.Whole(a, by, said, int32(s.w.Most))})
	var n int32
	var err error
	if a.target.Value != nil {
		n, _, _, err = of.GetExternalMetricReplicas(int32(s.w.Most), a.target.Value.MilliValue(), a.Name, podautoscaler.Tolerances{}, "shop", &metav1.LabelSelector{}, labels.Everything())
	} else {
		n, _, _, err = of.GetExternalPerPodMetricReplicas(int32(s.w.Most), a.target.AverageValue.MilliValue(), a.Name, podautoscaler.Tolerances{}, "shop", &metav1.LabelSelector{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// served has each pod of a scenario have a value.
func served(s *scenario, milli int64) map[string][]Said {
	said := map[string][]Said{}
	for cluster, pods := range s.pods {
		for _, p := range pods {
			said[cluster] = append(said[cluster], Said{"Pod", strings.TrimSuffix(p.Name, "."+cluster), milli})
		}
	}
	return said
}

// Pods have the values that their clusters say, averaged over all of all clusters.
func TestPodsAreAveragedOverClusters(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *scenario, said map[string][]Said)
		want   int32
	}{
		{"as many as are needed", nil, 10},
		{"one cluster does three times as much", func(_ *scenario, said map[string][]Said) { set(said["a"], 30000) }, 20},
		{"none does anything", func(_ *scenario, said map[string][]Said) { set(said["a"], 0); set(said["b"], 0) }, 0},
		{"one without the metric, the other idle", func(_ *scenario, said map[string][]Said) { set(said["a"], 0); delete(said, "b") }, 5},
		{"one without the metric, the other busy", func(_ *scenario, said map[string][]Said) { set(said["a"], 30000); delete(said, "b") }, 15},
		{"pods that nobody sees", func(_ *scenario, said map[string][]Said) { said["b"] = append(said["b"], Said{"Pod", "none", 1 << 40}) }, 10},
		{"an object that is no pod", func(_ *scenario, said map[string][]Said) { said["b"][0].Kind = "Service"; set(said["a"], 30000) }, 19},
		{"the same pod twice", func(_ *scenario, said map[string][]Said) { said["b"] = append(said["b"], said["b"]...) }, 10},
		{"pods of another cluster", func(_ *scenario, said map[string][]Said) { said["c"] = said["a"] }, 10},
		{"what leaves counts", func(s *scenario, said map[string][]Said) {
			for n := range 5 {
				s.show("c", fmt.Sprint("leaves", n), nil)
				said["c"] = append(said["c"], Said{"Pod", fmt.Sprint("leaves", n), 10000})
			}
		}, 15},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := twoClusters()
			a := asking(s, byPods("10"))
			said := served(s, 10000)
			if c.change != nil {
				c.change(s, said)
			}
			if n, err := needsByPods(s, a, said); n != c.want || err != nil {
				t.Errorf("%d, %v; want %d", n, err, c.want)
			}
		})
	}
}

func set(said []Said, milli int64) {
	for i := range said {
		said[i].Milli = milli
	}
}

// twoClusters have five ready pods each.
func twoClusters() *scenario {
	s := newScenario(rand.New(rand.NewPCG(1, 9)))
	s.w.Placed, s.w.Most, s.pods, s.usage = map[string]int64{"a": 5, "b": 5}, 10, map[string][]corev1.Pod{}, map[string][]metricsv1beta1.PodMetrics{}
	for n := range 10 {
		s.show([]string{"a", "b"}[n/5], fmt.Sprint("p", n), nil)
	}
	return s
}

// Values of an object or from outside are one for all clusters. A cluster that does not answer costs only its own part.
func TestOneValueOfAllClusters(t *testing.T) {
	for _, c := range []struct {
		name   string
		target autoscalingv2.MetricTarget
		by     v1beta1.Combination
		said   map[string]int64
		want   int32
	}{
		{"a sum", average("10"), "", map[string]int64{"a": 80000, "b": 70000}, 15},
		{"the largest", average("10"), v1beta1.CombinationMax, map[string]int64{"a": 80000, "b": 70000}, 8},
		{"a sum for a value", whole("100"), v1beta1.CombinationSum, map[string]int64{"a": 80000, "b": 70000}, 15},
		{"the largest for a value", whole("100"), v1beta1.CombinationMax, map[string]int64{"a": 80000, "b": 70000}, 8},
		{"down, all answer", average("10"), "", map[string]int64{"a": 20000, "b": 0}, 2},
		{"down, one does not answer: it keeps its five", average("10"), "", map[string]int64{"a": 20000}, 7},
		{"down by a value, one does not answer", whole("100"), "", map[string]int64{"a": 20000}, 7},
		{"enough for a's, one does not answer", average("10"), "", map[string]int64{"a": 60000}, 10},
		{"up, one does not answer", average("10"), "", map[string]int64{"a": 140000}, 14},
		{"the largest, one does not answer", average("10"), v1beta1.CombinationMax, map[string]int64{"a": 20000}, 2},
		{"one that has no replicas answers, too", average("10"), "", map[string]int64{"a": 50000, "b": 50000, "c": 30000}, 13},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := twoClusters()
			if n := needsByExternal(t, s, asking(s, byExternal(c.target)), c.by, c.said); n != c.want {
				t.Errorf("%d, want %d", n, c.want)
			}
		})
	}
}

// A cluster that lies takes nothing from what others need, by any metric.
func TestALyingClusterTakesNothingByOtherMetrics(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 10))
		s := newScenario(r)
		a := asking(s, byPods("50m"))
		others := int64(0)
		truth := served(s, r.Int64N(200))
		for cluster, said := range truth {
			for _, one := range said {
				if cluster != "c0" {
					others += one.Milli
				}
			}
		}
		s.lie(r, "c0")
		truth["c0"] = nil
		for n := range r.IntN(100) {
			truth["c0"] = append(truth["c0"], Said{"Pod", fmt.Sprint("lie", n), []int64{0, 1, mostMilli, r.Int64N(mostMilli)}[r.IntN(4)]})
		}
		if n, err := needsByPods(s, a, truth); err == nil && (n < 0 || int64(n) < others/50-s.w.Most/50-1) {
			t.Fatalf("seed %d: by pods %d, others need %d", seed, n, others/50)
		}
		honest := r.Int64N(1 << 30)
		for _, target := range []autoscalingv2.MetricTarget{average("50m"), whole("50m")} {
			for _, by := range []v1beta1.Combination{v1beta1.CombinationSum, v1beta1.CombinationMax} {
				a := asking(s, byExternal(target))
				least := needsByExternal(t, s, a, by, map[string]int64{"c0": 0, "c1": honest})
				if n := needsByExternal(t, s, a, by, map[string]int64{"c0": []int64{1, mostMilli, r.Int64N(mostMilli)}[r.IntN(3)], "c1": honest}); n < least || n < 0 {
					t.Fatalf("seed %d: %s: %d, the others need %d", seed, by, n, least)
				}
			}
		}
	}
}

// What members answer is a list of quantities of moderate size, or nothing.
func TestParseSaid(t *testing.T) {
	custom := `{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta2","items":[{"describedObject":{"kind":"Pod","namespace":"shop","name":"p","apiVersion":"/v1"},"metric":{"name":"requests"},"timestamp":"2026-01-01T00:00:00Z","value":"%s"}]}`
	for text, want := range map[string]int64{"100m": 100, "7": 7000, "1.5": 1500, "2k": 2000000, "1Ki": 1024000, "-5": 0, "1e3": 1000000, "9E": mostMilli, "1n": 1, "0": 0, "1e99": mostMilli} {
		said, err := ParseSaid(fmt.Appendf(nil, custom, text))
		if err != nil || len(said) != 1 || said[0] != (Said{"Pod", "p", want}) {
			t.Errorf("%s: %+v, %v; want %d", text, said, err, want)
		}
	}
	begin := time.Now()
	for _, text := range []string{"NaN", "Inf", "1e999999999", "-1e999999999", "1e-999999999", strings.Repeat("9", 1000), strings.Repeat("9", 30) + "e999999", "", "1.2.3", "0x10", "5 cores"} {
		if said, err := ParseSaid(fmt.Appendf(nil, custom, text)); err == nil {
			t.Errorf("%q became %+v", text, said)
		}
	}
	for _, body := range []string{"", "[]", "null", `{"kind":"Status"}`, `{"items":[]}`, `{"kind":"MetricValueList","items":[{}]}`, `{"kind":"MetricValueList","items":{}}`} {
		if said, err := ParseSaid([]byte(body)); err == nil {
			t.Errorf("%s became %+v", body, said)
		}
	}
	if said, err := ParseSaid([]byte(`{"kind":"ExternalMetricValueList","items":[{"metricName":"waiting","value":"3"},{"metricName":"waiting","value":4}]}`)); err != nil || len(said) != 2 || said[1].Milli != 4000 {
		t.Errorf("external: %+v, %v", said, err)
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("it took %v", took)
	}
}

// One cluster has one value of a metric from outside, the sum of what matches, and of an object exactly one.
func TestOneValueOfACluster(t *testing.T) {
	object, external := Ask{Type: autoscalingv2.ObjectMetricSourceType}, Ask{Type: autoscalingv2.ExternalMetricSourceType}
	two := []Said{{Milli: 1}, {Milli: 2}}
	if v, ok := external.One(two); v != 3 || !ok {
		t.Errorf("external: %d, %t", v, ok)
	}
	if _, ok := external.One(nil); ok {
		t.Error("nothing is a value")
	}
	if v, ok := object.One(two[:1]); v != 1 || !ok {
		t.Errorf("object: %d, %t", v, ok)
	}
	if _, ok := object.One(two); ok {
		t.Error("of an object two values are one")
	}
	if v, _ := external.One([]Said{{Milli: mostMilli}, {Milli: mostMilli}}); v != mostMilli {
		t.Errorf("the sum is %d", v)
	}
	for _, c := range [][4]int64{{10, 1, 2, 5}, {mostMilli, 20000, 20000, mostMilli}, {7, 0, 3, 0}, {math.MaxInt64 / 2, 1, 2, math.MaxInt64 / 4}} {
		if got := part(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%d/%d of %d: %d, want %d", c[1], c[2], c[0], got, c[3])
		}
	}
}
