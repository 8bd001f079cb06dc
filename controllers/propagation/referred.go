package propagation

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"federation/apiserver/apis/federation/v1beta1"
)

// What refers to a Secret or ServiceAccount in a member may be owned by another process, orphaned, or the cluster's own
// from the start. So before a copy leaves, the member itself is asked for referrers.

const (
	// referrersAge is the maximum age of that answer: objects of a namespace often leave together.
	referrersAge = time.Second
	// seldom is the longest time between two checks of what keeps a copy: no event tells of referrers that other processes own.
	seldom = time.Minute
	// referrersPage and referrersPages bound what is read of one kind in one namespace.
	referrersPage, referrersPages = 500, 100
)

// referredThere returns what refers to an object in a member, whoever made it; "" if nothing does, or if copies of the
// kind do not wait for referrers.
func (s *snapshots) referredThere(ctx context.Context, m *member, k key) (string, error) {
	if !v1beta1.Confined(k.Kind.Resource.GroupResource()) {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.WriteTimeout)
	defer cancel()
	by, err := m.refers.inNamespace(ctx, m.Client, k.Namespace)
	if err != nil {
		return "", fmt.Errorf("cannot determine whether anything there refers to it: %w", err)
	}
	if who := by[v1beta1.Reference{Kind: k.Kind.Kind, Name: k.Name}]; who != "" {
		return fmt.Sprintf("stays for %s there, which refers to it", who), nil
	}
	return "", nil
}

// againAfter returns when to check again what keeps a copy in a cluster: the longer it has, the later.
func againAfter(leaves time.Duration) time.Duration { return min(max(leavesEvery, leaves/4), seldom) }

// referrersThere caches what refers to Secrets and ServiceAccounts in the namespaces of a member, by reference.
type referrersThere struct {
	mu sync.Mutex
	of map[string]*referrersAt
}

// referrersAt are those of one namespace. They are valid once read is closed.
type referrersAt struct {
	read chan struct{}
	by   map[v1beta1.Reference]string
	err  error
	at   time.Time // time of the request
}

// inNamespace returns those of one namespace. One caller reads them; other callers wait for it meanwhile, each until its own
// deadline.
func (r *referrersThere) inNamespace(ctx context.Context, client dynamic.Interface, namespace string) (map[v1beta1.Reference]string, error) {
	r.mu.Lock()
	maps.DeleteFunc(r.of, func(_ string, had *referrersAt) bool { return time.Since(had.at) >= referrersAge })
	now, reading := r.of[namespace]
	if !reading {
		if r.of == nil {
			r.of = map[string]*referrersAt{}
		}
		now = &referrersAt{read: make(chan struct{}), at: time.Now()}
		r.of[namespace] = now
	}
	r.mu.Unlock()
	if !reading {
		now.by, now.err = readReferrers(ctx, client, namespace)
		close(now.read)
	}
	select {
	case <-now.read:
		return now.by, now.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// readReferrers reads what refers to Secrets and ServiceAccounts in a namespace.
func readReferrers(ctx context.Context, client dynamic.Interface, namespace string) (map[v1beta1.Reference]string, error) {
	by := map[v1beta1.Reference]string{}
	for i := range v1beta1.Referrers {
		row := &v1beta1.Referrers[i]
		kind := schema.GroupKind{Group: row.Resource.Group, Kind: row.Kind}
		err := eachThere(ctx, client.Resource(row.Resource).Namespace(namespace), func(u *unstructured.Unstructured) {
			if v1beta1.Idle(kind, u.Object) {
				return
			}
			for _, to := range v1beta1.References(kind, u.Object) {
				if who := row.Kind + " " + u.GetName(); v1beta1.ConfinedKinds[to.Kind] && (by[to] == "" || who < by[to]) {
					by[to] = who
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return by, nil
}

// eachThere calls do for all objects of a list, page by page.
func eachThere(ctx context.Context, from dynamic.ResourceInterface, do func(*unstructured.Unstructured)) error {
	o := metav1.ListOptions{Limit: referrersPage}
	for range referrersPages {
		page, err := from.List(ctx, o)
		if apierrors.IsNotFound(err) {
			return nil // a cluster that does not serve the kind
		}
		if err != nil {
			return err
		}
		for i := range page.Items {
			do(&page.Items[i])
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return nil
		}
	}
	return fmt.Errorf("more than %d objects of a kind in a namespace", referrersPage*referrersPages)
}
