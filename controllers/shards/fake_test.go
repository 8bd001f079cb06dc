package shards

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"federation/apiserver/apis/federation/v1beta1"
)

var leasesResource = coordinationv1.Resource("leases")

// server keeps Leases as an apiserver does: versions grow, and writes at another version are refused.
type server struct {
	mu       sync.Mutex
	version  int
	leases   map[string]*coordinationv1.Lease
	watchers map[chan watch.Event]bool
	renewals int
	tables   int // writes of the table
}

func newServer() *server {
	return &server{leases: map[string]*coordinationv1.Lease{}, watchers: map[chan watch.Event]bool{}}
}

// names returns those of the Leases that are stored.
func (s *server) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.leases))
}

// store stores a Lease, or deletes it if nil.
func (s *server) store(name string, lease *coordinationv1.Lease) *coordinationv1.Lease {
	kind, there := watch.Modified, s.leases[name]
	switch {
	case lease == nil:
		kind, lease = watch.Deleted, there.DeepCopy()
		delete(s.leases, name)
	case there == nil:
		kind = watch.Added
		fallthrough
	default:
		lease = lease.DeepCopy()
		lease.Namespace = v1beta1.FederationNamespace
		s.leases[name] = lease
	}
	s.version++
	lease.ResourceVersion = strconv.Itoa(s.version)
	if name == TableName {
		s.tables++
	}
	for w := range s.watchers {
		w <- watch.Event{Type: kind, Object: lease.DeepCopy()}
	}
	return lease.DeepCopy()
}

// wire is one replica's connection to the server. While cut, its requests hang until their deadline.
type wire struct {
	*server
	cutter sync.Mutex
	cut    chan struct{} // closed while cut
}

func (w *wire) set(cut bool) {
	w.cutter.Lock()
	defer w.cutter.Unlock()
	if w.cut = make(chan struct{}); cut {
		close(w.cut)
	}
}

func (w *wire) pass(ctx context.Context) error {
	w.cutter.Lock()
	cut := w.cut
	w.cutter.Unlock()
	select {
	case <-cut:
		<-ctx.Done()
		return ctx.Err()
	default:
		return ctx.Err()
	}
}

func (w *wire) do(ctx context.Context, name string, change func(there *coordinationv1.Lease) (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	if err := w.pass(ctx); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return change(w.leases[name])
}

func (w *wire) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	return w.do(ctx, name, func(there *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		if there == nil {
			return nil, apierrors.NewNotFound(leasesResource, name)
		}
		return there.DeepCopy(), nil
	})
}

func (w *wire) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return w.do(ctx, lease.Name, func(there *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		if there != nil {
			return nil, apierrors.NewAlreadyExists(leasesResource, lease.Name)
		}
		return w.store(lease.Name, lease), nil
	})
}

func (w *wire) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return w.do(ctx, lease.Name, func(there *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		if there == nil {
			return nil, apierrors.NewNotFound(leasesResource, lease.Name)
		}
		if there.ResourceVersion != lease.ResourceVersion {
			return nil, apierrors.NewConflict(leasesResource, lease.Name, errors.New("changed"))
		}
		return w.store(lease.Name, lease), nil
	})
}

func (w *wire) Patch(ctx context.Context, name string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (*coordinationv1.Lease, error) {
	return w.do(ctx, name, func(there *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		if there == nil {
			return nil, apierrors.NewNotFound(leasesResource, name)
		}
		lease := there.DeepCopy()
		if err := json.Unmarshal(patch, lease); err != nil {
			return nil, err
		}
		w.renewals++
		return w.store(name, lease), nil
	})
}

func (w *wire) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	_, err := w.do(ctx, name, func(there *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		if there == nil {
			return nil, apierrors.NewNotFound(leasesResource, name)
		}
		if p := o.Preconditions; p != nil && p.ResourceVersion != nil && *p.ResourceVersion != there.ResourceVersion {
			return nil, apierrors.NewConflict(leasesResource, name, errors.New("changed"))
		}
		return w.store(name, nil), nil
	})
	return err
}

func (w *wire) List(ctx context.Context, _ metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	if err := w.pass(ctx); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	list := &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(w.version)}}
	for _, lease := range w.leases {
		list.Items = append(list.Items, *lease.DeepCopy())
	}
	return list, nil
}

// Watch sends events from now on, and ends when the wire is cut. Nothing is missed between a list and its watch,
// because the tests' time does not advance between the two.
func (w *wire) Watch(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	if err := w.pass(ctx); err != nil {
		return nil, err
	}
	events := make(chan watch.Event, 10000)
	w.mu.Lock()
	w.watchers[events] = true
	w.mu.Unlock()
	ended := watch.NewProxyWatcher(make(chan watch.Event))
	out := make(chan watch.Event)
	w.cutter.Lock()
	cut := w.cut
	w.cutter.Unlock()
	go func() {
		defer close(out)
		defer func() {
			w.mu.Lock()
			delete(w.watchers, events)
			w.mu.Unlock()
		}()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ended.StopChan():
				return
			case <-cut:
				return
			case e := <-events:
				select {
				case out <- e:
				case <-ended.StopChan():
					return
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return stopper{out, ended}, nil
}

// IsWatchListSemanticsUnSupported makes informers list and then watch.
func (w *wire) IsWatchListSemanticsUnSupported() bool { return true }

type stopper struct {
	out   chan watch.Event
	ended *watch.ProxyWatcher
}

func (s stopper) ResultChan() <-chan watch.Event { return s.out }
func (s stopper) Stop()                          { s.ended.Stop() }
