package views

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/supervisor"
)

const (
	// maxWatched is the maximum of clusters of one watch.
	maxWatched = 64
	// lookForClusters is the period at which a watch looks for new clusters; bookmarkEvery is the period of its
	// bookmarks.
	lookForClusters, bookmarkEvery = 5 * time.Second, time.Minute
)

// Watch merges the watches of all members that may have selected objects. For an unknown version it ends at once with
// status 410, and the client lists again; without a version it begins with the existing objects.
func (r *WatchedREST) Watch(ctx context.Context, o *metainternalversion.ListOptions) (watch.Interface, error) {
	if o == nil {
		o = &metainternalversion.ListOptions{}
	}
	clusters := r.members.all()
	by, err := r.selection(ctx, o, clusters)
	if err != nil {
		return nil, err
	}
	m := &merged{view: r, by: by, namespace: r.namespace(ctx), bookmarks: o.AllowWatchBookmarks, events: make(chan watch.Event, 16), vector: map[string]string{}, since: r.versions.time()}
	m.initial = o.SendInitialEvents != nil && *o.SendInitialEvents
	if o.ResourceVersion != "" && o.ResourceVersion != "0" && !m.initial {
		vector, known := r.versions.vector(o.ResourceVersion)
		if !known {
			return nil, errors.NewResourceExpired(fmt.Sprintf("version %s is not known, or no longer: list again", o.ResourceVersion))
		}
		maps.Copy(m.vector, vector)
		m.since = givenAt(o.ResourceVersion)
	}
	of := m.selected(clusters)
	if len(of) > maxWatched {
		return nil, errors.NewTooManyRequestsError(fmt.Sprintf("at most %d clusters can be watched at once, and here are %d: choose some by the label %s", maxWatched, len(of), v1beta1.ClusterLabel))
	}
	if !r.isShown(ctx, m.namespace) {
		of = nil
	}
	if m.free, err = r.seats.acquire(clientOf(ctx)); err != nil {
		return nil, err
	}
	ctx, m.stop = context.WithCancel(ctx)
	go func() { _ = supervisor.Protect(ctx, "views", func() error { m.run(ctx, of); return nil }) }() // after a panic the watch ends: its client lists again
	return m, nil
}

// merged is one watch over members.
type merged struct {
	view      *WatchedREST
	by        selected
	namespace string
	bookmarks bool
	initial   bool // a bookmark marks the end of the existing objects
	events    chan watch.Event
	stop      context.CancelFunc
	free      func()    // its seat
	since     time.Time // of the versions that it began with
	members   sync.WaitGroup
	begun     sync.WaitGroup // of the first members: done when each has sent its list, or failed to

	mu     sync.Mutex
	vector map[string]string // where each continues
	said   bool              // whether anything has come since the last bookmark
}

// Stop implements watch.Interface.
func (m *merged) Stop() { m.stop() }

// ResultChan implements watch.Interface.
func (m *merged) ResultChan() <-chan watch.Event { return m.events }

// selected returns the clusters that may have selected objects.
func (m *merged) selected(clusters []*v1beta1.Cluster) []*v1beta1.Cluster {
	return slices.DeleteFunc(slices.Clone(clusters), func(c *v1beta1.Cluster) bool { _, _, any := m.by.selectorsFor(c.Name); return !any })
}

// run watches the clusters, including new ones, until the client is done or a cluster leaves.
func (m *merged) run(ctx context.Context, clusters []*v1beta1.Cluster) {
	defer m.free()
	defer close(m.events)
	defer m.members.Wait()
	defer m.stop()
	followed := map[string]*v1beta1.Cluster{}
	for _, c := range clusters {
		followed[c.Name] = c
		m.begun.Add(1)
		begun := sync.OnceFunc(m.begun.Done)
		m.members.Go(func() { m.followProtected(ctx, c, begun) })
	}
	if m.initial {
		m.begun.Wait()
		m.bookmark(ctx, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	look, mark := time.NewTicker(lookForClusters), time.NewTicker(bookmarkEvery)
	defer look.Stop()
	defer mark.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-mark.C:
			m.bookmark(ctx, nil)
		case <-look.C:
			if !m.lookForClusters(ctx, followed) {
				return
			}
		}
	}
}

// lookForClusters starts to watch new clusters. It returns false if a watched cluster has left: nobody knows which
// objects to delete.
func (m *merged) lookForClusters(ctx context.Context, followed map[string]*v1beta1.Cluster) bool {
	if m.namespace != "" && !m.view.namespaces.has(m.namespace) {
		return true
	}
	present := m.selected(m.view.members.all())
	for name, c := range followed {
		if is := onlyNamed(present, name); len(is) == 0 || is[0].UID != c.UID {
			m.expired(ctx, fmt.Sprintf("cluster %s has left", name))
			return false
		}
	}
	for _, c := range present {
		if followed[c.Name] == nil && len(followed) < maxWatched {
			followed[c.Name] = c
			m.members.Go(func() { m.followProtected(ctx, c, func() {}) })
		}
	}
	return true
}

// followProtected follows a member. A panic over what it sends ends the watch of this client, which lists again.
func (m *merged) followProtected(ctx context.Context, c *v1beta1.Cluster, begun func()) {
	if supervisor.Protect(ctx, "views", func() error { m.follow(ctx, c, begun); return nil }) != nil {
		begun()
		m.stop()
	}
}

// send sends an event to the client. It returns false when the client is done.
func (m *merged) send(ctx context.Context, e watch.Event) bool {
	select {
	case m.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// expired has the client list again, and ends the watch.
func (m *merged) expired(ctx context.Context, why string) {
	status := errors.NewResourceExpired(why).Status()
	m.send(ctx, watch.Event{Type: watch.Error, Object: &status})
	m.stop()
}

// bookmark sends the client a version to continue from, if it wants bookmarks and anything happened.
func (m *merged) bookmark(ctx context.Context, annotations map[string]string) {
	m.mu.Lock()
	vector, said := maps.Clone(m.vector), m.said
	m.said = false
	m.mu.Unlock()
	if !m.bookmarks || annotations == nil && !said {
		return
	}
	o := m.view.kind.make()
	o.SetResourceVersion(m.view.versions.note(vector))
	o.SetAnnotations(annotations)
	m.send(ctx, watch.Event{Type: watch.Bookmark, Object: o})
}

// startVersion returns where the watch of a cluster begins or continues.
func (m *merged) startVersion(cluster string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.vector[cluster]
}

func (m *merged) noteVersion(cluster, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.vector[cluster], m.said = boundText(version, maxVersion), true
}
