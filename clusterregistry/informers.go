package clusterregistry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/wire"
	"federation/controllers/supervisor"
)

// memberInformers prepares each informer when it is first asked for.
type memberInformers struct {
	member *Member
	all    *wire.Informers
	ctx    context.Context

	mu      sync.Mutex
	known   map[schema.GroupVersionResource]*memberInformer
	started bool
}

// ForResource implements Informers. Once the member has started, new informers start at once.
func (f *memberInformers) ForResource(gvr schema.GroupVersionResource) cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.known[gvr]; known != nil {
		return known
	}
	i := &memberInformer{SharedIndexInformer: f.all.ForResource(gvr), of: f, resource: gvr}
	_ = i.SetWatchErrorHandlerWithContext(i.noteError) // fails only on a running informer
	f.known[gvr] = i
	if f.started {
		f.all.Start(f.ctx.Done())
	}
	return i
}

func (f *memberInformers) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = true
	f.all.Start(f.ctx.Done())
}

// memberInformer is an informer that does not hold up its users where the member does not let us list its kind: it
// counts as synced then, and as empty.
type memberInformer struct {
	cache.SharedIndexInformer
	of       *memberInformers
	resource schema.GroupVersionResource
	lacking  atomic.Bool
}

// Packed returns the informer that hands objects to its handlers as they are held, see package wire.
func (i *memberInformer) Packed() cache.SharedIndexInformer {
	if holds, ok := i.SharedIndexInformer.(interface {
		Packed() cache.SharedIndexInformer
	}); ok {
		return holds.Packed()
	}
	return i.SharedIndexInformer
}

// HasSynced implements cache.SharedIndexInformer.
func (i *memberInformer) HasSynced() bool {
	return i.SharedIndexInformer.HasSynced() || i.lacking.Load()
}

// Lacking reports whether the informer is empty because the member does not let us list its kind: that nothing is in it
// says nothing then.
func (i *memberInformer) Lacking() bool {
	return i.lacking.Load() && !i.SharedIndexInformer.HasSynced()
}

var errRightsChanged = errors.New("what the member refused it allows now: it is taken up anew")

// noteError notes each list and watch that ends with an error.
func (i *memberInformer) noteError(ctx context.Context, r *cache.Reflector, err error) {
	if i.of.ctx.Err() != nil {
		return // we ended it ourselves
	}
	if isLacking(i.resource, err) && i.lacking.CompareAndSwap(false, true) && !i.SharedIndexInformer.HasSynced() {
		i.of.member.refused.Store(i.resource.GroupResource().String(), true)
		go supervisor.Keep(ctx, "registry", func(context.Context) { i.awaitRights() })
	}
	if !i.of.member.WatchFailed(ctx, i.resource.GroupResource().String(), err) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
	}
}

// isLacking tells of an error whether the member does not let us see a kind, or has none of that name. One that is no
// kind of Kubernetes' own may come with its definition: it is waited for.
func isLacking(r schema.GroupVersionResource, err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) && scheme.Scheme.IsVersionRegistered(r.GroupVersion())
}

// awaitRights has the member taken up anew when its informer fills after all: its users took it for empty.
func (i *memberInformer) awaitRights() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for !i.SharedIndexInformer.HasSynced() {
		select {
		case <-i.of.ctx.Done():
			return
		case <-tick.C:
		}
	}
	i.of.member.cancel(errRightsChanged)
	i.of.member.broken()
}

// WatchFailed is for those who have informers of their own on m.Core: it is to be told of each list or watch that ends with
// an error. It returns true where nobody needs to hear more of it.
func (m *Member) WatchFailed(ctx context.Context, resource string, err error) (known bool) {
	switch {
	case ctx.Err() != nil || m.ctx.Err() != nil:
		return true // we ended it ourselves
	case apierrors.IsForbidden(err):
		if _, told := m.told.LoadOrStore(resource, true); !told && m.lacks != nil {
			m.lacks(resource, err)
		}
		return true
	}
	m.broken()
	return false
}

// Slim drops the managedFields, which are as large as the rest of an object, and keeps the one thing that is read of
// them: which autoscaler owns the number of replicas.
func Slim(o metav1.Object) {
	if by := v1beta1.ScaledBy(o); by != "" {
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1beta1.ScaledByAnnotation] = by
		o.SetAnnotations(annotations)
	}
	o.SetManagedFields(nil)
}

// missingPermission says to an operator which permission is missing.
func missingPermission(resource string, err error) string {
	return fmt.Sprintf("the federation cannot see %s here: %s; join the cluster again (kubectl federation join) to give it the rights", resource, v1beta1.Printable(err.Error()))
}
