package failover

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/resourceversion"
	"federation/controllers/failover/plan"
	"federation/controllers/supervisor"
)

// FieldManager owns status.failover and the conditions FailedOver, FailoverSuspended and PartiallyReachable of Clusters.
const FieldManager = "federation-failover"

const (
	// writeTimeout bounds one write.
	writeTimeout = 5 * time.Second
	// retryAfter is the delay after a failed write.
	retryAfter = time.Second
)

// Options are what a Controller needs; all are required.
type Options struct {
	// Client writes to the federation.
	Client dynamic.Interface
	// Informers hands out the federation's informers, which others start.
	Informers func(schema.GroupVersionResource) cache.SharedIndexInformer
	// Recorder takes events about Clusters.
	Recorder record.EventRecorder
	// Settings, without Seen, Probes and Others, which the Controller sets: Seen is when Run began, or when the process
	// last stood still.
	Settings plan.Settings
	// Probes returns the latest probes by cluster. Optional.
	Probes func() map[string]plan.Probe
	// Others returns what the other live processes report of clusters, by process. Optional: nil means there are none.
	Others func() map[string]plan.Statement
}

// Controller keeps the phases of all clusters. Create it with New.
type Controller struct {
	Options
	clusters cache.SharedIndexInformer
	wake     supervisor.Wake
	unlisten func()

	// written has the Clusters as our last writes left them, until the cache catches up. Only Run uses it.
	written map[string]written
	// read has the Clusters as they were last read, by name. Only Run uses it.
	read map[string]read
}

// read is a Cluster, and what it was read from.
type read struct {
	from    *unstructured.Unstructured
	cluster *v1beta1.Cluster
}

// written is an object as our write left it.
type written struct {
	*unstructured.Unstructured
	resourceversion.Left
}

// New makes a controller and subscribes it to the Clusters.
func New(o Options) (*Controller, error) {
	if err := o.Settings.Validate(); err != nil {
		return nil, fmt.Errorf("failover: %w", err)
	}
	c := &Controller{
		Options: o, clusters: o.Informers(v1beta1.ClustersResource), wake: supervisor.NewWake(), written: map[string]written{},
	}
	handler, err := c.clusters.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.enqueue, UpdateFunc: func(_, is any) { c.enqueue(is) }, DeleteFunc: c.enqueue,
	})
	c.unlisten = sync.OnceFunc(func() { _ = c.clusters.RemoveEventHandler(handler) }) // fails only for a handler that is not registered
	return c, err
}

func (c *Controller) enqueue(any) { c.wake.Signal() }

// Run works until ctx is done and then returns nil. The informers must have been started.
func (c *Controller) Run(ctx context.Context) error {
	registerMetrics()
	defer c.unlisten()
	defer forgetMetrics()
	c.Settings.Seen = time.Now()
	if !cache.WaitForCacheSync(ctx.Done(), c.clusters.HasSynced) {
		return nil
	}
	c.readStatements()
	timer, beat := time.NewTimer(0), time.NewTicker(heartbeat)
	defer timer.Stop()
	defer beat.Stop()
	last := readClocks()
	for {
		due := true
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
			due = c.readStatements()
		case <-c.wake:
		case <-timer.C:
		}
		now := readClocks()
		if now.wasSuspended(last) {
			klog.FromContext(ctx).Info("This process stood still, or its clock was set: all periods of time begin again")
			c.Settings.Seen, due = time.Now(), true
		}
		if last = now; !due {
			continue
		}
		timer.Stop()
		if next := c.reconcile(ctx); next > 0 {
			timer.Reset(next)
		}
	}
}

// readStatements reads what the other processes report now, and reports whether it changed.
func (c *Controller) readStatements() (news bool) {
	others := map[string]plan.Statement{}
	if c.Others != nil {
		others = c.Others()
	}
	news = !reflect.DeepEqual(c.Settings.Others, others)
	c.Settings.Others = others
	return news
}

// reconcile decides about all clusters and writes what changed. It returns when to run again; 0 means at the next change.
func (c *Controller) reconcile(ctx context.Context) (next time.Duration) {
	clusters := c.latestClusters()
	settings := c.Settings
	if c.Probes != nil {
		settings.Probes = c.Probes()
	}
	verdicts := plan.Decide(clusters, settings, time.Now())
	observeVerdicts(verdicts)
	for i := range verdicts {
		v := &verdicts[i]
		again := v.LookAgain
		if v.Changed {
			if err := c.applyVerdict(ctx, clusters, v); err != nil {
				if ctx.Err() != nil {
					return 0
				}
				klog.FromContext(ctx).Error(err, "Failed to update the Cluster's failover state", "cluster", v.Cluster)
				again = retryAfter
			}
		}
		if again > 0 && (next == 0 || again < next) {
			next = again
		}
	}
	return next
}

// latestClusters returns the Clusters from the cache or, where it is stale, as our last write left them. They must not be changed: each version is
// read once.
func (c *Controller) latestClusters() (out []*v1beta1.Cluster) {
	seen, before := map[string]bool{}, c.read
	c.read = map[string]read{}
	for _, obj := range c.clusters.GetStore().List() {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		seen[u.GetName()] = true
		if w, is := c.written[u.GetName()]; is && w.GetUID() == u.GetUID() && w.Unseen(u) {
			u = w.Unstructured
		} else {
			delete(c.written, u.GetName())
		}
		is := before[u.GetName()]
		if is.from != u {
			is = read{u, &v1beta1.Cluster{}}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, is.cluster); err != nil {
				klog.Background().Error(err, "Cannot read the Cluster: its phase stays", "cluster", u.GetName())
				continue
			}
		}
		c.read[u.GetName()] = is
		out = append(out, is.cluster)
	}
	for name := range c.written {
		if !seen[name] {
			delete(c.written, name)
		}
	}
	return out
}

// applyVerdict applies a verdict to the Cluster it was made for, and emits its events.
func (c *Controller) applyVerdict(ctx context.Context, clusters []*v1beta1.Cluster, v *plan.Verdict) error {
	cluster := findCluster(clusters, v.Cluster)
	body, err := appliedFields(cluster, v)
	if err != nil {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	u, err := c.Client.Resource(v1beta1.ClustersResource).ApplyStatus(timed, v.Cluster, body, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if apierrors.IsConflict(err) {
		return c.rereadCluster(timed, cluster)
	}
	if err != nil {
		return err
	}
	c.written[v.Cluster] = written{u, resourceversion.LeftAt(resourceversion.Of(u))}
	klog.FromContext(ctx).Info("Cluster changed its phase", "cluster", v.Cluster, "phase", v.Failover.Phase, "percent", v.Failover.Percent, "message", v.Failover.Message)
	if e := v.Event; e != nil {
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		countEvent(e)
		c.Recorder.Event(objectReference(cluster), kind, e.Reason, e.Message)
	}
	return nil
}

// rereadCluster reads a Cluster that has changed since it was judged, bypassing the cache, whose event may be late, and has all
// clusters judged again. If it reads an older version, the store was restored from a backup: it then waits for the
// informer.
func (c *Controller) rereadCluster(ctx context.Context, judged *v1beta1.Cluster) error {
	u, err := c.Client.Resource(v1beta1.ClustersResource).Get(ctx, judged.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if resourceversion.Of(u) < resourceversion.Of(judged) {
		return fmt.Errorf("it is at version %s now, and was judged at version %s", u.GetResourceVersion(), judged.GetResourceVersion())
	}
	c.written[judged.Name] = written{u, resourceversion.LeftAt(resourceversion.Of(u))}
	c.enqueue(u)
	return nil
}

// appliedFields returns what we apply to the Cluster: all fields that we own, at the version that was judged.
func appliedFields(cluster *v1beta1.Cluster, v *plan.Verdict) (*unstructured.Unstructured, error) {
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1beta1.ClusterStatus{Failover: v.Failover, Conditions: v.Conditions})
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "Cluster",
		"metadata": map[string]any{"name": cluster.Name, "uid": string(cluster.UID), "resourceVersion": cluster.ResourceVersion}, "status": status,
	}}, nil
}

func objectReference(c *v1beta1.Cluster) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Cluster", Name: c.Name, UID: c.UID}
}

func findCluster(clusters []*v1beta1.Cluster, name string) *v1beta1.Cluster {
	for _, c := range clusters {
		if c.Name == name {
			return c
		}
	}
	return nil // cannot happen: verdicts are about these clusters
}
