package crosscluster

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"federation/controllers/supervisor"
)

// Resources that are watched in members, and written.
var (
	services       = corev1.SchemeGroupVersion.WithResource("services")
	endpointSlices = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
)

// Options are what a Controller needs. All are required but the last four.
type Options struct {
	// Offers are followed.
	Offers *Offers
	// Federation is the UID of the federation.
	Federation string
	// Recorder takes events about Clusters.
	Recorder record.EventRecorder
	// Workers is the number of parallel writes to each member; default 16.
	Workers int
	// WriteTimeout bounds one write to a member; default 10 s.
	WriteTimeout time.Duration
	// Owns reports whether this controller handles a Service; it ignores the others. Default: all.
	Owns func(namespace, name string) bool
	// Withdraw deletes the existing slices and writes none.
	Withdraw bool
}

// Member is a live connection to a member cluster.
type Member struct {
	Name   string
	Client dynamic.Interface
	// Informers are the member's, limited to objects with our label.
	Informers func(schema.GroupVersionResource) cache.SharedIndexInformer
}

// Controller writes to each member which other clusters serve its Services.
type Controller struct {
	Options

	mu sync.Mutex
	// members are those at work. away are the names of those that were, and are not now.
	members map[*member]bool
	away    map[string]bool
	work    *supervisor.Group
}

// New makes a controller.
func New(o Options) *Controller {
	if o.Workers == 0 {
		o.Workers = 16
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = 10 * time.Second
	}
	if o.Owns == nil {
		o.Owns = func(string, string) bool { return true }
	}
	registerMetrics()
	return &Controller{Options: o, members: map[*member]bool{}, away: map[string]bool{}, work: supervisor.NewGroup()}
}

// Engage starts work in a member until ctx is done, which must be no later than Run's. It subscribes to the member's
// informers and returns; the caller starts them. After the end of Run it does nothing.
func (c *Controller) Engage(ctx context.Context, mem Member) error {
	m, err := c.newMember(mem)
	if err != nil {
		return err
	}
	serve := func(ctx context.Context) {
		if m == nil { // the work panicked: what it knew of the member may be wrong
			if m, err = c.newMember(mem); err != nil {
				klog.FromContext(ctx).Error(err, "The cluster does not learn of others until it is connected again", "cluster", mem.Name)
				return
			}
		}
		now := m
		m = nil
		now.serve(ctx)
	}
	if !c.work.Start(ctx, "crosscluster", serve) {
		m.stop()
	}
	return nil
}

// Run follows the offers until ctx is done. When it returns, no write is in flight.
func (c *Controller) Run(ctx context.Context) error {
	defer c.Offers.follow(c.enqueueAll)()
	<-ctx.Done()
	c.work.End()
	return nil
}

// enqueueAll enqueues a Service for all members.
func (c *Controller) enqueueAll(service string) {
	if !c.ownsService(service) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for m := range c.members {
		m.queue.Add(service)
	}
}

func (c *Controller) ownsService(service string) bool {
	namespace, name, err := cache.SplitMetaNamespaceKey(service)
	return err == nil && c.Owns(namespace, name)
}

// addMember adds a member; removeMember removes it. What it offers others is looked at again.
func (c *Controller) addMember(m *member) {
	c.mu.Lock()
	c.members[m] = true
	delete(c.away, m.Name)
	for other := range c.members {
		other.enqueueSlicesOf(m.Name)
	}
	c.mu.Unlock()
	m.offerAll()
}

func (c *Controller) removeMember(m *member) {
	c.mu.Lock()
	delete(c.members, m)
	c.away[m.Name] = true
	c.mu.Unlock()
	m.offerAll()
}
