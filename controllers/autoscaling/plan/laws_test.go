package plan

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
)

// The laws hold for what Kubernetes' own algorithm makes of what counts.

const request = 100 // of a pod, in thousandths of a processor

// scenario is a workload in some clusters, and what they show.
type scenario struct {
	w     Workload
	pods  map[string][]corev1.Pod // by cluster
	usage map[string][]metricsv1beta1.PodMetrics
}

func newScenario(r *rand.Rand) *scenario {
	s := &scenario{pods: map[string][]corev1.Pod{}, usage: map[string][]metricsv1beta1.PodMetrics{}}
	s.w = Workload{Namespace: "shop", Placed: map[string]int64{}}
	s.w.Template.Labels = map[string]string{"app": "web"}
	s.w.Template.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(request, resource.DecimalSI)}}}}
	s.w.By = &autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 1000, Metrics: []autoscalingv2.MetricSpec{{
		Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{AverageUtilization: new(int32(20 + r.IntN(100)))}},
	}}}
	load := r.Int64N(2 * request)
	for i := range 2 + r.IntN(3) {
		cluster := fmt.Sprintf("c%d", i)
		s.w.Placed[cluster] = 1 + r.Int64N(12)
		for n := range s.w.Placed[cluster] {
			s.show(cluster, fmt.Sprintf("p%d", n), resource.NewMilliQuantity(load, resource.DecimalSI))
		}
		s.w.Most += s.w.Placed[cluster]
	}
	return s
}

// show has a cluster show a ready pod that uses so much; nil: without metrics.
func (s *scenario) show(cluster, name string, uses *resource.Quantity) *corev1.Pod {
	long := metav1.NewTime(time.Now().Add(-time.Hour))
	name += "." + cluster
	s.pods[cluster] = append(s.pods[cluster], corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web", v1beta1.ClusterLabel: cluster}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &long, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: long}}},
	})
	if uses != nil {
		s.usage[cluster] = append(s.usage[cluster], metricsv1beta1.PodMetrics{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Timestamp: metav1.Now(), Window: metav1.Duration{Duration: time.Second},
			Containers: []metricsv1beta1.ContainerMetrics{{Name: "c", Usage: corev1.ResourceList{corev1.ResourceCPU: *uses}}},
		})
	}
	return &s.pods[cluster][len(s.pods[cluster])-1]
}

// counted is what counts of what all clusters show.
func (s *scenario) counted() Counted {
	var pods []corev1.Pod
	var usage []metricsv1beta1.PodMetrics
	for _, of := range s.pods {
		pods = append(pods, of...)
	}
	for _, of := range s.usage {
		usage = append(usage, of...)
	}
	return s.w.Count(pods, usage)
}

// needs is what Kubernetes makes of what counts.
func (s *scenario) needs() (int32, Counted, error) {
	counted := s.counted()
	calculator := podautoscaler.NewReplicaCalculator(metrics.NewRESTMetricsClient(shownUsage{usage: counted.Usage}, nil, nil), shownPods{pods: counted.Pods}, 5*time.Minute, 30*time.Second)
	n, _, _, _, err := calculator.GetResourceReplicas(context.Background(), int32(s.w.Most), *s.w.By.Metrics[0].Resource.Target.AverageUtilization, corev1.ResourceCPU, podautoscaler.Tolerances{}, "shop", labels.Everything(), "")
	return n, counted, err
}

// shownPods and shownUsage are what the calculator sees.
type shownPods struct {
	corelisters.PodLister
	corelisters.PodNamespaceLister
	pods []*corev1.Pod
}

func (s shownPods) Pods(string) corelisters.PodNamespaceLister { return s }

func (s shownPods) List(labels.Selector) ([]*corev1.Pod, error) { return s.pods, nil }

type shownUsage struct {
	metricsclient.PodMetricsInterface
	usage []metricsv1beta1.PodMetrics
}

func (s shownUsage) PodMetricses(string) metricsclient.PodMetricsInterface { return s }

func (s shownUsage) List(context.Context, metav1.ListOptions) (*metricsv1beta1.PodMetricsList, error) {
	return &metricsv1beta1.PodMetricsList{Items: s.usage}, nil
}

// Replicas that are not seen do not scale a workload down: it keeps at least what it would have if all were seen, as long as those use no
// more than they request.
func TestWhatIsNotSeenDoesNotScaleDown(t *testing.T) {
	down := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newScenario(r)
		truth, _, err := s.needs()
		if err != nil {
			t.Fatal(err)
		}
		if load := s.usage["c0"][0].Containers[0].Usage.Cpu(); load.MilliValue() > request {
			continue
		}
		switch delete(s.usage, "c0"); r.IntN(3) {
		case 0: // dead
			delete(s.pods, "c0")
		case 1: // its metrics server is
		case 2: // it shows some
			s.pods["c0"] = s.pods["c0"][:r.IntN(len(s.pods["c0"])+1)]
		}
		n, counted, err := s.needs()
		if err != nil {
			t.Fatal(err)
		}
		if least := min(truth, int32(s.w.Most)); n < least {
			t.Fatalf("seed %d: %d with %v unseen, want %d at least", seed, n, counted.Unseen, least)
		}
		if n < int32(s.w.Most) {
			down++
		}
	}
	if down == 0 {
		t.Error("nothing was ever scaled down: the law says nothing")
	}
}

// lie has a cluster show what it likes.
func (s *scenario) lie(r *rand.Rand, cluster string) {
	delete(s.pods, cluster)
	delete(s.usage, cluster)
	says := func() *resource.Quantity {
		switch r.IntN(6) {
		case 0:
			return nil
		case 1:
			return resource.NewMilliQuantity(0, resource.DecimalSI)
		case 2:
			return resource.NewQuantity(-1-r.Int64N(math.MaxInt64), resource.DecimalSI)
		case 3:
			return resource.NewQuantity(math.MaxInt64-r.Int64N(1000), resource.DecimalSI)
		case 4:
			q := resource.MustParse("1e18")
			return &q
		}
		return resource.NewMilliQuantity(r.Int64(), resource.DecimalSI)
	}
	alike, changes := says(), r.IntN(3) > 0
	for n := range r.IntN(100) {
		if changes && r.IntN(3) == 0 {
			alike = says()
		}
		p := s.show(cluster, fmt.Sprintf("lie%d", n), alike)
		p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1e15")}}}}
		switch r.IntN(8) {
		case 0:
			p.Status.Phase = corev1.PodPending
		case 1:
			p.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		case 2:
			p.Status.Phase = corev1.PodFailed
		case 3:
			p.Status = corev1.PodStatus{}
		case 4:
			p.Status.Conditions[0].Status = corev1.ConditionFalse
		case 5:
			now := metav1.Now()
			p.Status.StartTime, p.Status.Conditions[0].LastTransitionTime = &now, now
		}
	}
	for i := range s.usage[cluster] {
		m := &s.usage[cluster][i]
		switch r.IntN(6) {
		case 0:
			m.Containers = append(m.Containers, metricsv1beta1.ContainerMetrics{Name: "sidecar", Usage: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("-5")}})
		case 1:
			m.Containers = append(m.Containers, m.Containers...)
		case 2:
			m.Containers = nil
		}
	}
}

// Whatever one cluster shows, a workload has what the pods of the others need, also when these need more than before.
func TestALyingClusterTakesNothingFromOthers(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := newScenario(r)
		others := int64(0) // thousandths that their pods use
		for cluster, usage := range s.usage {
			for _, m := range usage {
				if cluster != "c0" {
					others += m.Containers[0].Usage.Cpu().MilliValue()
				}
			}
		}
		s.lie(r, "c0")
		n, counted, err := s.needs()
		if err != nil {
			continue // nothing is scaled
		}
		target := int64(*s.w.By.Metrics[0].Resource.Target.AverageUtilization)
		// Kubernetes' algorithm rounds the utilization of all down to a whole percentage.
		least := others*100/(request*target) - int64(len(counted.Pods))/target - 1
		if int64(n) < least || n < 0 {
			t.Fatalf("seed %d: %d, want %d at least; before it was %d", seed, n, least, s.w.Most)
		}
	}
}

// Of each cluster as many pods count as are placed there, seen or not.
func TestHowManyPodsCount(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := newScenario(r)
		s.lie(r, "c0")
		counted := s.counted()
		by, names := map[string]int64{}, map[string]bool{}
		for _, p := range counted.Pods {
			by[p.Name[len(p.Name)-2:]]++
			if names[p.Name] {
				t.Fatalf("seed %d: %s counts twice", seed, p.Name)
			}
			names[p.Name] = true
		}
		for cluster, placed := range s.w.Placed {
			if n := by[cluster]; n != placed {
				t.Fatalf("seed %d: %d pods of %s count, %d are placed there", seed, n, cluster, placed)
			}
		}
	}
}

// What honest clusters report is left as it is.
func TestHonestUsageIsLeftAsItIs(t *testing.T) {
	s := newScenario(rand.New(rand.NewPCG(1, 4)))
	said := map[string]*resource.Quantity{}
	for _, usage := range s.usage {
		for _, m := range usage {
			said[m.Name] = m.Containers[0].Usage.Cpu()
		}
	}
	_, counted, err := s.needs()
	if err != nil || len(counted.Usage) != len(said) {
		t.Fatalf("of %d pods %d count: %v", len(said), len(counted.Usage), err)
	}
	for _, m := range counted.Usage {
		if got := m.Containers[0].Usage.Cpu(); said[m.Name].Cmp(*got) != 0 {
			t.Errorf("%s: %s became %s", m.Name, said[m.Name], got)
		}
	}
}

// Sums of what is said to be used fit Kubernetes' integers, whatever is asked for.
func TestUsageIsBounded(t *testing.T) {
	huge := resource.MustParse("9e18")
	for _, target := range []autoscalingv2.MetricTarget{{AverageValue: &huge}, {AverageValue: resource.NewMilliQuantity(1, resource.DecimalSI)}, {AverageUtilization: new(int32(math.MaxInt32))}, {AverageUtilization: new(int32(1))}} {
		s := newScenario(rand.New(rand.NewPCG(1, 5)))
		s.w.By.MaxReplicas, s.w.By.Metrics[0].Resource.Target = math.MaxInt32, target
		s.w.Most = 20000
		for n := range s.w.Most {
			s.show("c0", fmt.Sprintf("more%d", n), &huge)
		}
		counted, sum := s.counted(), int64(0)
		for _, m := range counted.Usage {
			v := m.Containers[0].Usage.Cpu().MilliValue()
			if sum += v; v < 0 || sum < 0 || sum > math.MaxInt64/100 {
				t.Fatalf("%+v: %d, in all %d", target, v, sum)
			}
		}
		if sum == 0 {
			t.Errorf("%+v: nothing is used", target)
		}
	}
}

// Usage with a huge exponent, which Kubernetes' arithmetic compares for minutes, costs nothing.
func TestHugeUsageIsBoundedAtOnce(t *testing.T) {
	s := newScenario(rand.New(rand.NewPCG(1, 11)))
	begin := time.Now()
	for _, text := range []string{"1e999999999", "-1e999999999"} {
		s.show("c0", "huge"+text, new(resource.MustParse(text)))
	}
	if _, _, err := s.needs(); err != nil || time.Since(begin) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}

// What pods do that are not placed any more counts: those of a cluster that they leave, while those that take their place do not serve yet.
func TestWhatLeavesCounts(t *testing.T) {
	s := newScenario(rand.New(rand.NewPCG(1, 7)))
	*s.w.By.Metrics[0].Resource.Target.AverageUtilization = 50
	s.w.Placed, s.w.Most, s.pods, s.usage = map[string]int64{"c1": 10}, 10, map[string][]corev1.Pod{}, map[string][]metricsv1beta1.PodMetrics{}
	for n := range 10 {
		s.show("c0", fmt.Sprintf("leaves%d", n), resource.NewMilliQuantity(50, resource.DecimalSI))
	}
	now, came := metav1.Now(), s.show("c1", "came", resource.NewMilliQuantity(1, resource.DecimalSI)) // Kubernetes ignores it for a while
	came.Status.StartTime, came.Status.Conditions[0].LastTransitionTime = &now, now
	for n := range 9 {
		s.show("c1", fmt.Sprintf("comes%d", n), nil).Status.Phase = corev1.PodPending
	}
	if n, _, err := s.needs(); n != 10 || err != nil {
		t.Errorf("%d replicas, %v; they do what 10 should do", n, err)
	}
}

// Of more pods than are placed those that serve count, and what all of them do.
func TestThoseThatServeCountFirst(t *testing.T) {
	s := newScenario(rand.New(rand.NewPCG(1, 8)))
	s.w.Placed, s.w.Most, s.pods, s.usage = map[string]int64{"c0": 2}, 4, map[string][]corev1.Pod{}, map[string][]metricsv1beta1.PodMetrics{}
	s.show("c0", "a", nil)
	for _, name := range []string{"b", "c", "d"} {
		s.show("c0", name, resource.NewMilliQuantity(10, resource.DecimalSI))
	}
	counted, sum := s.counted(), int64(0)
	for _, m := range counted.Usage {
		sum += m.Containers[0].Usage.Cpu().MilliValue()
	}
	if len(counted.Pods) != 2 || counted.Pods[0].Name != "b.c0" || counted.Pods[1].Name != "c.c0" || len(counted.Usage) != 2 || sum != 30 {
		t.Errorf("%d count, the first is %s; they do %d in all", len(counted.Pods), counted.Pods[0].Name, sum)
	}
}

// Metrics that lack what the autoscaler scales by are none, and containers that the template does not have do not count.
func TestMetricsAreCompleteOrNone(t *testing.T) {
	s := newScenario(rand.New(rand.NewPCG(1, 6)))
	s.w.Template.Spec.Containers = append(s.w.Template.Spec.Containers, corev1.Container{Name: "d"})
	cpu, memory := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}, corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	both := corev1.ResourceList{corev1.ResourceCPU: cpu[corev1.ResourceCPU], corev1.ResourceMemory: memory[corev1.ResourceMemory]}
	target := autoscalingv2.MetricTarget{AverageValue: resource.NewQuantity(1, resource.DecimalSI)}
	byContainer := autoscalingv2.MetricSpec{ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: corev1.ResourceMemory, Container: "d", Target: target}}
	for name, c := range map[string]struct {
		more       []autoscalingv2.MetricSpec
		containers []metricsv1beta1.ContainerMetrics
		want       int // containers that count
	}{
		"complete":                       {nil, []metricsv1beta1.ContainerMetrics{{Name: "c", Usage: cpu}, {Name: "d", Usage: both}}, 2},
		"another container":              {nil, []metricsv1beta1.ContainerMetrics{{Name: "c", Usage: cpu}, {Name: "sidecar", Usage: cpu}}, 1},
		"twice the same":                 {nil, []metricsv1beta1.ContainerMetrics{{Name: "c", Usage: cpu}, {Name: "c", Usage: cpu}}, 1},
		"none":                           {nil, nil, 0},
		"other containers only":          {nil, []metricsv1beta1.ContainerMetrics{{Name: "sidecar", Usage: cpu}}, 0},
		"another resource":               {nil, []metricsv1beta1.ContainerMetrics{{Name: "c", Usage: memory}}, 0},
		"by a container, complete":       {[]autoscalingv2.MetricSpec{byContainer}, []metricsv1beta1.ContainerMetrics{{Name: "c", Usage: both}, {Name: "d", Usage: both}}, 2},
		"by a container that is missing": {[]autoscalingv2.MetricSpec{byContainer}, []metricsv1beta1.ContainerMetrics{{Name: "c", Usage: both}}, 0},
	} {
		w, by := s.w, *s.w.By
		by.Metrics = append(slices.Clone(by.Metrics), c.more...)
		w.By = &by
		got := w.measured([]metricsv1beta1.PodMetrics{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Containers: c.containers}})["p"]
		switch {
		case got == nil && c.want > 0, got != nil && len(got.Containers) != c.want:
			t.Errorf("%s: %+v, want %d containers", name, got, c.want)
		}
	}
}
