package drain

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/drain/plan"
	"federation/controllers/supervisor"
)

// FieldManager owns status.drain of Clusters, and what drains write of their spec.
const FieldManager = "federation-drain"

const (
	// workers is how many drains are looked at at once.
	workers = 16
	// passTimeout bounds what one pass asks the federation and a cluster, and memberTimeout what of that it asks the cluster.
	passTimeout   = 10 * time.Second
	memberTimeout = 5 * time.Second
	// retryAfter is the delay after a failure.
	retryAfter = time.Second
)

// Options are what a Controller needs; all are required.
type Options struct {
	// Client reads and writes at the federation.
	Client dynamic.Interface
	// Informers hands out the federation's informers, which others start.
	Informers func(schema.GroupVersionResource) cache.SharedIndexInformer
	// Recorder takes events about Clusters.
	Recorder record.EventRecorder
	// Federation is the federation's UID, which marks its copies, and TTL how long resolvers may keep an answer.
	Federation string
	TTL        time.Duration
	// Member returns a client of a cluster, or an error if it is not connected.
	Member func(cluster string) (dynamic.Interface, error)
	// Resolve finds what a kind that a policy names is served as.
	Resolve func(apiVersion, kind string) (resource schema.GroupVersionResource, namespaced bool, err error)
}

// Controller carries out drains. Make it with New.
type Controller struct {
	Options
	queue    workqueue.TypedRateLimitingInterface[string]
	unlisten func()

	mu sync.Mutex
	// steady is what was seen of the contents of those clusters whose contents are looked at, by name.
	steady map[string]plan.Steady
	placed placements
}

// New makes a controller and subscribes it to Clusters.
func New(o Options) (*Controller, error) {
	c := &Controller{Options: o, steady: map[string]plan.Steady{}, queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())}
	for _, r := range watchedResources() {
		o.Informers(r) // all must be requested before they are started
	}
	clusters := o.Informers(v1beta1.ClustersResource)
	enqueue := func(obj any) {
		if u, ok := obj.(*unstructured.Unstructured); ok && !mayConcern(u) {
			return
		}
		if cluster := clusterOf(obj); cluster != nil && plan.Concerns(cluster) {
			c.queue.Add(cluster.Name)
		}
	}
	handler, err := clusters.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, is any) { enqueue(is) }})
	c.unlisten = sync.OnceFunc(func() { _ = clusters.RemoveEventHandler(handler) }) // fails only for a handler that is not registered
	return c, err
}

// Run works until ctx is done, and returns nil then. The informers must have been started.
func (c *Controller) Run(ctx context.Context) error {
	defer c.queue.ShutDown()
	defer c.unlisten()
	for _, r := range watchedResources() {
		if !cache.WaitForCacheSync(ctx.Done(), c.Informers(r).HasSynced) {
			return nil
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	context.AfterFunc(ctx, c.queue.ShutDown)
	for range workers {
		group.Go(supervisor.Protected(ctx, "drains", func(ctx context.Context) error {
			for c.work(ctx) {
			}
			return nil
		}))
	}
	return group.Wait()
}

// work takes the next step of one drain. It returns false when there will be no more.
func (c *Controller) work(ctx context.Context) bool {
	name, ended := c.queue.Get()
	if ended {
		return false
	}
	defer c.queue.Done(name)
	began := time.Now()
	again, err := c.sync(ctx, name)
	switch {
	case err == nil && again == 0:
	case err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		c.queue.AddAfter(name, max(again, retryAfter, 4*time.Since(began))) // looks take a fifth of the time at most
	default:
		klog.FromContext(ctx).Error(err, "Cannot go on with the drain; will retry", "cluster", name)
		c.queue.AddAfter(name, max(retryAfter, 4*time.Since(began)))
	}
	return true
}

// sync takes the next step of the drain of a cluster. It returns when to look again; 0 means when the Cluster changes.
func (c *Controller) sync(ctx context.Context, name string) (again time.Duration, err error) {
	obj, exists, err := c.Informers(v1beta1.ClustersResource).GetStore().GetByKey(name)
	if err != nil {
		return 0, err
	}
	cluster := clusterOf(obj)
	if !exists || cluster == nil || !plan.Concerns(cluster) {
		c.remember(name, plan.Steady{}, false)
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	w, err := c.observe(ctx, cluster)
	if err != nil {
		return 0, err
	}
	step := plan.Next(cluster, w)
	c.remember(name, step.Steady, plan.WantsContents(cluster))
	if step.Cluster != nil {
		if err := c.writeCluster(ctx, step.Cluster); err != nil {
			return 0, err
		}
		klog.FromContext(ctx).Info("Took a step of a drain", "cluster", name, "weight", step.Cluster.DNSWeight(), "taints", step.Cluster.Spec.Taints)
		if step.Event != "" {
			c.Recorder.Event(&corev1.ObjectReference{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Cluster", Name: cluster.Name, UID: cluster.UID}, corev1.EventTypeNormal, step.Event, step.Message)
		}
		return step.LookAgain, nil
	}
	if equality.Semantic.DeepEqual(cluster.Status.Drain, step.Status) {
		return step.LookAgain, nil
	}
	return step.LookAgain, c.writeStatus(ctx, cluster, step.Status)
}

// remember keeps what was seen of the contents of a cluster for the next look, if that will look at them.
func (c *Controller) remember(name string, is plan.Steady, wanted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wanted {
		c.steady[name] = is
		return
	}
	if delete(c.steady, name); len(c.steady) == 0 {
		c.placed.forget()
	}
}

// remembered returns what was seen of the contents of a cluster before.
func (c *Controller) remembered(name string) plan.Steady {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.steady[name]
}

// writeCluster writes a Cluster at the version that it was decided from.
func (c *Controller) writeCluster(ctx context.Context, cluster *v1beta1.Cluster) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cluster)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind("Cluster"))
	_, err = c.Client.Resource(v1beta1.ClustersResource).Update(ctx, u, metav1.UpdateOptions{FieldManager: FieldManager})
	return err
}

// writeStatus applies status.drain to the version of the Cluster that it was decided from.
func (c *Controller) writeStatus(ctx context.Context, cluster *v1beta1.Cluster, is *v1beta1.ClusterDrainStatus) error {
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1beta1.ClusterStatus{Drain: is})
	if err != nil {
		return err
	}
	_, err = c.Client.Resource(v1beta1.ClustersResource).ApplyStatus(ctx, cluster.Name, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "Cluster",
		"metadata": map[string]any{"name": cluster.Name, "uid": string(cluster.UID), "resourceVersion": cluster.ResourceVersion}, "status": status,
	}}, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	return err
}
