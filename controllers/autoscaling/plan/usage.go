package plan

import (
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

const (
	// mostMilli bounds the sum of what pods use, in thousandths: Kubernetes' algorithm multiplies it by 100, as an int64.
	mostMilli = 1 << 56
	// mostReplicas bounds what usage may call for: Kubernetes' algorithm makes an int32 of it.
	mostReplicas = 1 << 30
)

// MeasuresUsage reports whether the autoscaler scales by what pods use.
func (w Workload) MeasuresUsage() bool {
	return slices.ContainsFunc(w.By.Metrics, func(m autoscalingv2.MetricSpec) bool { return m.Resource != nil || m.ContainerResource != nil })
}

// measured returns what is said of pods, by name, as far as it counts: of the template's containers, with all that the autoscaler scales by.
// Nil: it does not scale by what pods use.
func (w Workload) measured(used []metricsv1beta1.PodMetrics) map[string]*metricsv1beta1.PodMetrics {
	if !w.MeasuresUsage() {
		return nil
	}
	out, containers := make(map[string]*metricsv1beta1.PodMetrics, len(used)), w.containers()
	for _, m := range used {
		var known []metricsv1beta1.ContainerMetrics
		for _, c := range m.Containers {
			again := slices.ContainsFunc(known, func(other metricsv1beta1.ContainerMetrics) bool { return other.Name == c.Name })
			if _, ours := containers[c.Name]; ours && !again {
				known = append(known, c)
			}
		}
		if m.Containers = known; w.isComplete(known) {
			out[m.Name] = &m
		}
	}
	return out
}

// isComplete reports whether the metrics of a pod's containers have all that the autoscaler scales by.
func (w Workload) isComplete(containers []metricsv1beta1.ContainerMetrics) bool {
	for name := range w.targets() {
		for _, c := range containers {
			if _, said := c.Usage[name]; !said {
				return false
			}
		}
	}
	for _, m := range w.By.Metrics {
		if r := m.ContainerResource; r != nil && !slices.ContainsFunc(containers, func(c metricsv1beta1.ContainerMetrics) bool { return c.Name == r.Container }) {
			return false
		}
	}
	return len(containers) > 0
}

// boundUsage bounds what pods are said to use: of resources that the autoscaler scales by, from 0 to what calls for more than the maximum
// by itself.
func (w Workload) boundUsage(usage []metricsv1beta1.PodMetrics) {
	limits := map[corev1.ResourceName]resource.Quantity{}
	parts := int64(max(1, len(usage)*len(w.containers())))
	for name, target := range w.targets() {
		times := min(2*int64(w.By.MaxReplicas), mostReplicas/parts)
		limits[name] = *resource.NewMilliQuantity(min(multiply(times, target), mostMilli/parts), resource.DecimalSI)
	}
	for _, m := range usage {
		for i := range m.Containers {
			m.Containers[i].Usage = within(m.Containers[i].Usage, limits)
		}
	}
}

// within returns the values of the limited resources, from 0 to their limits.
func within(usage corev1.ResourceList, limits map[corev1.ResourceName]resource.Quantity) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, limit := range limits {
		switch value := usage[name]; {
		case value.Sign() < 0:
			out[name] = resource.Quantity{}
		case isMore(value, limit):
			out[name] = limit
		default:
			out[name] = value
		}
	}
	return out
}

// containers returns the containers of the template that run as long as its pods may, by name.
func (w Workload) containers() map[string]corev1.Container {
	out := map[string]corev1.Container{}
	for _, c := range slices.Concat(w.Template.Spec.Containers, w.Template.Spec.InitContainers) {
		out[c.Name] = c
	}
	return out
}

// targets returns what one pod should use of a resource, in thousandths: the most of the autoscaler's metrics.
func (w Workload) targets() map[corev1.ResourceName]int64 {
	out := map[corev1.ResourceName]int64{}
	for _, m := range w.By.Metrics {
		switch {
		case m.Resource != nil:
			out[m.Resource.Name] = max(out[m.Resource.Name], w.targetOf(m.Resource.Target, m.Resource.Name))
		case m.ContainerResource != nil:
			out[m.ContainerResource.Name] = max(out[m.ContainerResource.Name], w.targetOf(m.ContainerResource.Target, m.ContainerResource.Name))
		}
	}
	return out
}

// targetOf returns what one pod should use of a resource by a target.
func (w Workload) targetOf(target autoscalingv2.MetricTarget, name corev1.ResourceName) int64 {
	switch {
	case target.AverageValue != nil:
		return milli(*target.AverageValue)
	case target.AverageUtilization != nil:
		return multiply(w.requests(name), int64(max(0, *target.AverageUtilization))) / 100
	}
	return 0
}

// requests returns what a pod requests of a resource, in thousandths: the more of what it and its containers say.
func (w Workload) requests(name corev1.ResourceName) (sum int64) {
	for _, c := range w.containers() {
		sum = min(sum+milli(c.Resources.Requests[name]), mostMilli)
	}
	if whole := w.Template.Spec.Resources; whole != nil {
		return max(sum, milli(whole.Requests[name]))
	}
	return sum
}

// isMore reports whether a quantity is more than a limit. To compare the exact values would take minutes for one with a large exponent.
func isMore(q, limit resource.Quantity) bool {
	return q.AsApproximateFloat64() > 2*limit.AsApproximateFloat64()+1 || q.Cmp(limit) > 0
}

// milli returns thousandths of a quantity, from 0 to mostMilli.
func milli(q resource.Quantity) int64 {
	switch {
	case q.Sign() <= 0:
		return 0
	case isMore(q, *resource.NewMilliQuantity(mostMilli, resource.DecimalSI)):
		return mostMilli
	}
	return q.MilliValue()
}

// multiply returns the product of two numbers that are not negative, at most mostMilli.
func multiply(a, b int64) int64 {
	if b > 0 && a > mostMilli/b {
		return mostMilli
	}
	return a * b
}
