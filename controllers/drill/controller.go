package drill

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/resourceversion"
	"federation/controllers/drill/plan"
)

// FieldManager writes what drills need of Clusters, and their own status.
const FieldManager = "federation-drill"

// writeTimeout bounds what is asked of the federation's API at one look.
const writeTimeout = 5 * time.Second

// Options are what a Controller needs; all are required.
type Options struct {
	// Client reads and writes at the federation.
	Client dynamic.Interface
	// Informers hands out the federation's informers, which others start.
	Informers func(schema.GroupVersionResource) cache.SharedIndexInformer
	// Recorder takes events about drills.
	Recorder record.EventRecorder
	// Info is how the federation is set up.
	Info v1beta1.Info
	// Records has the data of the record sets of the federation's zone as this process serves them.
	Records func(ctx context.Context) (map[plan.Record][]string, error)
}

// Controller runs drills. Make it with New.
type Controller struct {
	Options
	wake     chan struct{}
	unlisten []func()
	// written are the versions of drills as our last writes left them, by UID; Run's own.
	written map[string]resourceversion.Left
}

// read are the resources that drills are decided from.
func read() []schema.GroupVersionResource {
	all := []schema.GroupVersionResource{v1beta1.FailoverDrillsResource, v1beta1.ClustersResource, v1beta1.PoliciesResource, services, ingresses}
	for _, k := range v1beta1.FederatedKinds {
		if k.Preferences != "" {
			all = append(all, k.Resource)
		}
	}
	return all
}

// New makes a controller and subscribes it to drills and Clusters.
func New(o Options) (*Controller, error) {
	c := &Controller{Options: o, wake: make(chan struct{}, 1), written: map[string]resourceversion.Left{}}
	look := func(any) {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	for _, r := range read() {
		informer := o.Informers(r) // all have to be asked for before they are started
		if r != v1beta1.FailoverDrillsResource && r != v1beta1.ClustersResource {
			continue
		}
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, is any) { look(is) }, DeleteFunc: look})
		if err != nil {
			return nil, err
		}
		c.unlisten = append(c.unlisten, sync.OnceFunc(func() { _ = informer.RemoveEventHandler(handler) })) // fails only for one that is not there
	}
	return c, nil
}

// Run works until ctx is done, and returns nil then. The informers must have been started.
func (c *Controller) Run(ctx context.Context) error {
	for _, end := range c.unlisten {
		defer end()
	}
	for _, r := range read() {
		if !cache.WaitForCacheSync(ctx.Done(), c.Informers(r).HasSynced) {
			return nil
		}
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		case <-timer.C:
		}
		timer.Stop()
		if next := c.pass(ctx); next > 0 {
			timer.Reset(next)
		}
	}
}

// retryAfter is the pause after something failed.
const retryAfter = time.Second

// pass takes the next step of each drill that is not over. It returns when to look again; 0: when something changes.
func (c *Controller) pass(ctx context.Context) (next time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	drills := c.drills()
	if c.sweep(ctx, drills) {
		next = retryAfter
	}
	open := slices.DeleteFunc(slices.Clone(drills), func(d *v1beta1.FailoverDrill) bool {
		return d.Over() && !slices.Contains(d.Finalizers, v1beta1.DrillFinalizer)
	})
	if len(open) == 0 {
		return next
	}
	world, err := c.observe(ctx, open)
	if err != nil {
		klog.FromContext(ctx).Error(err, "How drills stand cannot be seen; will be tried again")
		return retryAfter
	}
	first := open[0] // the one that is under way, else the oldest that waits
	if i := slices.IndexFunc(open, (*v1beta1.FailoverDrill).UnderWay); i >= 0 {
		first = open[i]
	} else if i := slices.IndexFunc(open, func(d *v1beta1.FailoverDrill) bool { return !d.Over() }); i >= 0 {
		first = open[i]
	}
	for _, d := range open {
		world.Other = ""
		if d != first {
			world.Other = first.Name
		}
		again := c.step(ctx, d, world)
		if again > 0 && (next == 0 || again < next) {
			next = again
		}
	}
	return next
}

// drills are all drills as the cache has them, the oldest first. One that the cache has not caught up with is left out.
func (c *Controller) drills() (all []*v1beta1.FailoverDrill) {
	for _, obj := range c.Informers(v1beta1.FailoverDrillsResource).GetStore().List() {
		d := &v1beta1.FailoverDrill{}
		if err := from(obj, d); err != nil {
			klog.Background().Error(err, "Cannot read a FailoverDrill: it stays where it is")
			continue
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *v1beta1.FailoverDrill) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// stale reports whether the cache has an older version of a drill than our last write left.
func (c *Controller) stale(d *v1beta1.FailoverDrill) bool {
	return c.written[string(d.UID)].Unseen(d)
}

// step decides about a drill and does it: its status first, and only then what it says.
func (c *Controller) step(ctx context.Context, d *v1beta1.FailoverDrill, world *world) time.Duration {
	if c.stale(d) {
		return retryAfter
	}
	log := klog.FromContext(ctx).WithValues("drill", d.Name)
	reviewed(d, world)
	step := plan.Next(d, &world.World)
	if !reflect.DeepEqual(step.Status, d.Status) {
		after, err := c.store(ctx, d, step.Status)
		if err != nil {
			if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				log.Error(err, "The drill's status cannot be written; will be tried again")
			}
			return retryAfter
		}
		c.tell(d, after)
		d = after
	}
	for _, cluster := range step.Changes {
		if err := c.change(ctx, cluster); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			log.Error(err, "The Cluster cannot be changed; will be tried again", "cluster", cluster.Name)
		}
	}
	if step.Release && slices.Contains(d.Finalizers, v1beta1.DrillFinalizer) {
		if err := c.release(ctx, d); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			log.Error(err, "The drill cannot be released; will be tried again")
			return retryAfter
		}
		delete(c.written, string(d.UID))
	}
	return step.LookAgain
}

// store writes a drill's status, of the version that it was decided from.
func (c *Controller) store(ctx context.Context, d *v1beta1.FailoverDrill, status v1beta1.FailoverDrillStatus) (*v1beta1.FailoverDrill, error) {
	next := d.DeepCopy()
	next.Status = status
	u, err := unstructuredOf(next, "FailoverDrill")
	if err != nil {
		return nil, err
	}
	u, err = c.Client.Resource(v1beta1.FailoverDrillsResource).UpdateStatus(ctx, u, metav1.UpdateOptions{FieldManager: FieldManager})
	if err != nil {
		return nil, err
	}
	c.written[string(d.UID)] = resourceversion.LeftAt(resourceversion.Of(u))
	after := &v1beta1.FailoverDrill{}
	return after, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, after)
}

// change writes a Cluster, of the version that it was decided from.
func (c *Controller) change(ctx context.Context, cluster *v1beta1.Cluster) error {
	u, err := unstructuredOf(cluster, "Cluster")
	if err != nil {
		return err
	}
	_, err = c.Client.Resource(v1beta1.ClustersResource).Update(ctx, u, metav1.UpdateOptions{FieldManager: FieldManager})
	return err
}

// release lets a drill go.
func (c *Controller) release(ctx context.Context, d *v1beta1.FailoverDrill) error {
	next := d.DeepCopy()
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == v1beta1.DrillFinalizer })
	u, err := unstructuredOf(next, "FailoverDrill")
	if err != nil {
		return err
	}
	_, err = c.Client.Resource(v1beta1.FailoverDrillsResource).Update(ctx, u, metav1.UpdateOptions{FieldManager: FieldManager})
	return err
}

// sweep brings back clusters that are taken out by drills that there are no more.
func (c *Controller) sweep(ctx context.Context, drills []*v1beta1.FailoverDrill) (failed bool) {
	known := map[string]bool{}
	for _, d := range drills {
		known[string(d.UID)] = true
	}
	for _, cluster := range plan.Sweep(c.clusters(), known) {
		if err := c.change(ctx, cluster); err != nil {
			klog.FromContext(ctx).Error(err, "What a drill that is no more has left cannot be undone; will be tried again", "cluster", cluster.Name)
			failed = true
		}
	}
	return failed
}

// tell has the drill's events say that its phase changed.
func (c *Controller) tell(was, is *v1beta1.FailoverDrill) {
	if was.Status.Phase == is.Status.Phase {
		return
	}
	klog.Background().Info("A failover drill goes on", "drill", is.Name, "phase", is.Status.Phase, "outcome", is.Status.Outcome, "reason", is.Status.Reason, "message", is.Status.Message)
	about := &corev1.ObjectReference{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "FailoverDrill", Name: is.Name, UID: is.UID}
	switch s := is.Status; s.Phase {
	case v1beta1.DrillBaseline:
		c.Recorder.Eventf(about, corev1.EventTypeNormal, "DrillStarted", "%s of %v: %s", is.Spec.Method, s.Clusters, is.Spec.Reason)
	case v1beta1.DrillHolding:
		c.Recorder.Eventf(about, corev1.EventTypeNormal, "DrillFaultInForce", "%v out of service for %d s", s.Clusters, is.Spec.Hold())
	case v1beta1.DrillRecovering:
		if s.Reason != "" {
			c.Recorder.Eventf(about, corev1.EventTypeWarning, "DrillAborted", "%s: %s", s.Reason, s.Message)
		}
	case v1beta1.DrillVerifying:
		c.Recorder.Event(about, corev1.EventTypeNormal, "DrillRecovered", "the clusters are back")
	case v1beta1.DrillFinished:
		kind := corev1.EventTypeWarning
		if s.Outcome == v1beta1.DrillSucceeded {
			kind = corev1.EventTypeNormal
		}
		c.Recorder.Eventf(about, kind, "DrillFinished", "%s, %s: %s", s.Outcome, s.Reason, s.Message)
	}
}
