package clusterregistry

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/limits"
	"federation/clusterregistry/wire"
)

// Informers gives informers for resources of a member.
type Informers interface {
	// ForResource returns the one informer for a resource, over all namespaces. It holds only objects
	// that this federation made, without their managedFields. It runs until the member is lost.
	ForResource(gvr schema.GroupVersionResource) cache.SharedIndexInformer
}

// Member is a live connection to one member cluster, from the moment that it is ready until it is not.
type Member struct {
	// Name of the Cluster.
	Name string
	// FederationUID is the value of v1beta1.ManagedByLabel on what this federation makes in the member.
	FederationUID string
	// Dynamic is not throttled and has no timeout: give each call a context that ends. Objects come without managedFields.
	Dynamic dynamic.Interface
	// Core is the same for kinds of Kubernetes' own, in protobuf.
	Core kubernetes.Interface
	// Informers of the member.
	Informers Informers
	// Meter counts what is held of the member: caches other than Informers report to it.
	Meter *limits.Meter

	link   *link
	uid    string // of the cluster; "" if it is not known
	ctx    context.Context
	cancel context.CancelCauseFunc
	broken func()
	start  func()
	silent func() bool
	// unfenced: at the last question, asked then, it would have let us write what we do not manage. Both belong to who takes the inventory.
	unfenced bool
	asked    time.Time
	// joined gets a value when the cluster has joined again.
	joined chan struct{}
	// lacks is told, once each, what the member does not let us list or watch.
	lacks func(resource string, err error)
	told  sync.Map // resources
	// refused are the resources that cannot be listed. When one can, the member is taken up anew.
	refused sync.Map
}

// SetForbidden notes of a resource, as RESOURCE.GROUP, whether the member lets us list it, for those who ask before they have an informer.
func (m *Member) SetForbidden(resource string, forbidden bool) {
	if forbidden {
		m.refused.Store(resource, true)
	} else {
		m.refused.Delete(resource)
	}
}

// Forbidden are the resources that the member does not let us list, sorted.
func (m *Member) Forbidden() (resources []string) {
	m.refused.Range(func(resource, _ any) bool {
		resources = append(resources, resource.(string))
		return true
	})
	slices.Sort(resources)
	return resources
}

// HeartbeatsStale reports whether what the member says of its pods may be from before it was away, since its nodes have not been heard of yet (ADR 56).
// The condition NodeHeartbeatsStale of its Cluster says so later, and not before the federation's API can be written to.
func (m *Member) HeartbeatsStale() bool { return m.silent() }

// Context is done when the member is lost; its cause says why.
func (m *Member) Context() context.Context { return m.ctx }

// Done is closed when the member is lost.
func (m *Member) Done() <-chan struct{} { return m.ctx.Done() }

func newMember(ctx context.Context, name, uid string, l *link) (*Member, error) {
	dyn, err := wire.NewDynamic(l.config, l.client, Slim)
	if err != nil {
		return nil, err
	}
	core, err := kubernetes.NewForConfigAndClient(wire.Protobuf(l.config), l.client)
	if err != nil {
		return nil, err
	}
	m := &Member{Name: name, FederationUID: uid, Dynamic: dyn, Core: core, Meter: l.meter, link: l, uid: l.identity(), broken: l.broken, joined: make(chan struct{}, 1)}
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	f := m.newInformers(m.ctx, m.ours(""))
	m.Informers, m.start = f, f.start
	return m, nil
}

// Through returns a client like Dynamic, on the same connections, all of whose requests pass what wrap returns.
func (m *Member) Through(wrap func(http.RoundTripper) http.RoundTripper) (dynamic.Interface, error) {
	client := *m.link.client
	client.Transport = wrap(client.Transport)
	return wire.NewDynamic(m.link.config, &client, Slim)
}

// NewInformers returns informers that nobody else has, and a function that starts them. They end with ctx.
// selector, unless it is "", says which of the objects that this federation made they hold.
func (m *Member) NewInformers(ctx context.Context, selector string) (i Informers, start func()) {
	f := m.newInformers(ctx, m.ours(selector))
	return f, f.start
}

// NewInformersOfAll is as NewInformers for objects that anybody made, in a namespace, or in all if that is "". Of Namespaces they hold the
// metadata.
func (m *Member) NewInformersOfAll(ctx context.Context, namespace string) (i Informers, start func()) {
	f := m.newInformers(ctx, wire.Source{Namespace: namespace, Whole: func(kind string, _ metav1.Object) bool { return kind != "Namespace" }})
	return f, f.start
}

// ours is the source of what this federation made, as far as selector, unless it is "", selects it.
func (m *Member) ours(selector string) wire.Source {
	ours := v1beta1.ManagedByLabel + "=" + m.FederationUID
	if selector != "" {
		ours += "," + selector
	}
	return wire.Source{Select: func(o *metav1.ListOptions) { o.LabelSelector = ours }}
}

func (m *Member) newInformers(ctx context.Context, from wire.Source) *memberInformers {
	from.Kube, from.Dynamic, from.Slim, from.Meter = m.Core, m.Dynamic, Slim, m.Meter
	return &memberInformers{member: m, ctx: ctx, known: map[schema.GroupVersionResource]*memberInformer{}, all: wire.NewInformers(from)}
}
