package placement

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler"
)

// state is what the deciding goroutine remembers between objects.
type state struct {
	clusters map[string]read[v1beta1.Cluster]
	policies map[string]read[v1beta1.PlacementPolicy]
	world    *scheduler.World
	reserved map[string][]reservation // by cluster
	short    map[key]bool             // objects short of room, or whose pods are
	due      map[key]time.Time        // when to decide objects again
	refers   map[key]referrer         // objects that take along what they refer to
	referred map[reference]map[key]bool
}

// read is a decoded object and its version.
type read[T any] struct {
	version string
	object  *T
}

// reservation is room that was assigned and that a capacity report may not include yet. A cluster's reservations are in
// order of time.
type reservation struct {
	at       time.Time
	requests corev1.ResourceList
	pods     int64
}

// referrer is an object that takes along what it refers to.
type referrer struct {
	kind  string
	reach scheduler.Reach
	to    []v1beta1.Reference
}

// equal reports whether two versions of a referrer take the same along to the same clusters.
func (r referrer) equal(other referrer) bool {
	return slices.Equal(r.to, other.to) && r.reach.Everywhere == other.reach.Everywhere && slices.Equal(r.reach.Clusters, other.reach.Clusters)
}

// reference is what objects of its namespace refer to.
type reference struct {
	namespace string
	v1beta1.Reference
}

func newState() state {
	return state{
		clusters: map[string]read[v1beta1.Cluster]{}, policies: map[string]read[v1beta1.PlacementPolicy]{},
		reserved: map[string][]reservation{}, short: map[key]bool{}, due: map[key]time.Time{}, refers: map[key]referrer{}, referred: map[reference]map[key]bool{},
	}
}

// snapshot returns the current world. It is rebuilt only if a cluster or a policy has changed.
func (c *Controller) snapshot(now time.Time) *scheduler.World {
	s := &c.state
	clusters, newClusters := refreshDecoded(s.clusters, c.Informers(v1beta1.ClustersResource).GetStore().List(), readCluster)
	policies, newPolicies := refreshDecoded(s.policies, c.Informers(v1beta1.PoliciesResource).GetStore().List(), readPolicy)
	if s.world == nil || newClusters || newPolicies || s.ledgerStale(now) {
		s.world = scheduler.NewWorld(clusters, policies)
		s.world.Terse, s.world.Grace, s.world.SecretsEverywhere = true, c.GracePeriod, c.SecretsEverywhere
		s.reserve(now)
	}
	return s.world
}

// refreshDecoded decodes the objects whose version has changed, and forgets deleted ones.
func refreshDecoded[T any](known map[string]read[T], list []any, parse func(*unstructured.Unstructured) *T) (all []*T, changed bool) {
	seen := make(map[string]bool, len(list))
	for _, obj := range list {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		name, version := u.GetNamespace()+"/"+u.GetName(), string(u.GetUID())+u.GetResourceVersion()
		seen[name] = true
		if was, ok := known[name]; !ok || was.version != version || version == "" {
			known[name], changed = read[T]{version, parse(u)}, true
		}
		all = append(all, known[name].object)
	}
	for name := range known {
		if !seen[name] {
			delete(known, name)
			changed = true
		}
	}
	return all, changed
}

// ledgerStale reports whether the ledger still counts what the capacity reports include by now.
func (s *state) ledgerStale(now time.Time) bool {
	for _, reservations := range s.reserved {
		if now.Sub(reservations[0].at) > reportLag {
			return true
		}
	}
	return false
}

// reserve takes from the world's new ledger what was assigned and the capacity reports cannot include. A report is
// written only when it changes: the lack of a newer one means nothing.
func (s *state) reserve(now time.Time) {
	still := map[string][]reservation{}
	for _, cluster := range s.world.Clusters {
		for _, r := range s.reserved[cluster.Name] {
			if now.Sub(r.at) <= reportLag {
				still[cluster.Name] = append(still[cluster.Name], r)
				s.world.Ledger.Take(cluster.Name, s.world.Ledger.Demand(r.requests), r.pods)
			}
		}
	}
	s.reserved = still
}

// assign takes from the ledger what a decision adds to clusters, and keeps it reserved.
func (s *state) assign(o *scheduler.Object, d *scheduler.Decision, now time.Time) {
	if !s.world.Ledger.Limits() || !o.Divided || !d.Changed {
		return
	}
	s.world.Take(o, d)
	for cluster, n := range d.Placement.Clusters {
		if more := n - o.At(cluster); more > 0 {
			s.reserved[cluster] = append(s.reserved[cluster], reservation{now, o.Requests(), more})
		}
	}
}

// refersTo records what an object refers to and takes along, and where it goes. It returns what must be decided again.
func (s *state) refersTo(k key, next referrer) (wake []v1beta1.Reference) {
	was, known := s.refers[k]
	if !known && len(next.to) == 0 {
		return nil
	}
	for _, to := range was.to {
		at := reference{k.Namespace, to}
		if delete(s.referred[at], k); len(s.referred[at]) == 0 {
			delete(s.referred, at)
		}
	}
	delete(s.refers, k)
	for _, to := range next.to {
		at := reference{k.Namespace, to}
		if s.referred[at] == nil {
			s.referred[at] = map[key]bool{}
		}
		s.referred[at][k], s.refers[k] = true, next
	}
	return append(was.to, next.to...)
}

func readCluster(u *unstructured.Unstructured) *v1beta1.Cluster {
	out := &v1beta1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		out.Status = v1beta1.ClusterStatus{} // an object that cannot be decoded counts as not ready
	}
	return out
}

func readPolicy(u *unstructured.Unstructured) *v1beta1.PlacementPolicy {
	out := &v1beta1.PlacementPolicy{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		out.Spec = v1beta1.PlacementPolicySpec{} // selects nothing
	}
	return out
}

// setDue has an object decided again after some time; 0 is never. Objects whose times come together are decided in one pass, and so in
// the order of their priority.
func (s *state) setDue(k key, after time.Duration, now time.Time) {
	if delete(s.due, k); after > 0 {
		s.due[k] = now.Add(after)
	}
}

// takeDue returns the objects whose time has come, and how long it is until the next one's; 0 if there is none.
func (s *state) takeDue(now time.Time) (out []key, next time.Duration) {
	for k, at := range s.due {
		switch after := at.Sub(now); {
		case after <= 0:
			delete(s.due, k)
			out = append(out, k)
		case next == 0 || after < next:
			next = after
		}
	}
	return out, next
}
