package scheduler

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	"federation/scheduler/apportion"
)

// findCandidates finds the selected clusters, and what each may have.
func (d *deciding) findCandidates() {
	d.demand = apportion.Demand{}
	if d.o.Divided && d.w.Ledger.Limits() {
		d.demand = d.w.Ledger.Demand(d.o.Requests())
	}
	d.gather()
	d.seats = make([]candidate, 0, len(d.w.Clusters))
	for i, c := range d.w.Clusters {
		if why := d.wants.refuses(d.o.Namespace, c, d.w); why != "" {
			d.explain(c.Name, why)
			continue
		}
		d.seats = append(d.seats, candidate{cluster: c, group: d.w.groups[i], last: d.o.At(c.Name)})
		s := &d.seats[len(d.seats)-1]
		if why := d.keepsApart(s); why != "" {
			d.seats = d.seats[:len(d.seats)-1]
			d.explain(c.Name, why)
			continue
		}
		d.applyConstraints(s)
		if d.o.Divided {
			d.applyCapacity(s)
		} else {
			d.enterOrStay(s)
		}
		if s.until > 0 && (d.result.LookAgain == 0 || s.until < d.result.LookAgain) {
			d.result.LookAgain = s.until
		}
		d.introduceCandidate(s)
	}
	d.addDepartedClusters()
	d.keepStranded()
}

// gather finds where the object's policy keeps all that it governs, if it does.
func (d *deciding) gather() {
	p := d.wants.policy
	if p == nil || p.Spec.WorkloadAffinity != v1beta1.WorkloadAffinityRequired {
		return
	}
	t := d.w.keepTogether(p, d.now)
	if d.result.LookAgain = t.until; len(t.clusters) > 0 { // otherwise all stays where it is
		d.with, d.result.Together = &t, t.clusters
	}
}

// keepsApart returns why an object may not be in a cluster: the others of its policy are elsewhere. What has volumes there stays, and
// says so.
func (d *deciding) keepsApart(s *candidate) string {
	if d.with == nil || slices.Contains(d.with.clusters, s.cluster.Name) {
		return ""
	}
	if d.o.Volumes && d.wants.failover.Disabled && s.last > 0 {
		s.restrict(keeps, d.wants.stay)
		d.left = append(d.left, fmt.Sprintf("%s in cluster %s cannot be together with the others of policy %s: %s", phrase.Count(s.last, "replica"), s.cluster.Name, d.wants.policyName(), d.wants.stay))
		return ""
	}
	return d.isTogether()
}

// addDepartedClusters seats the clusters that have left the federation with replicas and their volumes: these are not started on empty
// volumes elsewhere unless a policy asks for failover.
func (d *deciding) addDepartedClusters() {
	if d.o.Current == nil || !d.o.Divided || !d.o.Volumes || !d.wants.failover.Disabled {
		return
	}
	for _, name := range sortedNames(d.o.Current.Clusters) {
		if slices.ContainsFunc(d.w.Clusters, func(c *v1beta1.Cluster) bool { return c.Name == name }) {
			continue
		}
		s := candidate{cluster: &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}, last: d.o.At(name), percent: 100, lost: true}
		s.restrict(keeps, "it has left the federation, but "+d.wants.stay)
		d.seats = append(d.seats, s)
		d.left = append(d.left, fmt.Sprintf("%s in cluster %s, which has left the federation: %s", phrase.Subject(s.last, "replica", "stays", "stay"), name, d.wants.stay))
		d.introduceCandidate(&s)
	}
}

// keepStranded lets all clusters keep what they have if none can be used.
func (d *deciding) keepStranded() {
	if slices.ContainsFunc(d.seats, func(s candidate) bool { return s.use == usable }) {
		return
	}
	d.stranded = true
	for i := range d.seats {
		if d.seats[i].use == out {
			d.result.Stranded += d.seats[i].last
		}
		d.seats[i].use = min(d.seats[i].use, keeps)
	}
}

func (d *deciding) introduceCandidate(s *candidate) {
	if d.quiet {
		return
	}
	for _, why := range append(d.wants.selected(s.cluster), d.tolerated(s.cluster)...) {
		d.explain(s.cluster.Name, why)
	}
	if d.with != nil && slices.Contains(d.with.clusters, s.cluster.Name) {
		d.explain(s.cluster.Name, d.isTogether())
	}
	if s.because != "" {
		d.explain(s.cluster.Name, s.because)
	}
	if s.stuck > s.unmade {
		d.explain(s.cluster.Name, withWords(phrase.Subject(s.stuck-s.unmade, "pod", "there has", "there have")+" been unschedulable", s.says))
	}
	if s.unmade > 0 {
		d.explain(s.cluster.Name, phrase.Count(s.unmade, "pod")+" cannot be created there")
	}
}

// withWords appends the cluster's own message to a reason.
func withWords(reason, says string) string {
	if says == "" {
		return reason
	}
	return reason + ": " + says
}

// enterOrStay lets an undivided object stay in, or enter, a cluster where its absence would gain nothing.
func (d *deciding) enterOrStay(s *candidate) {
	moves := slices.ContainsFunc(d.wants.spread, func(c v1beta1.SpreadConstraint) bool { return c.MaxGroups != nil })
	s.percent = 100
	lost := s.cluster.Phase() != v1beta1.PhaseServing || !s.cluster.IsReady()
	switch {
	case !lost && s.use == out && builtIn(d.o) && !rowOf(d.o).Runs:
		s.use = keeps
	case lost && !moves && len(s.cluster.Spec.Taints) == 0:
		s.use, s.because = usable, ""
	}
}

// How old a decision must be
const (
	// … so that its pods run unless they are reported as unschedulable, which takes 60 s.
	overflowSettles = 75 * time.Second
	// … so that a cluster's report includes it.
	reportSettles = 30 * time.Second
)

// applyCapacity sets the most that a cluster can hold of the object: what is there and can run, plus the free room. If pods
// of the object are unschedulable, or cannot be created, there is no room, whatever the sums say.
func (d *deciding) applyCapacity(s *candidate) {
	asked := s.last
	if d.o.Current != nil {
		asked += d.o.Current.Overflow[s.cluster.Name]
	}
	s.unmade = d.o.uncreatedPods(s.cluster.Name, asked)
	pods := d.w.stuck[stuckKey{s.cluster.Name, d.o.Kind, d.o.Namespace, d.o.Name}]
	s.stuck, s.says = int64(pods.Pods)+s.unmade, pods.Message
	if d.o.Whole && s.last > 0 {
		return // its pods wait for room there, as they would if there were no other cluster
	}
	room, known := d.w.Ledger.Room(s.cluster.Name, d.demand)
	if !known && s.stuck == 0 {
		return
	}
	most := s.last + room
	s.capacityStale = !known || room > 0 || asked > s.last
	switch {
	case s.stuck > 0:
		most = s.last
		if d.isOlderThan(s, reportSettles) {
			most = max(0, asked-s.stuck)
		}
	case asked > s.last && s.use == usable && d.isOlderThan(s, overflowSettles):
		most = asked + room
	}
	s.room = &most
}

// isOlderThan reports whether the last decision is older than age. If not, the decision is repeated when it is.
func (d *deciding) isOlderThan(s *candidate, age time.Duration) bool {
	if d.o.Current == nil || len(d.o.Current.History) == 0 {
		return true
	}
	left := d.o.Current.History[0].At.Add(age).Sub(d.now)
	s.lookAgain(left)
	return left <= 0
}
