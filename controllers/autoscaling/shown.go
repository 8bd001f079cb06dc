package autoscaling

import (
	"cmp"
	"context"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
)

// What Kubernetes' controller is shown: the latest reading, as an informer of pods and as the API of their metrics.

// podInformer is an informer of pods as far as Kubernetes' controller uses one: nothing is held but readings.
type podInformer struct {
	cache.SharedIndexInformer
	readings *readings
}

// Informer implements Kubernetes' PodInformer.
func (p podInformer) Informer() cache.SharedIndexInformer { return p }

// HasSynced implements cache.SharedIndexInformer.
func (podInformer) HasSynced() bool { return true }

// Lister implements Kubernetes' PodInformer.
func (p podInformer) Lister() corelisters.PodLister { return podLister{p.readings, ""} }

// podLister lists pods of a namespace by the selector of a workload that has been read.
type podLister struct {
	*readings
	namespace string
}

// Pods implements corelisters.PodLister.
func (p podLister) Pods(namespace string) corelisters.PodNamespaceLister {
	return podLister{p.readings, namespace}
}

// List implements corelisters.PodLister.
func (p podLister) List(selector labels.Selector) ([]*corev1.Pod, error) {
	one, err := p.get(p.namespace, selector)
	return one.pods, err
}

// Get implements corelisters.PodNamespaceLister. Nobody asks for it.
func (podLister) Get(name string) (*corev1.Pod, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
}

// podMetrics is the API of pods' metrics.
type podMetrics struct{ *readings }

// PodMetricses implements Kubernetes' PodMetricsesGetter.
func (p podMetrics) PodMetricses(namespace string) metricsclient.PodMetricsInterface {
	return podMetricsIn{readings: p.readings, namespace: namespace}
}

type podMetricsIn struct {
	metricsclient.PodMetricsInterface // nil: only lists are asked for
	*readings
	namespace string
}

// List implements Kubernetes' PodMetricsInterface.
func (p podMetricsIn) List(_ context.Context, o metav1.ListOptions) (*metricsv1beta1.PodMetricsList, error) {
	selector, err := labels.Parse(o.LabelSelector)
	if err != nil {
		return nil, err
	}
	one, err := p.get(p.namespace, selector)
	return &metricsv1beta1.PodMetricsList{Items: one.usage}, cmp.Or(err, one.shared)
}

// memberMetrics are the metrics of pods' resources, and those for which members were asked.
type memberMetrics struct {
	metrics.MetricsClient
	*readings
}

// GetRawMetric implements metrics.MetricsClient.
func (m memberMetrics) GetRawMetric(name, namespace string, pods, selector labels.Selector) (metrics.PodMetricsInfo, time.Time, error) {
	if _, err := m.get(namespace, pods); err != nil {
		return nil, time.Time{}, err
	}
	a, err := m.answerTo(autoscalingv2.PodsMetricSourceType, name, selector, nil)
	if err != nil {
		return nil, time.Time{}, err
	}
	now, all := time.Now(), metrics.PodMetricsInfo{}
	for pod, value := range a.pods {
		all[pod] = metrics.PodMetric{Timestamp: now, Value: value}
	}
	return all, now, nil
}

// GetObjectMetric implements metrics.MetricsClient.
func (m memberMetrics) GetObjectMetric(name, _ string, object *autoscalingv2.CrossVersionObjectReference, selector labels.Selector) (int64, time.Time, error) {
	a, err := m.answerTo(autoscalingv2.ObjectMetricSourceType, name, selector, object)
	return a.value, time.Now(), err
}

// GetExternalMetric implements metrics.MetricsClient.
func (m memberMetrics) GetExternalMetric(name, _ string, selector labels.Selector) ([]int64, time.Time, error) {
	a, err := m.answerTo(autoscalingv2.ExternalMetricSourceType, name, selector, nil)
	return []int64{a.value}, time.Now(), err
}

// answerTo returns what members say of a metric of the autoscaler that is looked at.
func (m memberMetrics) answerTo(kind autoscalingv2.MetricSourceType, name string, selector labels.Selector, object *autoscalingv2.CrossVersionObjectReference) (answered, error) {
	if err := cmp.Or(m.last.err, m.last.shared); err != nil {
		return answered{}, err
	}
	for _, a := range m.last.asked {
		if a.Is(kind, name, selector, object) {
			return a, a.err
		}
	}
	return answered{}, fmt.Errorf("members have not been asked for it: of an autoscaler at most %d metrics that are not of resources are read", maxAsked)
}
