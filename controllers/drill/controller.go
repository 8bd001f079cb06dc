package drill

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/resourceversion"
	"federation/clusterregistry/isolation"
	"federation/controllers/drill/plan"
)

// FieldManager owns what drills write of Clusters, and the drills' own status.
const FieldManager = plan.FieldManager

// writeTimeout bounds the requests of one pass to the federation's API.
const writeTimeout = 5 * time.Second

// Options are what a Controller needs; all are required.
type Options struct {
	// Client reads and writes at the federation.
	Client dynamic.Interface
	// Informers hands out the federation's informers, which others start.
	Informers func(schema.GroupVersionResource) cache.SharedIndexInformer
	// Recorder takes events about drills.
	Recorder record.EventRecorder
	// Info is the federation's configuration.
	Info v1beta1.Info
	// Leases are those of the federation's namespace.
	Leases Leases
	// Isolated returns the clusters that this process has cut itself off from, and whether it has read the Lease that
	// says so. DeadBehind returns those of them that do not even answer the requests that pass the isolation.
	Isolated   func() (clusters []string, known bool)
	DeadBehind func() []string
	// Blackholed returns the clusters whose node agents drop traffic from outside by a Lease. NodeAgents returns on how
	// many nodes of a cluster an agent can.
	Blackholed func() []string
	NodeAgents func(ctx context.Context, cluster string) plan.NodeAgents
	// Process is the name of this process. Writes are its writes to the federation.
	Process string
	Writes  *Writes
	// Clients run the probes of drills. Nil means that nobody does: drills with probes do not begin.
	Clients Clients
	// Records returns the data of some record sets of the federation's zone as this process serves them, without those
	// that do not exist.
	Records func(ctx context.Context, of []plan.Record) (map[plan.Record][]string, error)
}

// Clients run the probes of a drill, see package clients.
type Clients interface {
	Want(ctx context.Context, d *v1beta1.FailoverDrill)
	Counts(now time.Time, window time.Duration) []plan.Client
}

// Leases is the part of a Lease client that drills use.
type Leases interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error)
	Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// Controller runs drills. Make it with New.
type Controller struct {
	Options
	*changes
	// written are the versions of drills as our last writes left them, by UID. Only Run uses it.
	written map[string]resourceversion.Left
	// reviews are the latest reviews of pending drills, by UID.
	reviews map[types.UID]reviewed
	// objects are the last read objects with divided replicas, by UID.
	objects map[types.UID]kept
	// readClusters are the Clusters by the objects of the store that they were converted from: each version is converted once.
	readClusters map[any]*v1beta1.Cluster
	// placed is where the replicas of all objects were at the fault of the current drill.
	placed before
	// leaseRead is when the Lease was last read to see whether it belongs to any drill.
	leaseRead time.Time
}

// watchedResources returns the resources that drills are decided from.
func watchedResources() []schema.GroupVersionResource {
	all := []schema.GroupVersionResource{v1beta1.FailoverDrillsResource, v1beta1.ClustersResource, v1beta1.PoliciesResource, services, ingresses, budgets}
	for _, k := range v1beta1.FederatedKinds {
		if k.Preferences != "" {
			all = append(all, k.Resource)
		}
	}
	return all
}

// New makes a controller and subscribes it to drills and Clusters.
func New(o Options) (*Controller, error) {
	c := &Controller{Options: o, written: map[string]resourceversion.Left{}, reviews: map[types.UID]reviewed{}}
	var err error
	c.changes, err = follow(o.Informers, watchedResources(), v1beta1.FailoverDrillsResource, v1beta1.ClustersResource)
	return c, err
}

// Run works until ctx is done, and returns nil then. The informers must have been started.
func (c *Controller) Run(ctx context.Context) error {
	registerMetrics()
	defer observeActive(nil, time.Time{}) // another process handles them now
	defer c.unlisten()
	if !c.synced(ctx) {
		return nil
	}
	if err := wait.PollUntilContextCancel(ctx, retryAfter/10, true, func(context.Context) (bool, error) {
		_, known := c.Isolated()
		return known, nil
	}); err != nil {
		return nil // ctx is done
	}
	if c.Clients != nil {
		defer c.Clients.Want(ctx, nil)
	}
	c.wake.Repeat(ctx, 0, c.reconcile)
	return nil
}

const (
	// retryAfter is the delay after a failure.
	retryAfter = time.Second
	// sweepEvery is how often the Lease is read while no cluster is isolated: a write that a slow API server carried out after its drill
	// had ended leaves one, which is void after half a minute.
	sweepEvery = 30 * time.Second
)

// reconcile takes the next step of each unfinished drill. It returns when to run again at the latest.
func (c *Controller) reconcile(ctx context.Context) time.Duration {
	whole, next := ctx, sweepEvery
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	drills := c.drills()
	observeActive(drills, time.Now())
	c.wantClients(whole, drills)
	if err := c.restoreClusters(ctx, drills); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot undo what a deleted drill may have left; will retry")
		next = retryAfter
	}
	open := slices.DeleteFunc(slices.Clone(drills), func(d *v1beta1.FailoverDrill) bool {
		return d.IsFinished() && !slices.Contains(d.Finalizers, v1beta1.DrillFinalizer)
	})
	if len(open) == 0 {
		return next
	}
	first := open[0] // the active one, else the oldest pending one
	if i := slices.IndexFunc(open, (*v1beta1.FailoverDrill).UnderWay); i >= 0 {
		first = open[i]
	} else if i := slices.IndexFunc(open, func(d *v1beta1.FailoverDrill) bool { return !d.IsFinished() }); i >= 0 {
		first = open[i]
	}
	world, err := c.observe(ctx, open, first)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read the state for drills; will retry")
		return retryAfter
	}
	if c.Clients != nil {
		world.Clients = c.Clients.Counts(world.Now, time.Duration(first.Spec.Guardrails.Window())*time.Second)
	}
	world.Drills, world.Moved = drills, c.placed.moved(first, world.Objects)
	for _, d := range open {
		world.Other = ""
		if d != first {
			world.Other = first.Name
		}
		if again := c.reconcileDrill(ctx, d, world); again > 0 {
			next = min(next, again)
		}
	}
	return next
}

// wantClients starts the probes of the active drill.
func (c *Controller) wantClients(ctx context.Context, drills []*v1beta1.FailoverDrill) {
	if c.Clients == nil {
		return
	}
	var running *v1beta1.FailoverDrill
	if i := slices.IndexFunc(drills, (*v1beta1.FailoverDrill).UnderWay); i >= 0 {
		running = drills[i]
	}
	c.Clients.Want(ctx, running)
}

// drills returns all drills from the cache, the oldest first, without stale ones.
func (c *Controller) drills() []*v1beta1.FailoverDrill {
	drills := listDecoded[v1beta1.FailoverDrill](c.Informers(v1beta1.FailoverDrillsResource))
	slices.SortFunc(drills, func(a, b *v1beta1.FailoverDrill) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return drills
}

// isStale reports whether the cached drill is older than our last write.
func (c *Controller) isStale(d *v1beta1.FailoverDrill) bool {
	return c.written[string(d.UID)].Unseen(d)
}

// reconcileDrill decides about a drill and acts: it writes the drill's status first, then the rest.
func (c *Controller) reconcileDrill(ctx context.Context, d *v1beta1.FailoverDrill, world *world) time.Duration {
	if c.isStale(d) {
		return retryAfter
	}
	log := klog.FromContext(ctx).WithValues("drill", d.Name)
	world.Review, world.Problem, world.NodeAgents = nil, "", nil
	c.review(ctx, d, world)
	step := plan.Next(d, &world.World)
	if !reflect.DeepEqual(step.Status, d.Status) {
		after, err := c.writeStatus(ctx, d, step.Status)
		if err != nil {
			if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				log.Error(err, "Cannot write the drill's status; will retry")
			}
			return retryAfter
		}
		c.emitEvent(d, after)
		d = after
	}
	for _, cluster := range step.Changes {
		if err := c.writeCluster(ctx, cluster); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			log.Error(err, "Cannot update the Cluster; will retry", "cluster", cluster.Name)
		}
	}
	again, err := step.LookAgain, error(nil)
	for _, m := range step.Marks {
		err = errors.Join(err, c.writeCondition(ctx, m))
	}
	switch {
	case step.Isolate, step.LetIn:
		err = errors.Join(err, c.renewLease(ctx, d, step.Isolate && d.Spec.Method == v1beta1.DrillBlackhole))
	case step.Lift:
		err = errors.Join(err, c.endIsolation(ctx))
	}
	if err != nil {
		log.Error(err, "Cannot write the isolation; will retry")
		again = retryAfter
	}
	if step.Release && slices.Contains(d.Finalizers, v1beta1.DrillFinalizer) {
		if err := c.recordReadiness(ctx, d, world.Clusters); err != nil {
			log.Error(err, "Cannot record the end of the drill in the FailoverReadiness; will retry")
			return retryAfter
		}
		if err := c.removeFinalizer(ctx, d); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			log.Error(err, "Cannot release the drill; will retry")
			return retryAfter
		}
		delete(c.written, string(d.UID))
	}
	return again
}

// writeStatus writes a drill's status at the version it was decided from.
func (c *Controller) writeStatus(ctx context.Context, d *v1beta1.FailoverDrill, status v1beta1.FailoverDrillStatus) (*v1beta1.FailoverDrill, error) {
	next := d.DeepCopy()
	next.Status = status
	u, err := plan.Unstructured(next, "FailoverDrill")
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

// writeCluster writes a Cluster at the version it was decided from.
func (c *Controller) writeCluster(ctx context.Context, cluster *v1beta1.Cluster) error {
	u, err := plan.Unstructured(cluster, "Cluster")
	if err != nil {
		return err
	}
	_, err = c.Client.Resource(v1beta1.ClustersResource).Update(ctx, u, metav1.UpdateOptions{FieldManager: FieldManager})
	return err
}

// removeFinalizer removes a drill's finalizer.
func (c *Controller) removeFinalizer(ctx context.Context, d *v1beta1.FailoverDrill) error {
	next := d.DeepCopy()
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == v1beta1.DrillFinalizer })
	u, err := plan.Unstructured(next, "FailoverDrill")
	if err != nil {
		return err
	}
	_, err = c.Client.Resource(v1beta1.FailoverDrillsResource).Update(ctx, u, metav1.UpdateOptions{FieldManager: FieldManager})
	return err
}

// recordReadiness records the end of a drill in the FailoverReadiness of the zone or region that it took out, which outlives the
// drill.
func (c *Controller) recordReadiness(ctx context.Context, d *v1beta1.FailoverDrill, clusters []*v1beta1.Cluster) error {
	if d.Status.Report == nil {
		return nil
	}
	client := c.Client.Resource(v1beta1.ReadinessResource)
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		r := &v1beta1.FailoverReadiness{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, r); err != nil {
			return err
		}
		last := plan.Last(d, r.Status.LastDrill)
		if last == nil || !plan.Domain(r.Spec, clusters, d) {
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(last)
		if err != nil {
			return err
		}
		if _, err := client.ApplyStatus(ctx, r.Name, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "FailoverReadiness", "metadata": map[string]any{"name": r.Name, "uid": string(r.UID), "resourceVersion": r.ResourceVersion},
			"status": map[string]any{"lastDrill": content},
		}}, metav1.ApplyOptions{FieldManager: FieldManager, Force: true}); err != nil && !apierrors.IsNotFound(err) {
			return err // on a conflict, too: the next pass reads its new version
		}
	}
	return nil
}

// restoreClusters brings back clusters that were taken out by deleted drills.
func (c *Controller) restoreClusters(ctx context.Context, drills []*v1beta1.FailoverDrill) error {
	known := map[string]bool{}
	for _, d := range drills {
		known[string(d.UID)] = true
	}
	var errs []error
	clusters := c.clusters()
	for _, cluster := range plan.Sweep(clusters, known) {
		errs = append(errs, c.writeCluster(ctx, cluster))
	}
	return errors.Join(append(errs, c.sweepIsolation(ctx, clusters, drills))...)
}

// sweepIsolation ends isolations by deleted drills. The cache may be stale, so it first asks the API for the drill.
func (c *Controller) sweepIsolation(ctx context.Context, clusters []*v1beta1.Cluster, drills []*v1beta1.FailoverDrill) error {
	lease := plan.Lease{}
	if time.Since(c.leaseRead) >= sweepEvery || slices.ContainsFunc(clusters, func(cluster *v1beta1.Cluster) bool { return cluster.Drill() != nil }) {
		var err error
		if lease, _, err = c.lease(ctx); err != nil {
			return err
		}
		c.leaseRead = time.Now()
	}
	if marks, lift := plan.SweepIsolation(clusters, drills, lease); len(marks) == 0 && !lift {
		return nil
	}
	list, err := c.Client.Resource(v1beta1.FailoverDrillsResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	drills = nil
	for i := range list.Items {
		d := &v1beta1.FailoverDrill{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, d); err != nil {
			return err
		}
		drills = append(drills, d)
	}
	marks, lift := plan.SweepIsolation(clusters, drills, lease)
	if lift {
		err = c.endIsolation(ctx)
	}
	for _, m := range marks {
		err = errors.Join(err, c.writeCondition(ctx, m))
	}
	return err
}

// lease reads the Lease by which drills isolate; nil if there is none.
func (c *Controller) lease(ctx context.Context) (plan.Lease, *coordinationv1.Lease, error) {
	lease, err := c.Leases.Get(ctx, v1beta1.DrillLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return plan.Lease{}, nil, nil
	}
	if err != nil {
		return plan.Lease{}, nil, err
	}
	drill, is, renewed := isolation.Read(lease)
	return plan.Lease{Drill: drill, Renewed: renewed, Blackhole: is.Blackhole}, lease, nil
}

// renewLease renews the Lease for a drill. blackhole: node agents are to drop what comes from outside.
func (c *Controller) renewLease(ctx context.Context, d *v1beta1.FailoverDrill, blackhole bool) error {
	_, was, err := c.lease(ctx)
	if err != nil {
		return err
	}
	is := isolation.Renewed(was, string(d.UID), v1beta1.Isolation{As: d.Spec.IsolationMode(), Clusters: d.Status.Clusters, Blackhole: blackhole}, time.Now())
	if was == nil {
		_, err = c.Leases.Create(ctx, is, metav1.CreateOptions{FieldManager: FieldManager})
	} else {
		_, err = c.Leases.Update(ctx, is, metav1.UpdateOptions{FieldManager: FieldManager})
	}
	return err
}

// endIsolation ends the isolation.
func (c *Controller) endIsolation(ctx context.Context) error {
	if err := c.Leases.Delete(ctx, v1beta1.DrillLease, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// writeCondition writes or removes the condition Drill of a Cluster, at the version it was decided from.
func (c *Controller) writeCondition(ctx context.Context, m plan.Mark) error {
	u, err := m.Object()
	if err != nil {
		return err
	}
	_, err = c.Client.Resource(v1beta1.ClustersResource).ApplyStatus(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the next pass reads its new version
	}
	return err
}

// emitEvent emits an event when the drill's phase changes.
func (c *Controller) emitEvent(was, is *v1beta1.FailoverDrill) {
	if was.Status.Phase == is.Status.Phase {
		return
	}
	klog.Background().Info("Failover drill changed phase", "drill", is.Name, "phase", is.Status.Phase, "outcome", is.Status.Outcome, "reason", is.Status.Reason, "message", is.Status.Message)
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
		c.Recorder.Event(about, corev1.EventTypeNormal, "DrillRecovered", "the clusters are in service again")
	case v1beta1.DrillFinished:
		observeFinished(is)
		kind := corev1.EventTypeWarning
		if s.Outcome == v1beta1.DrillSucceeded {
			kind = corev1.EventTypeNormal
		}
		c.Recorder.Eventf(about, kind, "DrillFinished", "%s, %s: %s", s.Outcome, s.Reason, s.Message)
	}
}
