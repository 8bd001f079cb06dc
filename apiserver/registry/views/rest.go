package views

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/apis/core"
)

// REST serves one kind of the members' objects.
type REST struct {
	kind       *kind
	members    *Members
	namespaces namespaces
	owners     *Owners
	versions   *versions
}

// WatchedREST serves a kind that can also be watched.
type WatchedREST struct {
	*REST
	seats *seats
}

var (
	_ rest.Getter               = &REST{}
	_ rest.Lister               = &REST{}
	_ rest.Watcher              = &WatchedREST{}
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
	_ rest.CategoriesProvider   = &REST{}
)

// Views are all that are served.
type Views struct {
	Pods, Nodes               *WatchedREST
	PodMetrics, NodeMetrics   *REST
	Log                       *LogREST
	Exec, Attach, PortForward *ConnectREST
}

// New returns the views of members. federation lists the federation's namespaces; owners finds its workloads. may
// decides what callers may do in pods.
func New(members *Members, federation corelisters.NamespaceLister, owners *Owners, may authorizer.Authorizer) *Views {
	versions := newVersions(time.Now, rand.Int64())
	of := func(k *kind) *REST {
		return &REST{kind: k, members: members, namespaces: namespaces{federation}, owners: owners, versions: versions}
	}
	watched := func(k *kind) *WatchedREST {
		return &WatchedREST{of(k), &seats{what: "watches of " + k.resource.Resource, most: maxWatchers, each: maxWatchersEach}}
	}
	ofPods, streams := watched(&pods), &seats{what: "streams of pods", most: maxStreams, each: maxStreamsEach}
	connect := func(subresource string, options func() runtime.Object) *ConnectREST {
		return &ConnectREST{ofPods.REST, streams, subresource, options, may}
	}
	return &Views{
		Pods: ofPods, Nodes: watched(&nodes), PodMetrics: of(&podMetrics), NodeMetrics: of(&nodeMetrics), Log: &LogREST{ofPods.REST, streams},
		Exec:        connect("exec", func() runtime.Object { return &core.PodExecOptions{} }),
		Attach:      connect("attach", func() runtime.Object { return &core.PodAttachOptions{} }),
		PortForward: connect("portforward", func() runtime.Object { return &core.PodPortForwardOptions{} }),
	}
}

// New returns an empty object.
func (r *REST) New() runtime.Object { return r.kind.make() }

// NewList returns an empty list.
func (r *REST) NewList() runtime.Object { return r.kind.makeList() }

// Destroy does nothing: connections to members end by themselves.
func (*REST) Destroy() {}

// NamespaceScoped reports whether the objects are in namespaces.
func (r *REST) NamespaceScoped() bool { return r.kind.namespaced }

// GetSingularName returns the name of one.
func (r *REST) GetSingularName() string { return r.kind.singular }

// ShortNames returns what kubectl also accepts for the resource.
func (r *REST) ShortNames() []string { return r.kind.shortNames }

// Categories returns the groups of resources in which kubectl shows it.
func (r *REST) Categories() []string { return r.kind.categories }

// ConvertToTable makes the table that kubectl shows.
func (r *REST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.kind.table(ctx, object, options)
}

func (r *REST) notFound(name string) error {
	return errors.NewNotFound(r.kind.resource.GroupResource(), name)
}

// namespace returns the namespace of a request; "": all.
func (r *REST) namespace(ctx context.Context) string {
	if !r.kind.namespaced {
		return metav1.NamespaceNone
	}
	return request.NamespaceValue(ctx)
}
