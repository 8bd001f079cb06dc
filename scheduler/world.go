package scheduler

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler/apportion"
)

// World is all that decisions depend on besides the object and the time. Make it with NewWorld. Decisions may run
// concurrently with one World, as long as nobody takes from its Ledger.
type World struct {
	// Clusters by name.
	Clusters []*v1beta1.Cluster
	// Policies of all namespaces.
	Policies []*v1beta1.PlacementPolicy
	// Ledger has the room in the clusters: at first as they report it. A caller that decides one object after another
	// takes each decision from it: see Take.
	Ledger *apportion.Ledger
	// Grace applies to a cluster that is not ready and has no failover state: how long its replicas stay placed there.
	// 0 means for ever.
	Grace time.Duration
	// SecretsEverywhere: Secrets and ServiceAccounts without a policy go to every cluster, not only where their
	// referrers go.
	SecretsEverywhere bool
	// Terse omits the reasons.
	Terse bool

	byNamespace map[string][]*policy // the winning one first
	lost        map[string]bool      // clusters that lose what they have, unless it is tolerated
	stuck       map[stuckKey]v1beta1.UnschedulablePods
	groups      []group        // of Clusters, by index
	index       map[string]int // of Clusters, by name
}

type stuckKey struct{ cluster, kind, namespace, name string }

type group struct{ zone, region string }

// policy is a parsed PlacementPolicy.
type policy struct {
	*v1beta1.PlacementPolicy
	selectors []labels.Selector // of spec.resourceSelectors; nil without one
	hash      string            // of what decisions depend on
	once      sync.Once
	refusals  map[string]string // by cluster: why spec.clusters does not select it
	ranking   sync.Once
	ranked    []string       // the clusters in the policy's order,
	position  map[string]int // and where each is in that
}

// NewWorld parses clusters and policies. It does not change them.
func NewWorld(clusters []*v1beta1.Cluster, policies []*v1beta1.PlacementPolicy) *World {
	w := &World{
		Clusters: slices.Clone(clusters), Policies: policies, Ledger: apportion.NewLedger(clusters),
		byNamespace: map[string][]*policy{}, lost: map[string]bool{}, stuck: map[stuckKey]v1beta1.UnschedulablePods{}, index: make(map[string]int, len(clusters)),
	}
	slices.SortFunc(w.Clusters, func(a, b *v1beta1.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	for i, c := range w.Clusters {
		w.index[c.Name] = i
		w.groups = append(w.groups, group{apportion.ZoneOf(c), c.Status.Region})
		w.lost[c.Name] = c.Phase() == v1beta1.PhaseFailedOver || evicts(c)
		for _, u := range unschedulable(c) {
			w.stuck[stuckIn(c, &u)] = u
		}
	}
	for _, p := range policies {
		w.byNamespace[p.Namespace] = append(w.byNamespace[p.Namespace], readPolicy(p))
	}
	for _, list := range w.byNamespace {
		slices.SortFunc(list, func(a, b *policy) int {
			return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), cmp.Compare(a.Name, b.Name))
		})
	}
	return w
}

// unschedulable returns the pods that a cluster reports as unschedulable.
func unschedulable(c *v1beta1.Cluster) []v1beta1.UnschedulablePods {
	if c.Status.Capacity == nil {
		return nil
	}
	return c.Status.Capacity.Unschedulable
}

func stuckIn(c *v1beta1.Cluster, u *v1beta1.UnschedulablePods) stuckKey {
	return stuckKey{c.Name, u.Kind, u.Namespace, u.Name}
}

func readPolicy(p *v1beta1.PlacementPolicy) *policy {
	out := &policy{PlacementPolicy: p, selectors: make([]labels.Selector, len(p.Spec.ResourceSelectors))}
	for i, r := range p.Spec.ResourceSelectors {
		if r.LabelSelector == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(r.LabelSelector)
		if err != nil {
			selector = labels.Nothing() // admission rejects it
		}
		out.selectors[i] = selector
	}
	s := p.Spec
	of := []any{s.Clusters, s.SpreadConstraints, s.ReplicaPreferences, s.Tolerations, s.Failover}
	if s.WorkloadAffinity != "" {
		of = append(of, s.WorkloadAffinity)
	}
	out.hash = hashOf(of...)
	return out
}

// hashOf returns a short hash of values that JSON can encode.
func hashOf(values ...any) string {
	h := fnv.New32a()
	if err := json.NewEncoder(h).Encode(values); err != nil {
		return err.Error() // cannot happen: these values came from JSON
	}
	return fmt.Sprintf("%08x", h.Sum32())
}

// refuses returns why the policy does not select a cluster, or "".
func (p *policy) refuses(cluster string, all []*v1beta1.Cluster) string {
	p.once.Do(func() {
		p.refusals = map[string]string{}
		for _, c := range all {
			if why := p.Spec.Clusters.Refuses(c); why != "" {
				p.refusals[c.Name] = fmt.Sprintf("not selected by the policy %s: %s", p.Name, why)
			}
		}
	})
	return p.refusals[cluster]
}

// Policy returns the policy that governs an object: of those in its namespace that select it, the one with the highest
// priority, then the first by name. Nil if there is none.
func (w *World) Policy(o *Object) *v1beta1.PlacementPolicy {
	if p := w.policyOf(o); p != nil {
		return p.PlacementPolicy
	}
	return nil
}

func (w *World) policyOf(o *Object) *policy {
	for _, p := range w.byNamespace[o.Namespace] {
		for i := range p.Spec.ResourceSelectors {
			if p.selects(i, o) {
				return p
			}
		}
	}
	return nil
}

func (p *policy) selects(i int, o *Object) bool {
	r := &p.Spec.ResourceSelectors[i]
	return r.Kind == o.Kind && r.APIVersion == o.APIVersion && (len(r.Names) == 0 || slices.Contains(r.Names, o.Name)) &&
		(p.selectors[i] == nil || p.selectors[i].Matches(labels.Set(o.Labels)))
}

// Selects reports whether an object may be in a cluster: the cluster is for its namespace, and its annotations and
// policy select the cluster.
func (w *World) Selects(o *Object, c *v1beta1.Cluster) bool {
	wants := wantsOf(o, w)
	return wants.refuses(o.Namespace, c, w) == ""
}

// TakesReferences reports whether any policy of a namespace takes along what workloads refer to.
func (w *World) TakesReferences(namespace string) bool {
	return slices.ContainsFunc(w.byNamespace[namespace], func(p *policy) bool { return p.Spec.PropagateReferences })
}

// Cluster returns the cluster with a name; nil if there is none.
func (w *World) Cluster(name string) *v1beta1.Cluster {
	if i, known := w.index[name]; known {
		return w.Clusters[i]
	}
	return nil
}

// Recount counts the room in a cluster as it reports it now. Only its room may differ from before. It returns false if this is the report that counts
// already, or the cluster is unknown.
func (w *World) Recount(c *v1beta1.Cluster) bool {
	i, known := w.index[c.Name]
	if !known || w.Clusters[i] == c {
		return false
	}
	for _, u := range unschedulable(w.Clusters[i]) {
		delete(w.stuck, stuckIn(c, &u))
	}
	for _, u := range unschedulable(c) {
		w.stuck[stuckIn(c, &u)] = u
	}
	w.Clusters[i] = c
	w.Ledger.Reset(c)
	return true
}

func (w *World) knows(cluster string) bool {
	_, known := w.index[cluster]
	return known
}

// Take takes from the ledger what a decision adds to clusters.
func (w *World) Take(o *Object, d *Decision) {
	if !w.Ledger.Limits() || !o.Divided {
		return
	}
	demand := w.Ledger.Demand(o.Requests())
	for cluster, n := range d.Placement.Clusters {
		if before := o.At(cluster); n > before {
			w.Ledger.Take(cluster, demand, n-before)
		}
	}
}

// Usability returns what decisions depend on of a cluster, except its room, as a comparable string.
func Usability(c *v1beta1.Cluster) string {
	f := v1beta1.ClusterFailover{}
	if c.Status.Failover != nil {
		f = *c.Status.Failover
	}
	return fmt.Sprint(c.IsReady(), c.Condition(v1beta1.ClusterReady) == nil, c.Labels, c.Spec.Taints, c.Spec.AllowedNamespaces, f.Phase, f.Percent, f.LostAt, c.Status.Zones, c.Status.Region)
}
