package lbprovider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"federation/controllers/lbprovider/plan"
	"federation/controllers/supervisor"
	"federation/nodeagent/ruleset"
)

// Writer brings ports into the kernel: nodeagent/nftables.
type Writer interface {
	Sync(ctx context.Context, node *ruleset.Node, ports []*ruleset.Port) error
	Write(ctx context.Context, node *ruleset.Node, changes []ruleset.PortChange) error
}

// Holder answers at addresses: exactly those of the last call, for some seconds. It is called each second.
type Holder interface {
	Hold(addresses []netip.Addr) error
}

// Config is what a provider is made of.
type Config struct {
	plan.Settings
	Kube   kubernetes.Interface
	Writer Writer
	// Watch calls lost when somebody else has changed what Writer wrote, until ctx ends; nil: nobody looks.
	Watch func(ctx context.Context, lost func())
	// Flows ends flows of UDP and SCTP whose member is gone; nil: they end by themselves.
	Flows  func(changes []ruleset.PortChange)
	Holder Holder
	// LeaseNamespace has the Lease of who holds the addresses, Name is this provider's in it.
	LeaseNamespace, Name string
	// NodeHealthPort is where nodes say at /healthz that their service proxy is well; 0: they are not asked.
	NodeHealthPort uint16
}

// Provider is one process of them. Its methods may be called from any goroutine.
type Provider struct {
	Config
	informers informers.SharedInformerFactory
	services  corelisters.ServiceLister
	nodes     corelisters.NodeLister
	slices    cache.Indexer
	events    record.EventRecorder
	checks    *checks

	program, publish supervisor.Wake // wake the loops

	mu      sync.Mutex
	holding bool
	lost    bool // what the kernel has is not known
	ready   bool // it has all Services
}

// refreshEvery is the time between two calls of the Holder.
const refreshEvery = time.Second

// New makes a provider. It does no I/O.
func New(c Config, events record.EventRecorder) (*Provider, error) {
	f := informers.NewSharedInformerFactoryWithOptions(c.Kube, 0, informers.WithTransform(slim))
	p := &Provider{Config: c, informers: f, events: events, services: f.Core().V1().Services().Lister(), nodes: f.Core().V1().Nodes().Lister(),
		program: supervisor.NewWake(), publish: supervisor.NewWake(), lost: true}
	p.checks = &checks{port: c.NodeHealthPort, changed: p.program.Signal}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { p.wakeAll() }, UpdateFunc: func(any, any) { p.wakeAll() }, DeleteFunc: func(any) { p.wakeAll() }}
	ofSlices := f.Discovery().V1().EndpointSlices().Informer()
	p.slices = ofSlices.GetIndexer()
	if err := ofSlices.AddIndexers(cache.Indexers{byService: serviceOf}); err != nil {
		return nil, err
	}
	for _, i := range []cache.SharedIndexInformer{f.Core().V1().Services().Informer(), f.Core().V1().Nodes().Informer(), ofSlices} {
		if _, err := i.AddEventHandler(handler); err != nil {
			return nil, err
		}
	}
	return p, nil
}

const byService = "service"

func serviceOf(obj any) ([]string, error) {
	s, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil, fmt.Errorf("%T is no EndpointSlice", obj)
	}
	return []string{s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]}, nil
}

// slim leaves out what the provider does not read.
func slim(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	switch o := obj.(type) {
	case *corev1.Node:
		o.Status = corev1.NodeStatus{Addresses: o.Status.Addresses, Conditions: o.Status.Conditions}
	case *discoveryv1.EndpointSlice:
		for i, e := range o.Endpoints {
			o.Endpoints[i] = discoveryv1.Endpoint{NodeName: e.NodeName, Conditions: e.Conditions}
		}
	}
	return obj, nil
}

func (p *Provider) wakeAll() {
	p.program.Signal()
	p.publish.Signal()
}

// Ready returns an error while not all Services are known.
func (p *Provider) Ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ready {
		return errors.New("waiting for the Services of the cluster")
	}
	return nil
}

// Run works until ctx ends. Then it gives its addresses and the Lease up; what the kernel has stays.
func (p *Provider) Run(ctx context.Context) {
	p.informers.Start(ctx.Done())
	for _, ok := range p.informers.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return // shutting down
		}
	}
	p.mu.Lock()
	p.ready = true
	p.mu.Unlock()
	p.wakeAll()
	var work sync.WaitGroup
	work.Go(supervisor.Kept(ctx, "lbprovider", p.elect))
	work.Go(supervisor.Kept(ctx, "lbprovider", p.runProgram))
	work.Go(supervisor.Kept(ctx, "lbprovider", p.runPublish))
	work.Go(supervisor.Kept(ctx, "lbprovider", p.checks.run))
	if p.Watch != nil {
		work.Go(supervisor.Kept(ctx, "lbprovider", func(ctx context.Context) { p.Watch(ctx, p.resync) }))
	}
	work.Wait()
}

func (p *Provider) resync() {
	p.mu.Lock()
	p.lost = true
	p.mu.Unlock()
	p.program.Signal()
}

func (p *Provider) hold(is bool) {
	p.mu.Lock()
	changed := p.holding != is
	p.holding = is
	p.mu.Unlock()
	if changed {
		observeHolding(is)
		p.wakeAll()
	}
}

func (p *Provider) holds() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.holding
}

// takeLost reports whether the kernel has to be read, and assumes that it will be.
func (p *Provider) takeLost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	lost := p.lost
	p.lost = false
	return lost
}

// list returns a list that may be changed; the objects may not.
func list[T any](from func() ([]T, error)) []T {
	out, err := from()
	if err != nil { // of a cache there is none
		return nil
	}
	return slices.Clone(out)
}

// endpoints returns the EndpointSlices of a Service.
func (p *Provider) endpoints(s *corev1.Service) (out []*discoveryv1.EndpointSlice) {
	objs, err := p.slices.ByIndex(byService, s.Namespace+"/"+s.Name)
	if err != nil { // the index is there
		return nil
	}
	for _, obj := range objs {
		out = append(out, obj.(*discoveryv1.EndpointSlice))
	}
	return out
}

// portKey names a port of a Service in one family.
type portKey struct {
	id   ruleset.PortID
	ipv6 bool
}

func sorted(ports map[portKey]*ruleset.Port) []*ruleset.Port {
	return slices.SortedFunc(maps.Values(ports), func(a, b *ruleset.Port) int {
		return a.Frontends[0].Key.Compare(b.Frontends[0].Key)
	})
}
