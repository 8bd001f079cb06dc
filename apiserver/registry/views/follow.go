package views

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"federation/apiserver/apis/federation/v1beta1"
)

// follow watches one member until ctx ends. After an error it continues from where it was: a member that is away keeps
// its objects in the client's view. begun is called when it has sent its list, or failed for the first time.
func (m *merged) follow(ctx context.Context, c *v1beta1.Cluster, begun func()) {
	defer begun()
	first := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 5, Cap: 15 * time.Second}
	pause := first
	for ctx.Err() == nil {
		start := time.Now()
		err := m.listAndWatch(ctx, c, begun)
		begun()
		if m.view.versions.hasExpired(err, m.since) {
			m.expired(ctx, fmt.Sprintf("cluster %s: %s", c.Name, shortReason(err)))
			return
		}
		if time.Since(start) > 30*time.Second {
			pause = first
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause.Step()):
		}
	}
}

// listAndWatch lists a member's objects, if that has not been done, and watches it until that ends.
func (m *merged) listAndWatch(ctx context.Context, c *v1beta1.Cluster, begun func()) error {
	if m.startVersion(c.Name) == "" {
		p, err := askMember(ctx, m.view.members, c, func(ctx context.Context, l *link) (part, error) {
			return m.view.listAt(ctx, l, m.namespace, m.by, metav1.ListOptions{}, nil)
		})
		if err != nil {
			return err
		}
		for _, o := range p.items {
			if !m.send(ctx, watch.Event{Type: watch.Added, Object: o.object}) {
				return nil
			}
		}
		m.noteVersion(c.Name, p.version)
	}
	begun()
	ctx, cancel := context.WithCancel(ctx) // nobody closes the body of a watch that cannot be read
	defer cancel()
	l, err := m.view.members.link(ctx, c)
	if err != nil {
		return err
	}
	label, field, _ := m.by.selectorsFor(c.Name)
	stream, err := get(l.clientOfKind(m.view.kind), m.view.kind.resource.Resource, m.namespace).
		SpecificallyVersionedParams(&metav1.ListOptions{LabelSelector: label, FieldSelector: field, ResourceVersion: m.startVersion(c.Name), AllowWatchBookmarks: true}, scheme.ParameterCodec, corev1.SchemeGroupVersion).
		Param("watch", "true").Watch(m.view.members.allow(ctx, true))
	if err != nil {
		if errors.IsUnauthorized(err) {
			l.readAt.Store(0)
		}
		return err
	}
	defer stream.Stop()
	return m.forwardEvents(ctx, l, stream)
}

// forwardEvents forwards a member's events to the client.
func (m *merged) forwardEvents(ctx context.Context, l *link, stream watch.Interface) error {
	shown := shownNamespaces{view: m.view, link: l, known: map[string]shownUntil{}}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, open := <-stream.ResultChan():
			if !open {
				return nil
			}
			if e.Type == watch.Error {
				return errors.FromObject(e.Object)
			}
			o, ok := e.Object.(object)
			if !ok {
				return fmt.Errorf("it sends %T", e.Object)
			}
			version := o.GetResourceVersion()
			if e.Type == watch.Bookmark {
				m.noteVersion(l.cluster, version)
				continue
			}
			shows, err := false, error(nil)
			if m.namespace == "" || o.GetNamespace() == m.namespace {
				shows, err = shown.has(ctx, o.GetNamespace())
			}
			if err != nil {
				return err // the watch begins again with this event
			}
			if shows && m.view.kind.show(ctx, o, l.cluster, m.view.owners.lookup()) && !m.send(ctx, e) {
				return nil
			}
			m.noteVersion(l.cluster, version)
		}
	}
}

// shownNamespaces caches for a watch, for a while, which namespaces of a member are shown.
type shownNamespaces struct {
	view  *WatchedREST
	link  *link
	known map[string]shownUntil
}

type shownUntil struct {
	shown bool
	until time.Time
}

// has reports whether objects of a namespace are shown. If the member does not say, its last answer holds; without one that is an error.
func (s *shownNamespaces) has(ctx context.Context, namespace string) (bool, error) {
	if !s.view.kind.namespaced {
		return true, nil
	}
	was, known := s.known[namespace]
	if known && time.Now().Before(was.until) {
		return was.shown, nil
	}
	if len(s.known) > 10000 {
		clear(s.known)
	}
	shown := false
	if s.view.namespaces.has(namespace) {
		ours, err := s.view.namespaces.inMember(s.view.members.allow(ctx, false), s.link, namespace)
		shown = ours[namespace]
		if err != nil && err != errNotOurs { //nolint:errorlint // it is that very one
			if !known {
				return false, err
			}
			shown = was.shown
		}
	}
	s.known[namespace] = shownUntil{shown, time.Now().Add(5 * time.Second)}
	return shown, nil
}
