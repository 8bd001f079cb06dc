package autoscaling

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/autoscaling/plan"
	"federation/controllers/supervisor"
)

const (
	// readTimeout bounds one reading. Members that do not answer have 2 s of the view's.
	readTimeout = 30 * time.Second
	// pageSize is how many objects a page of the views has, of all clusters together.
	pageSize = 5000
	// maxPods is the most replicas of one workload that are scaled here: all of them are held while it is decided.
	maxPods = 20000
)

// reading is what is known of a workload's pods, and of the metrics of its autoscaler, when it is decided how many it needs.
type reading struct {
	namespace, selector string
	pods                []*corev1.Pod
	usage               []metricsv1beta1.PodMetrics
	// asked are the metrics for which members were asked.
	asked []answered
	err   error
	// shared: others scale the same pods, so it says nothing how many are needed.
	shared error
}

// readings reads for the autoscalers of a lane, one after the other, so that what Kubernetes' controller asks for is what was read last. That
// calls with names of metrics and selectors only, and these do not say for which autoscaler.
type readings struct {
	Options
	lane  *lane
	kinds *scaledKinds
	last  reading
	noted map[noted]note
}

// noted is a thing that may not be seen: replicas, or a metric. note is what is not seen of it, as text, and what was said of that.
type (
	noted struct{ autoscaler, what string }
	note  struct{ last, said string }
)

// take reads a workload's pods and their usage from the views, and has members asked for other metrics.
func (r *readings) take(ctx context.Context, resource schema.GroupResource, scale *autoscalingv1.Scale) {
	selector, err := labels.Parse(scale.Status.Selector)
	if r.last = (reading{}); err != nil || scale.Status.Selector == "" {
		return // the controller says so
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	r.last = reading{namespace: scale.Namespace, selector: selector.String()}
	r.last.err = supervisor.Protect(ctx, "autoscaling", func() error { return r.read(ctx, resource, scale, selector) })
}

// read reads for a workload, and says what is not seen.
func (r *readings) read(ctx context.Context, resource schema.GroupResource, scale *autoscalingv1.Scale, selector labels.Selector) error {
	by := r.lane.scaling(r.kinds.kindOf(resource), scale.Namespace, scale.Name)
	if by == nil {
		return fmt.Errorf("no autoscaler of %s %s/%s stays at the federation", resource, scale.Namespace, scale.Name)
	}
	w, in, err := r.workload(ctx, resource, scale, by)
	if err != nil {
		return err
	}
	if others := r.lane.of.sharing(by, selector, w.Template.Labels); len(others) > 0 {
		r.last.shared = fmt.Errorf("pods by selector %s are controlled by other autoscalers, too: %s", selector, strings.Join(others, ", "))
	}
	counted, said, err := r.count(ctx, w, in, selector)
	if err != nil {
		return err
	}
	r.last.pods, r.last.usage = counted.Pods, counted.Usage
	r.last.asked = answeredBy(w, by, counted, scale.Status.Replicas, in, said)
	r.report(by, counted.Unseen, r.last.asked)
	return nil
}

// count reads, and returns what counts of pods and usage, and what clusters say of other metrics.
func (r *readings) count(ctx context.Context, w plan.Workload, in []string, selector labels.Selector) (counted plan.Counted, said []map[string]answer, err error) {
	if len(in) > 0 {
		where, err := labels.NewRequirement(v1beta1.ClusterLabel, selection.In, in)
		if err != nil {
			return counted, nil, err
		}
		selector = selector.Add(*where)
	}
	var pods []corev1.Pod
	var usage []metricsv1beta1.PodMetrics
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(supervisor.Protected(groupCtx, "autoscaling", func(ctx context.Context) (err error) {
		pods, err = pages(selector, w.Most, func(o metav1.ListOptions) ([]corev1.Pod, string, error) {
			list, err := r.Pods.CoreV1().Pods(w.Namespace).List(ctx, o)
			if err != nil {
				return nil, "", err
			}
			return list.Items, list.Continue, nil
		})
		return err
	}))
	group.Go(supervisor.Protected(groupCtx, "autoscaling", func(ctx context.Context) (err error) {
		if !w.MeasuresUsage() {
			return nil
		}
		usage, err = pages(selector, w.Most, func(o metav1.ListOptions) ([]metricsv1beta1.PodMetrics, string, error) {
			list, err := r.Metrics.PodMetricses(w.Namespace).List(ctx, o)
			if err != nil {
				return nil, "", err
			}
			return list.Items, list.Continue, nil
		})
		return err
	}))
	said = r.ask(ctx, w, in)
	if err := group.Wait(); err != nil {
		return counted, nil, err
	}
	return w.Count(pods, usage), said, nil
}

// pages reads all pages of a list, as many as an honest cluster with so many objects takes.
func pages[T any](selector labels.Selector, most int64, page func(metav1.ListOptions) ([]T, string, error)) (all []T, err error) {
	o := metav1.ListOptions{LabelSelector: selector.String(), Limit: pageSize}
	for left := 4 + most/100; left > 0; left-- {
		items, next, err := page(o)
		if err != nil {
			return nil, err
		}
		if all, o.Continue = append(all, items...), next; next == "" {
			break
		}
	}
	return all, nil
}

// workload returns a workload as the federation has it, and the clusters where it is or was lately.
func (r *readings) workload(ctx context.Context, resource schema.GroupResource, scale *autoscalingv1.Scale, by *autoscalingv2.HorizontalPodAutoscaler) (w plan.Workload, in []string, err error) {
	u, err := r.object(ctx, resource, scale)
	if err != nil {
		return w, nil, err
	}
	placement := v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation])
	if placement == nil {
		return w, nil, fmt.Errorf("%s %s/%s has no placement yet", resource, scale.Namespace, scale.Name)
	}
	template, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	w = plan.Workload{Namespace: scale.Namespace, Selector: scale.Status.Selector, By: &by.Spec, Placed: placement.Clusters, Most: int64(max(scale.Spec.Replicas, min(scale.Status.Replicas, maxPods)))}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &w.Template); err != nil {
		return w, nil, err
	}
	placed := int64(0)
	for _, n := range placement.Clusters {
		placed += n
	}
	if most := max(w.Most, placed); most > maxPods {
		return w, nil, fmt.Errorf("spec.replicas: %d: must be at most %d to be scaled at the federation", most, maxPods)
	}
	return w, clustersOf(placement), nil
}

// clustersOf returns the clusters that have replicas by a placement, or had by its last decisions, sorted.
func clustersOf(p *v1beta1.Placement) []string {
	all := map[string]bool{}
	for _, of := range []map[string]int64{p.Clusters, p.Overflow, p.Home} {
		for name := range of {
			all[name] = true
		}
	}
	for _, decision := range p.History {
		for _, change := range decision.Changes {
			all[change.Cluster] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// object returns the object that has a scale: from the cache, or from the API if it is of a custom kind.
func (r *readings) object(ctx context.Context, resource schema.GroupResource, scale *autoscalingv1.Scale) (*unstructured.Unstructured, error) {
	if custom := r.kinds.custom[resource]; custom != nil {
		of, u := custom.Resource, &unstructured.Unstructured{}
		body, err := r.Kube.Discovery().RESTClient().Get().AbsPath("/apis", of.Group, of.Version, "namespaces", scale.Namespace, of.Resource, scale.Name).SetHeader("Accept", "application/json").DoRaw(ctx)
		if err != nil {
			return nil, err
		}
		return u, u.UnmarshalJSON(body)
	}
	obj, ok, err := r.Informers(v1beta1.FederatedKindOf(resource).Resource).GetStore().GetByKey(scale.Namespace + "/" + scale.Name)
	u, _ := obj.(*unstructured.Unstructured)
	if err != nil || !ok || u == nil {
		return nil, fmt.Errorf("%s %s/%s is not in the cache yet", resource, scale.Namespace, scale.Name)
	}
	return u, nil
}

// report has events say which replicas are not seen, and which clusters do not say what a metric is, if that is so twice in a row: new replicas
// take a moment to come, and one answer may be lost.
func (r *readings) report(by *autoscalingv2.HorizontalPodAutoscaler, unseen map[string]int64, asked []answered) {
	maps.DeleteFunc(r.noted, func(n noted, _ note) bool {
		_, there, _ := r.lane.ours.GetByKey(n.autoscaler)
		return !there
	})
	var parts []string
	for _, cluster := range slices.Sorted(maps.Keys(unseen)) {
		parts = append(parts, fmt.Sprintf("%d in %s", unseen[cluster], cluster))
	}
	if news := r.news(by, "", parts); news != "" {
		r.Recorder.Eventf(by, corev1.EventTypeWarning, "ReplicasNotSeen", "replicas that are placed and not seen count as pods without metrics: %s", news)
	}
	for _, a := range asked {
		if news := r.news(by, a.String(), a.unseen); news != "" {
			r.Recorder.Eventf(by, corev1.EventTypeWarning, "MetricNotSeen", "clusters with replicas do not say what the metric %s is: %s", a.Name, news)
		}
	}
}

// maxNamed is the most clusters that an event or condition names.
const maxNamed = 10

// news returns what is not seen of a thing, or "" as long as it is not to be said, or has been.
func (r *readings) news(by *autoscalingv2.HorizontalPodAutoscaler, what string, parts []string) string {
	key := noted{by.Namespace + "/" + by.Name, what}
	before, is := r.noted[key], note{last: strings.Join(parts[:min(len(parts), maxNamed)], "; ")}
	if is.last == before.last {
		is.said = is.last
	}
	if r.noted[key] = is; is.said == before.said {
		return ""
	}
	return is.said
}

// get returns the reading of what Kubernetes' controller asks for.
func (r *readings) get(namespace string, selector labels.Selector) (reading, error) {
	if r.last.namespace != namespace || r.last.selector != selector.String() {
		return r.last, fmt.Errorf("the pods that %s selects in %s have not been read", selector, namespace)
	}
	return r.last, r.last.err
}
