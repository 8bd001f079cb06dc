package readiness

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"federation/apiserver/apis/federation/v1beta1"
	failoverplan "federation/controllers/failover/plan"
	"federation/controllers/held"
	"federation/controllers/readiness/plan"
	reviewplan "federation/controllers/review/plan"
	"federation/controllers/supervisor"
	"federation/scheduler"
)

const (
	// gather is the delay that batches changes.
	gather = time.Second
	// writeTimeout bounds one write.
	writeTimeout = 5 * time.Second
	// retryAfter is the delay after a failed write.
	retryAfter = 5 * time.Second
	// heartbeat is the period at which timestamps are updated and leftovers are swept.
	heartbeat = time.Minute
	// checking is how much CPU time the checks after an intake take at most; the rest waits for the next.
	checking = 80 * time.Millisecond
)

// Options are what a Controller needs; all but Spent, After and Evaluated are required.
type Options struct {
	// Client writes to the federation.
	Client dynamic.Interface
	// Informers hands out the federation's informers, which others start.
	Informers func(schema.GroupVersionResource) cache.SharedIndexInformer
	// Recorder takes events about FailoverReadinesses.
	Recorder record.EventRecorder
	// Info is the federation's configuration, Settings that of failover.
	Info     v1beta1.Info
	Settings failoverplan.Settings
	// Levels are the levels with a FailoverReadiness.
	Levels []plan.Level
	// Spent returns how much CPU time the calling thread has used. Nil: wall time, where nobody else needs the core.
	Spent func() time.Duration
	// After is how long after its start it evaluates for the first time: whoever has just started brings the members to the plan first.
	After time.Duration
	// Evaluated is called with the result of each evaluation. Optional.
	Evaluated func(domain string, l *reviewplan.Loss)
}

// Controller keeps the FailoverReadinesses up to date. Make it with New.
type Controller struct {
	Options
	wake supervisor.Wake
	subs []subscription

	mu      sync.Mutex
	changed map[key]bool // since the last intake
	heard   time.Time    // when the first of these changed

	// Only Run uses what follows.
	fleet    *reviewplan.Fleet
	clusters map[string]*v1beta1.Cluster
	policies map[string]*v1beta1.PlacementPolicy
	free     map[string]reviewplan.Amounts // by cluster
	domains  map[string]*domain
	stored   map[string]decoded // our own objects, by name
	turn     int                // how many have been evaluated
	rest     time.Time          // no evaluation before
	// refitAfter is when it may refit again.
	refitAfter time.Time
	gathers    time.Time // no intake before
	sweeps     time.Time // when to look for obsolete objects; zero: not before the first intake
	// unchecked has the objects that may need more room than the last evaluations gave them, as they were before they grew.
	unchecked map[key]growth
}

// growth is an object before it asked for more or was placed otherwise.
type growth struct {
	was   *scheduler.Object // nil if it was not there
	since time.Time
}

// key is a changed object.
type key struct {
	resource schema.GroupVersionResource
	types.NamespacedName
}

type subscription struct {
	informer cache.SharedIndexInformer
	handle   cache.ResourceEventHandlerRegistration
}

// domain is a zone or region, with what is known of its loss.
type domain struct {
	plan.Domain
	plan.Standing
	status    v1beta1.FailoverReadinessStatus // to be written, or as read from the API
	evaluated v1beta1.FailoverReadinessStatus // as last evaluated
	room      *reviewplan.Room                // nil before the first evaluation
	again     time.Time                       // when the evaluation expires; zero: never
	refitted  time.Time                       // when its room was last found to be enough still
	written   time.Time                       // last write, or attempt; zero: write at once
	failed    bool                            // to write it
}

// New makes a controller and subscribes it to what losses depend on.
func New(o Options) (*Controller, error) {
	c := &Controller{
		Options: o, wake: supervisor.NewWake(), changed: map[key]bool{}, fleet: reviewplan.NewFleet(o.Info, o.Settings),
		clusters: map[string]*v1beta1.Cluster{}, policies: map[string]*v1beta1.PlacementPolicy{}, free: map[string]reviewplan.Amounts{}, domains: map[string]*domain{}, stored: map[string]decoded{}, unchecked: map[key]growth{},
	}
	for _, r := range watchedResources() {
		informer := o.Informers(r)
		handle, err := held.By(informer).AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { c.enqueue(r, obj) },
			UpdateFunc: func(was, is any) {
				if r == v1beta1.ClustersResource || !held.OnlyStatusDiffers(was, is) || r == jobs && v1beta1.JobEnd(held.Object(was)) != v1beta1.JobEnd(held.Object(is)) {
					c.enqueue(r, is)
				}
			},
			DeleteFunc: func(obj any) { c.enqueue(r, obj) },
		})
		if err != nil {
			c.removeHandlers()
			return nil, fmt.Errorf("readiness: watching %s: %w", r.Resource, err)
		}
		c.subs = append(c.subs, subscription{informer, handle})
	}
	return c, nil
}

// watchedResources returns the resources that losses depend on, and our own.
func watchedResources() []schema.GroupVersionResource {
	all := []schema.GroupVersionResource{v1beta1.ClustersResource, v1beta1.PoliciesResource, v1beta1.ReadinessResource, services, ingresses}
	for _, k := range v1beta1.FederatedKinds {
		if k.Preferences != "" {
			all = append(all, k.Resource)
		}
	}
	return all
}

var (
	services  = corev1.SchemeGroupVersion.WithResource("services")
	ingresses = networkingv1.SchemeGroupVersion.WithResource("ingresses")
	jobs      = batchv1.SchemeGroupVersion.WithResource("jobs")
)

func (c *Controller) enqueue(r schema.GroupVersionResource, obj any) {
	o := held.About(obj)
	c.mu.Lock()
	if len(c.changed) == 0 {
		c.heard = time.Now()
	}
	c.changed[key{r, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}] = true
	c.mu.Unlock()
	c.wake.Signal()
}

func (c *Controller) removeHandlers() {
	for _, s := range c.subs {
		_ = s.informer.RemoveEventHandler(s.handle) // fails only for a handler that is not registered
	}
}

// Run works until ctx is done, and returns nil then. The informers must have been started.
func (c *Controller) Run(ctx context.Context) error {
	registerMetrics()
	defer c.removeHandlers()
	defer forgetMetrics()
	for _, s := range c.subs {
		if !cache.WaitForCacheSync(ctx.Done(), s.informer.HasSynced, s.handle.HasSynced) {
			return nil
		}
	}
	c.gathers = time.Now().Add(c.After)
	c.rest = c.gathers
	c.wake.Repeat(ctx, 0, func(ctx context.Context) time.Duration { return c.reconcile(ctx, time.Now()) })
	return nil
}

// reconcile takes in what has changed, evaluates at most one domain, and writes what is due. It returns when to run again; 0
// means at the next change.
func (c *Controller) reconcile(ctx context.Context, now time.Time) (next time.Duration) {
	sooner := func(d time.Duration) {
		if d > 0 && (next == 0 || d < next) {
			next = d
		}
	}
	if left, changed := c.pendingChanges(now); left > 0 {
		sooner(left)
	} else if changed || len(c.unchecked) > 0 {
		var took time.Duration
		if changed {
			took = c.measureCPU(func() { c.takeIn(now) })
			c.sweeps = now
		}
		c.gathers = time.Now().Add(plan.Gather(took + c.checkGrowth(now)))
	}
	if !c.sweeps.IsZero() && !now.Before(c.sweeps) {
		c.deleteObsolete(ctx)
		c.sweeps = now.Add(heartbeat)
	}
	sooner(c.refitNext(now))
	if left := c.rest.Sub(now); left > 0 {
		sooner(left)
	} else {
		sooner(c.evaluateNext(now))
	}
	for _, d := range c.domains {
		doubted, left := d.Doubted(now)
		if sooner(left); doubted && plan.Verdict(&d.status).Status == metav1.ConditionTrue {
			c.setStatus(d, plan.Doubted(&d.status, now))
		}
		sooner(c.writeIfDue(ctx, d, time.Now()))
		sooner(d.again.Sub(now))
	}
	c.setMetrics(now)
	sooner(heartbeat)
	return next
}

// measureCPU calls do and returns its CPU time. Garbage collection on other threads adds nearly as much again.
func (c *Controller) measureCPU(do func()) time.Duration {
	begun := time.Now()
	if c.Spent == nil {
		do()
		return time.Since(begun)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := c.Spent()
	do()
	return (c.Spent() - before) * 2
}

// pendingChanges reports whether something has changed, and how long to wait for related changes, or with what is unchecked.
func (c *Controller) pendingChanges(now time.Time) (left time.Duration, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed = len(c.changed) > 0
	at := c.gathers
	if first := c.heard.Add(gather); changed && first.After(at) {
		at = first
	}
	if !changed && len(c.unchecked) == 0 {
		return 0, false
	}
	return at.Sub(now), changed
}

// refitNext settles the oldest doubt about nothing but room, if what would move still has places; if not, an evaluation tells. It has a share of a core of
// its own, so it does not wait until an evaluation is paid for. It returns when to refit again; 0 means when a doubt arises.
func (c *Controller) refitNext(now time.Time) time.Duration {
	var d *domain
	for _, one := range c.domains {
		if one.awaitsRefit(now) && (d == nil || cmp.Or(one.Doubtful.Compare(d.Doubtful), cmp.Compare(one.Name, d.Name)) < 0) {
			d = one
		}
	}
	if d == nil {
		return 0
	}
	if left := c.refitAfter.Sub(now); left > 0 {
		return left
	}
	fits := false
	pause := plan.RestRefit(c.measureCPU(func() { fits = c.fleet.Refit(d.room, now) }))
	if fits {
		d.Settle()
		d.refitted = now
		c.setStatus(d, plan.Settled(&d.evaluated, &d.status, now))
		refits.WithLabelValues(refitSurvivable).Inc()
	} else {
		d.OnlyRoom = false
		refits.WithLabelValues(refitUndecided).Inc()
	}
	c.refitAfter = time.Now().Add(pause)
	return max(time.Millisecond, pause) // others may be in doubt
}

// awaitsRefit reports whether only room is in doubt, and whatever would move had a place.
func (d *domain) awaitsRefit(now time.Time) bool {
	return d.OnlyRoom && plan.Verdict(&d.evaluated).Status == metav1.ConditionTrue && (d.again.IsZero() || now.Before(d.again))
}

// evaluateNext evaluates the domain whose turn it is. It returns when the next one is due; 0 means none.
func (c *Controller) evaluateNext(now time.Time) (next time.Duration) {
	names, standings := c.standings(now)
	i, wait := plan.Next(standings, now, c.turn)
	if i < 0 {
		return wait
	}
	c.turn++
	c.rest = time.Now().Add(plan.Rest(c.evaluate(c.domains[names[i]], now)))
	return max(time.Millisecond, time.Until(c.rest)) // the others may be due
}

// evaluate evaluates a domain, and returns the CPU time.
func (c *Controller) evaluate(d *domain, now time.Time) time.Duration {
	var l reviewplan.Loss
	took := c.measureCPU(func() { l = c.fleet.Lose(d.Clusters, now) })
	d.Standing, d.room, d.again = plan.Standing{Evaluated: now}, l.Room, time.Time{}
	if l.LookAgain > 0 {
		d.again = now.Add(l.LookAgain)
	}
	if !plan.Same(&d.status, &d.evaluated) {
		d.written = time.Time{} // what was said meanwhile had the numbers of the evaluation before
	}
	d.evaluated = plan.Status(&d.status, &l, now, took)
	c.setStatus(d, d.evaluated)
	evaluations.WithLabelValues().Inc()
	if c.Evaluated != nil {
		c.Evaluated(d.Name, &l)
	}
	return took
}
