package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Workload is what an autoscaler scales, as the federation has it.
type Workload struct {
	Namespace string
	// Selector is what selects its pods, as text.
	Selector string
	// Template is that of its pods.
	Template corev1.PodTemplateSpec
	// Placed are its replicas by cluster.
	Placed map[string]int64
	// By is what scales it.
	By *autoscalingv2.HorizontalPodAutoscalerSpec
	// Most is how many pods of a cluster are looked at: as many as are asked for, or are there, in all.
	Most int64
}

// Counted are the pods by which a workload is scaled.
type Counted struct {
	// Pods are as many as are placed, seen or not.
	Pods []*corev1.Pod
	// Usage is what they use, as far as it is known, and what others do that are not placed any more. It is fit for Kubernetes' algorithm, which trusts it.
	Usage []metricsv1beta1.PodMetrics
	// Unseen is how many replicas were not seen, by cluster.
	Unseen map[string]int64
	// others are pods that do not count and are ready, by name.
	others []string
}

// Count returns the pods that count, of those that members show with what they are said to use.
func (w Workload) Count(shown []corev1.Pod, used []metricsv1beta1.PodMetrics) Counted {
	usage, live := w.measured(used), alive(shown)
	out, more := Counted{Unseen: map[string]int64{}}, []metricsv1beta1.PodMetrics{}
	for _, cluster := range w.clusters(live) {
		pods, placed := serving(live[cluster], usage), int(w.Placed[cluster])
		count := min(len(pods), placed)
		for _, p := range pods[:count] {
			out.Pods = append(out.Pods, w.pod(p.Name, seen(p)))
			if m := usage[p.Name]; m != nil {
				out.Usage = append(out.Usage, *m)
			}
		}
		for _, p := range pods[count:max(count, min(len(pods), int(w.Most)))] {
			if isReady(p) {
				out.others = append(out.others, p.Name)
			}
			if m := usage[p.Name]; m != nil && isReady(p) {
				more = append(more, *m)
			}
		}
		for n := count; n < placed; n++ {
			out.Pods = append(out.Pods, w.pod(fmt.Sprintf("?%d.%s", n, cluster), running)) // no pod has such a name
			out.Unseen[cluster]++
		}
	}
	w.boundUsage(slices.Concat(out.Usage, more))
	out.take(more, usage)
	return out
}

// alive returns the pods of each cluster that have not ended and are not about to.
func alive(shown []corev1.Pod) map[string][]*corev1.Pod {
	out := map[string][]*corev1.Pod{}
	for i := range shown {
		if p := &shown[i]; p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded {
			cluster := p.Labels[v1beta1.ClusterLabel]
			out[cluster] = append(out[cluster], p)
		}
	}
	return out
}

// take adds what further pods do to what one does that counts, if any serves. There it counts as it is: that pod has started long ago.
func (c *Counted) take(more []metricsv1beta1.PodMetrics, usage map[string]*metricsv1beta1.PodMetrics) {
	pod := slices.IndexFunc(c.Pods, func(p *corev1.Pod) bool { return serves(p, usage) })
	if pod < 0 || len(more) == 0 {
		return
	}
	c.Pods[pod].Status.StartTime = &metav1.Time{Time: time.Unix(1, 0)}
	to := &c.Usage[slices.IndexFunc(c.Usage, func(m metricsv1beta1.PodMetrics) bool { return m.Name == c.Pods[pod].Name })]
	for _, m := range more {
		for _, from := range m.Containers {
			addUsage(to, from)
		}
	}
}

// addUsage adds what a container uses to that of the same name in a pod.
func addUsage(to *metricsv1beta1.PodMetrics, from metricsv1beta1.ContainerMetrics) {
	for _, c := range to.Containers {
		if c.Name == from.Name {
			for name, value := range from.Usage {
				sum := c.Usage[name]
				sum.Add(value)
				c.Usage[name] = sum
			}
			return
		}
	}
	to.Containers = append(to.Containers, from)
}

// clusters returns the clusters where replicas are placed or shown, sorted.
func (w Workload) clusters(shown map[string][]*corev1.Pod) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(w.Placed)), maps.Keys(shown))
	slices.Sort(all)
	return slices.Compact(all)
}

// serves reports whether a pod is said to be ready, and what it does, if usage counts at all.
func serves(p *corev1.Pod, usage map[string]*metricsv1beta1.PodMetrics) bool {
	return (usage == nil || usage[p.Name] != nil) && isReady(p)
}

// isReady reports whether a pod is said to be ready.
func isReady(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodRunning &&
		slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

// serving returns pods in the order in which they count: first those that serve, by name.
func serving(pods []*corev1.Pod, usage map[string]*metricsv1beta1.PodMetrics) []*corev1.Pod {
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		if x, y := serves(a, usage), serves(b, usage); x != y {
			return map[bool]int{true: -1, false: 1}[x]
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return pods
}

// pod returns a pod of the workload as its template has it.
func (w Workload) pod(name string, status corev1.PodStatus) *corev1.Pod {
	spec := w.Template.Spec
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: w.Template.Labels},
		Spec:       corev1.PodSpec{Containers: spec.Containers, InitContainers: spec.InitContainers, Resources: spec.Resources},
		Status:     status,
	}
}

// running is the status of a replica that is not seen.
var running = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}

// seen returns what counts of a pod's status.
func seen(p *corev1.Pod) corev1.PodStatus {
	status := corev1.PodStatus{Phase: p.Status.Phase, StartTime: p.Status.StartTime}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			status.Conditions = append(status.Conditions, c)
			break
		}
	}
	return status
}
