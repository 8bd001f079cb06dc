package memapi

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// watcher is one watch: a queue without bound, and a goroutine that empties it into the channel.
type watcher struct {
	namespace string
	selector  labels.Selector
	result    chan watch.Event
	done      chan struct{}
	leave     func()

	mu      sync.Mutex
	wake    *sync.Cond
	queue   []watch.Event
	silent  bool
	stopped bool
}

// watch begins a watch of a resource. It ends with ctx.
func (a *API) watch(ctx context.Context, s *store, namespace string, o metav1.ListOptions) (*watcher, error) {
	selector, err := labels.Parse(o.LabelSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	w := &watcher{namespace: namespace, selector: selector, result: make(chan watch.Event), done: make(chan struct{})}
	w.wake = sync.NewCond(&w.mu)
	w.leave = func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(s.watches, w)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.begin(w, s, o); err != nil {
		return nil, err
	}
	s.watches[w] = true
	stop := context.AfterFunc(ctx, w.Stop)
	go func() {
		defer stop()
		w.pump()
	}()
	return w, nil
}

// begin queues what comes before the first new change: all objects, or the changes since a version.
func (a *API) begin(w *watcher, s *store, o metav1.ListOptions) error {
	since, _ := strconv.ParseUint(o.ResourceVersion, 10, 64)
	initial := o.SendInitialEvents != nil && *o.SendInitialEvents
	if since == 0 || initial {
		for _, u := range s.list(w.namespace, w.selector) {
			w.queue = append(w.queue, watch.Event{Type: watch.Added, Object: copyOf(u)})
		}
		if initial {
			w.queue = append(w.queue, watch.Event{Type: watch.Bookmark, Object: bookmark(s.Resource, a.version)})
		}
		return nil
	}
	if since > a.version {
		err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", since, a.version), 1)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
		return err
	}
	if since < s.forgotten {
		return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", since, s.forgotten))
	}
	for _, c := range s.history {
		if c.version > since {
			w.tell(c)
		}
	}
	return nil
}

// bookmark says that all objects as of a version have been sent.
func bookmark(r Resource, version uint64) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.gvk())
	u.SetResourceVersion(strconv.FormatUint(version, 10))
	u.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return u
}

// tell queues a change as this watch sees it: an object may come into its sight, or leave it.
func (w *watcher) tell(c change) {
	was, is := w.sees(c.before, c.was), w.sees(c.after, c.is)
	e := watch.Event{Type: watch.Modified}
	switch {
	case !was && !is:
		return
	case !was:
		e.Type = watch.Added
	case !is:
		e.Type = watch.Deleted
	}
	if e.Type == watch.Deleted {
		gone := copyOf(c.before)
		gone.SetResourceVersion(strconv.FormatUint(c.version, 10))
		e.Object = gone
	} else {
		e.Object = copyOf(c.after)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, e)
	w.wake.Signal()
}

func (w *watcher) sees(u *unstructured.Unstructured, marks labels.Set) bool {
	return u != nil && (w.namespace == "" || w.namespace == u.GetNamespace()) && w.selector.Matches(marks)
}

func (w *watcher) pump() {
	defer close(w.result)
	defer w.leave()
	for {
		e, ok := w.next()
		if !ok {
			return
		}
		select {
		case w.result <- e:
		case <-w.done:
			return
		}
	}
}

func (w *watcher) next() (watch.Event, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.stopped && (w.silent || len(w.queue) == 0) {
		w.wake.Wait()
	}
	if w.stopped {
		return watch.Event{}, false
	}
	e := w.queue[0]
	w.queue = w.queue[1:]
	return e, true
}

// silence keeps events back, as a network does that drops everything, or lets them through again.
func (w *watcher) silence(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = on
	w.wake.Signal()
}

// Stop implements watch.Interface.
func (w *watcher) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.stopped = true
		close(w.done)
		w.wake.Signal()
	}
}

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }
