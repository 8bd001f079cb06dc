package autoscaling

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
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
	// readingKept is how long a reading is kept. The controller uses it at once.
	readingKept = 2 * time.Minute
	// pageSize is how many objects a page of the views has, of all clusters together.
	pageSize = 5000
	// maxPods is the most replicas of one workload that are scaled here: all of them are held while it is decided.
	maxPods = 20000
)

// reading is what is known of a workload's pods when it is decided how many it needs.
type reading struct {
	at    time.Time
	pods  []*corev1.Pod
	usage []metricsv1beta1.PodMetrics
	err   error
}

// asked is how Kubernetes' controller asks for a workload's pods.
type asked struct{ namespace, selector string }

// readings has the latest reading of each workload.
type readings struct {
	Options
	autoscalers *autoscalers

	mu     sync.Mutex
	of     map[asked]reading
	unseen map[asked]unseen
}

// unseen are the replicas of a workload that the last reading did not see, as text, and what was said of them last.
type unseen struct{ last, said string }

// take reads a workload's pods and their usage from the views.
func (r *readings) take(ctx context.Context, resource schema.GroupResource, scale *autoscalingv1.Scale) {
	selector, err := labels.Parse(scale.Status.Selector)
	if err != nil || scale.Status.Selector == "" {
		return // the controller says so
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	this := asked{scale.Namespace, selector.String()}
	var counted plan.Counted
	err = supervisor.Protect(ctx, "autoscaling", func() (err error) { counted, err = r.count(ctx, resource, scale, selector); return err })
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.of, func(_ asked, one reading) bool { return time.Since(one.at) > readingKept })
	maps.DeleteFunc(r.unseen, func(s asked, _ unseen) bool { _, read := r.of[s]; return !read && s != this })
	r.of[this] = reading{at: time.Now(), pods: counted.Pods, usage: counted.Usage, err: err}
	if err == nil {
		r.reportUnseen(this, resource, scale, counted.Unseen)
	}
}

// count reads, and returns what counts of that.
func (r *readings) count(ctx context.Context, resource schema.GroupResource, scale *autoscalingv1.Scale, selector labels.Selector) (plan.Counted, error) {
	w, in, err := r.workload(resource, scale)
	if err != nil {
		return plan.Counted{}, err
	}
	if len(in) > 0 {
		where, err := labels.NewRequirement(v1beta1.ClusterLabel, selection.In, in)
		if err != nil {
			return plan.Counted{}, err
		}
		selector = selector.Add(*where)
	}
	var pods []corev1.Pod
	var usage []metricsv1beta1.PodMetrics
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(supervisor.Protected(groupCtx, "autoscaling", func(ctx context.Context) (err error) {
		pods, err = pages(selector, w.Most, func(o metav1.ListOptions) ([]corev1.Pod, string, error) {
			list, err := r.Pods.CoreV1().Pods(scale.Namespace).List(ctx, o)
			if err != nil {
				return nil, "", err
			}
			return list.Items, list.Continue, nil
		})
		return err
	}))
	group.Go(supervisor.Protected(groupCtx, "autoscaling", func(ctx context.Context) (err error) {
		usage, err = pages(selector, w.Most, func(o metav1.ListOptions) ([]metricsv1beta1.PodMetrics, string, error) {
			list, err := r.Metrics.PodMetricses(scale.Namespace).List(ctx, o)
			if err != nil {
				return nil, "", err
			}
			return list.Items, list.Continue, nil
		})
		return err
	}))
	if err := group.Wait(); err != nil {
		return plan.Counted{}, err
	}
	return w.Count(pods, usage), nil
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
func (r *readings) workload(resource schema.GroupResource, scale *autoscalingv1.Scale) (w plan.Workload, in []string, err error) {
	obj, ok, err := r.Informers(v1beta1.FederatedKindOf(resource).Resource).GetStore().GetByKey(scale.Namespace + "/" + scale.Name)
	u, _ := obj.(*unstructured.Unstructured)
	if err != nil || !ok || u == nil {
		return w, nil, fmt.Errorf("%s %s/%s is not in the cache yet", resource, scale.Namespace, scale.Name)
	}
	by := r.autoscalers.of(kindOf(resource), scale.Namespace, scale.Name)
	if by == nil {
		return w, nil, fmt.Errorf("no autoscaler of %s %s/%s stays at the federation", resource, scale.Namespace, scale.Name)
	}
	placement := v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation])
	if placement == nil {
		return w, nil, fmt.Errorf("%s %s/%s has no placement yet", resource, scale.Namespace, scale.Name)
	}
	template, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	w = plan.Workload{Namespace: scale.Namespace, By: &by.Spec, Placed: placement.Clusters, Most: int64(max(scale.Spec.Replicas, min(scale.Status.Replicas, maxPods)))}
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

func kindOf(resource schema.GroupResource) string { return v1beta1.FederatedKindOf(resource).Kind }

// reportUnseen has an event say which replicas are not seen, if that is so twice in a row: new ones take a moment to come.
func (r *readings) reportUnseen(this asked, resource schema.GroupResource, scale *autoscalingv1.Scale, by map[string]int64) {
	var parts []string
	for _, cluster := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%d in %s", by[cluster], cluster))
	}
	before, is := r.unseen[this], unseen{last: strings.Join(parts[:min(len(parts), 10)], ", ")}
	if is.last == before.last {
		is.said = is.last
		if of := r.autoscalers.of(kindOf(resource), scale.Namespace, scale.Name); of != nil && is.said != "" && is.said != before.said {
			r.Recorder.Eventf(of, corev1.EventTypeWarning, "ReplicasNotSeen", "replicas that are placed and not seen count as pods without metrics: %s", is.said)
		}
	}
	r.unseen[this] = is
}

// get returns the reading of what Kubernetes' controller asks for.
func (r *readings) get(namespace string, selector labels.Selector) (reading, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, ok := r.of[asked{namespace, selector.String()}]
	if !ok {
		return one, fmt.Errorf("the pods that %s selects in %s have not been read", selector, namespace)
	}
	return one, one.err
}
