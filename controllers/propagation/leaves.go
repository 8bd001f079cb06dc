package propagation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

const (
	// leavesEvery is the period of checking what keeps a copy in a cluster that it should leave.
	leavesEvery = 5 * time.Second
	// movesTogether is within what time the placements of objects that move together are written.
	movesTogether = 30 * time.Second
)

// neededBy returns what keeps a copy in a cluster that it should leave; "" if nothing does, or it need not leave.
func (s *snapshots) neededBy(ctx context.Context, m *member, of plan.Source, t plan.Target, k key) (why string, err error) {
	since := m.Leaving(k, of.Leaves(t), time.Now())
	if since.IsZero() {
		return "", nil
	}
	if why = s.servesAlone(m, of, k); why == "" {
		why, err = s.neededByWorkload(ctx, m, of, k, time.Since(since) < movesTogether)
	}
	if why == "" && err == nil {
		why, err = s.referredThere(ctx, m, k)
	}
	if why != "" {
		m.queue.AddAfter(k, againAfter(time.Since(since)))
	}
	return why, err
}

// servesAlone returns a reason if a copy is the only one that serves; "" if it does not serve, or another one that
// stays does.
func (s *snapshots) servesAlone(m *member, of plan.Source, k key) string {
	if !k.Kind.Addresses {
		return ""
	}
	if own, _ := m.copyOf(k); !own.Serves(k.Kind) {
		return ""
	}
	for _, other := range s.all() {
		t, known := s.clusterTarget(other)
		if one, _ := other.copyOf(k); other != m && known && !t.HeartbeatsStale && of.Goes(t) && one.Serves(k.Kind) {
			return ""
		}
	}
	return "stays until another cluster serves"
}

// neededByWorkload returns which workload of the namespace still has pods in a member that need an object. Of several
// it is the first by name, so that the note does not change each time. justNow: the object has to leave only since a
// moment ago.
func (s *snapshots) neededByWorkload(ctx context.Context, m *member, of plan.Source, k key, justNow bool) (string, error) {
	for i := range plan.Kinds {
		kind := &plan.Kinds[i]
		if !kind.Paced {
			continue
		}
		workloads := s.inNamespace(kind, k.Namespace)
		slices.SortFunc(workloads, func(a, b any) int { return strings.Compare(held.About(a).GetName(), held.About(b).GetName()) })
		for _, obj := range workloads {
			u := held.Object(obj) // the cache has only metadata of other processes' objects
			w := plan.Workload{Kind: kind, Name: u.GetName(), Placement: plan.Read(u)}
			if !w.MayNeed(of, m.Name, justNow) {
				continue
			}
			var err error
			if w.Copy, err = s.copyOfAny(ctx, m, key{Kind: kind, NamespacedName: types.NamespacedName{Namespace: k.Namespace, Name: w.Name}}); err != nil {
				return "", fmt.Errorf("cannot determine whether %s %s needs it: %w", kind.Kind, w.Name, err)
			}
			if why := w.Keeps(of, justNow); why != "" {
				return why, nil
			}
		}
	}
	return "", nil
}

// copyOfAny returns our copy of an object in a member, whichever process owns it, or nil.
func (s *snapshots) copyOfAny(ctx context.Context, m *member, k key) (*unstructured.Unstructured, error) {
	if own := s.kindOf(k.Kind.Resource); own != nil && s.owns(k) {
		u, _ := m.Observe(key{Kind: own, NamespacedName: k.NamespacedName})
		return u, nil
	}
	if u, known := m.asked.get(k); known {
		return u, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.WriteTimeout)
	defer cancel()
	u, err := resourceClient(m.Client, k).Get(ctx, k.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && u.GetLabels()[v1beta1.ManagedByLabel] != s.Federation {
		u, err = nil, nil
	}
	if err == nil {
		m.asked.put(k, u)
	}
	return u, err
}

// answers caches a member's answers about other processes' copies: many objects may ask for the same.
type answers struct {
	mu sync.Mutex
	of map[key]copyAt
}

type copyAt struct {
	copy *unstructured.Unstructured
	at   time.Time
}

func (a *answers) get(k key) (*unstructured.Unstructured, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	got, ok := a.of[k]
	return got.copy, ok && time.Since(got.at) < leavesEvery
}

func (a *answers) put(k key, copy *unstructured.Unstructured) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.of, func(_ key, had copyAt) bool { return time.Since(had.at) >= leavesEvery })
	if a.of == nil {
		a.of = map[key]copyAt{}
	}
	a.of[k] = copyAt{copy, time.Now()}
}
