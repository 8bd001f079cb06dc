package autoscaling

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Kubernetes' defaults, except for the workers: most of the time ours wait for members.
const (
	syncPeriod            = 15 * time.Second
	scaleDownWindow       = 5 * time.Minute
	tolerance             = 0.1
	initializationPeriod  = 5 * time.Minute
	initialReadinessDelay = 30 * time.Second
	workers               = 30
)

// Options are what a Controller needs.
type Options struct {
	// Kube reads and writes scales, and writes the status of autoscalers, and events.
	Kube kubernetes.Interface
	// Pods and Metrics read the federation's views of members.
	Pods    kubernetes.Interface
	Metrics metricsclient.PodMetricsesGetter
	// Informers are the federation's, shared with others and started by them.
	Informers func(schema.GroupVersionResource) cache.SharedIndexInformer
	// Recorder takes events about replicas that are not seen.
	Recorder record.EventRecorder
	// Period is how often an autoscaler is looked at; 0: as Kubernetes does.
	Period time.Duration
}

// Controller scales workloads for all clusters together. Make it with New.
type Controller struct {
	Options
	autoscalers *autoscalers
}

// New returns a Controller. It must be called before the informers start.
func New(o Options) *Controller {
	if o.Period == 0 {
		o.Period = syncPeriod
	}
	for _, k := range v1beta1.FederatedKinds {
		if scaled[k.Resource.Resource] != nil {
			o.Informers(k.Resource) // so that it is started
		}
	}
	all := v1beta1.FederatedKindOf(schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}).Resource
	return &Controller{Options: o, autoscalers: newAutoscalers(o.Informers(all))}
}

// Run scales until ctx is done.
func (c *Controller) Run(ctx context.Context) error {
	read := &readings{Options: c.Options, autoscalers: c.autoscalers, of: map[asked]reading{}, unseen: map[asked]unseen{}}
	podautoscaler.NewHorizontalController(
		ctx, c.Kube.CoreV1(), scales{c.Kube, read.take}, c.Kube.AutoscalingV2(), scaledKinds(),
		resourceMetrics{metrics.NewRESTMetricsClient(podMetrics{read}, nil, nil)},
		c.autoscalers, podInformer{readings: read},
		c.Period, scaleDownWindow, tolerance, initializationPeriod, initialReadinessDelay,
	).Run(ctx, workers)
	return nil
}
