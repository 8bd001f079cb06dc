package autoscaling

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/supervisor"
)

// Kubernetes' defaults.
const (
	syncPeriod            = 15 * time.Second
	scaleDownWindow       = 5 * time.Minute
	tolerance             = 0.1
	initializationPeriod  = 5 * time.Minute
	initialReadinessDelay = 30 * time.Second
	// lanes is how many autoscalers are looked at at the same time: most of the time we wait for members.
	lanes = 30
)

// Options are what a Controller needs.
type Options struct {
	// Kube reads and writes scales, and writes the status of autoscalers, and events.
	Kube kubernetes.Interface
	// Pods and Metrics read the federation's views of members.
	Pods    kubernetes.Interface
	Metrics metricsclient.PodMetricsesGetter
	// Member returns a client of a connected member, for metrics that only its own API has.
	Member func(cluster string) (rest.Interface, error)
	// Federation is the UID of the federation: its namespaces in members bear it.
	Federation string
	// Resolve returns what a custom kind is served as.
	Resolve func(kind schema.GroupKind) (schema.GroupVersionResource, error)
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
	var run []func(context.Context) error
	for _, l := range c.autoscalers.lanes {
		read := &readings{Options: c.Options, lane: l, kinds: newScaledKinds(c.Resolve), noted: map[noted]note{}}
		one := podautoscaler.NewHorizontalController(
			ctx, c.Kube.CoreV1(), scales{c.Kube, read.kinds, read.take}, c.Kube.AutoscalingV2(), read.kinds,
			memberMetrics{metrics.NewRESTMetricsClient(podMetrics{read}, nil, nil), read},
			l, podInformer{readings: read},
			c.Period, scaleDownWindow, tolerance, initializationPeriod, initialReadinessDelay,
		)
		run = append(run, func(ctx context.Context) error { one.Run(ctx, 1); return nil })
	}
	if err := c.autoscalers.listen(); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, one := range run {
		group.Go(supervisor.Protected(ctx, "autoscaling", one))
	}
	return group.Wait()
}
