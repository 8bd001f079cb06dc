package clusterregistry

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
)

// Informers gives informers for resources of a member.
type Informers interface {
	// ForResource returns the one informer for a resource, over all namespaces. It holds only objects
	// that this federation made, without their managedFields. It runs until the member is lost.
	ForResource(gvr schema.GroupVersionResource) informers.GenericInformer
}

// Member is a live connection to one member cluster, from the moment that it is ready until it is not.
type Member struct {
	// Name of the Cluster.
	Name string
	// FederationUID is the value of v1beta1.ManagedByLabel on what this federation makes in the member.
	FederationUID string
	// Dynamic is not throttled and has no timeout: give each call a context that ends.
	Dynamic dynamic.Interface
	// Informers of the member.
	Informers Informers

	ctx    context.Context
	cancel context.CancelCauseFunc
	broken func()
	start  func()
}

// Context is done when the member is lost; its cause says why.
func (m *Member) Context() context.Context { return m.ctx }

// Done is closed when the member is lost.
func (m *Member) Done() <-chan struct{} { return m.ctx.Done() }

func newMember(ctx context.Context, name, uid string, l *link) (*Member, error) {
	dyn, err := dynamic.NewForConfigAndClient(l.config, l.client)
	if err != nil {
		return nil, err
	}
	m := &Member{Name: name, FederationUID: uid, Dynamic: dyn, broken: l.broken}
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	f := m.newInformers(m.ctx, "")
	m.Informers, m.start = f, f.start
	return m, nil
}

// NewInformers returns informers that nobody else has, and a function that starts them. They end with ctx.
// selector, unless it is "", says which of the objects that this federation made they hold.
func (m *Member) NewInformers(ctx context.Context, selector string) (i Informers, start func()) {
	f := m.newInformers(ctx, selector)
	return f, f.start
}

func (m *Member) newInformers(ctx context.Context, selector string) *memberInformers {
	ours := v1beta1.ManagedByLabel + "=" + m.FederationUID
	if selector != "" {
		ours += "," + selector
	}
	return &memberInformers{
		ctx: ctx, broken: m.broken, known: map[schema.GroupVersionResource]bool{},
		factory: dynamicinformer.NewFilteredDynamicSharedInformerFactory(m.Dynamic, 0, metav1.NamespaceAll,
			func(o *metav1.ListOptions) { o.LabelSelector = ours }),
	}
}

// memberInformers prepares each informer when it is first asked for.
type memberInformers struct {
	factory dynamicinformer.DynamicSharedInformerFactory
	ctx     context.Context
	broken  func()

	mu      sync.Mutex
	known   map[schema.GroupVersionResource]bool
	started bool
}

// ForResource implements Informers. Once the member has started, new informers start at once.
func (f *memberInformers) ForResource(gvr schema.GroupVersionResource) informers.GenericInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	informer := f.factory.ForResource(gvr)
	if f.known[gvr] {
		return informer
	}
	f.known[gvr] = true
	// These two fail only on a running informer, and this one has yet to run.
	_ = informer.Informer().SetTransform(withoutManagedFields)
	_ = informer.Informer().SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if f.ctx.Err() != nil {
			return // we ended it ourselves
		}
		f.broken()
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	if f.started {
		f.factory.Start(f.ctx.Done())
	}
	return informer
}

func (f *memberInformers) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = true
	f.factory.Start(f.ctx.Done())
}

// withoutManagedFields drops what is as large as the rest of an object and nobody here reads.
func withoutManagedFields(obj any) (any, error) {
	if o, err := meta.Accessor(obj); err == nil {
		o.SetManagedFields(nil)
	}
	return obj, nil
}
