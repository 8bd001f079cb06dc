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

// seating is what each cluster may have of one object.
type seating struct {
	*question
	with          *together     // where the others of its policy are, if they are to be together
	seats         []candidate   // the selected clusters, by name
	left          []string      // notes on what stays in clusters that are not selected
	stranded      bool          // no cluster can be used
	leavesNowhere int64         // replicas that should leave their clusters, and stay for that
	until         time.Duration // how long that holds; 0 is for ever
	reasons       reasons
}

// seatAll finds the selected clusters, and what each may have.
func (s *seating) seatAll() {
	demand, rules := apportion.Demand{}, s.rules()
	if s.o.Divided && s.w.Ledger.Limits() {
		demand = s.w.Ledger.Demand(s.o.Requests())
	}
	s.gather()
	s.seats = make([]candidate, 0, len(s.w.Clusters))
	for i, cluster := range s.w.Clusters {
		if why := s.wants.refuses(s.o.Namespace, cluster, s.w); why != "" {
			s.reasons.add(cluster.Name, why)
			continue
		}
		s.seats = append(s.seats, candidate{cluster: cluster, group: s.w.groups[i], last: s.o.At(cluster.Name)})
		c := &s.seats[len(s.seats)-1]
		if why := s.keepsApart(c); why != "" {
			s.seats = s.seats[:len(s.seats)-1]
			s.reasons.add(cluster.Name, why)
			continue
		}
		rules.apply(c)
		if s.o.Divided {
			s.applyCapacity(c, demand)
		} else {
			s.enterOrStay(c)
		}
		if c.until > 0 && (s.until == 0 || c.until < s.until) {
			s.until = c.until
		}
		s.introduce(c)
	}
	s.addDepartedClusters()
	s.keepStranded()
}

func (s *seating) rules() *useRules { return &useRules{wants: &s.wants, grace: s.w.Grace, now: s.now} }

// gather finds where the object's policy keeps all that it governs, if it does.
func (s *seating) gather() {
	p := s.wants.policy
	if p == nil || p.Spec.WorkloadAffinity != v1beta1.WorkloadAffinityRequired {
		return
	}
	t := s.w.keepTogether(p, s.now)
	if s.until = t.until; len(t.clusters) > 0 { // otherwise all stays where it is
		s.with = &t
	}
}

// keepsApart returns why an object may not be in a cluster: the others of its policy are elsewhere. What has volumes there stays, and
// says so.
func (s *seating) keepsApart(c *candidate) string {
	if s.with == nil || slices.Contains(s.with.clusters, c.cluster.Name) {
		return ""
	}
	if s.o.Volumes && s.wants.failover.Disabled && c.last > 0 {
		c.restrict(keeps, s.wants.stay)
		s.left = append(s.left, fmt.Sprintf("%s in cluster %s cannot be together with the others of policy %s: %s", phrase.Count(c.last, "replica"), c.cluster.Name, s.wants.policyName(), s.wants.stay))
		return ""
	}
	return s.with.reason()
}

// addDepartedClusters seats the clusters that have left the federation with replicas and their volumes: these are not started on empty
// volumes elsewhere unless a policy asks for failover.
func (s *seating) addDepartedClusters() {
	if s.o.Current == nil || !s.o.Divided || !s.o.Volumes || !s.wants.failover.Disabled {
		return
	}
	for _, name := range sortedNames(s.o.Current.Clusters) {
		if slices.ContainsFunc(s.w.Clusters, func(c *v1beta1.Cluster) bool { return c.Name == name }) {
			continue
		}
		c := candidate{cluster: &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}, last: s.o.At(name), percent: 100, lost: true}
		c.restrict(keeps, "it has left the federation, but "+s.wants.stay)
		s.seats = append(s.seats, c)
		s.left = append(s.left, fmt.Sprintf("%s in cluster %s, which has left the federation: %s", phrase.Subject(c.last, "replica", "stays", "stay"), name, s.wants.stay))
		s.introduce(&c)
	}
}

// keepStranded lets all clusters keep what they have if none can be used.
func (s *seating) keepStranded() {
	if slices.ContainsFunc(s.seats, func(c candidate) bool { return c.use == usable }) {
		return
	}
	s.stranded = true
	for i := range s.seats {
		if s.seats[i].use == out {
			s.leavesNowhere += s.seats[i].last
		}
		s.seats[i].use = min(s.seats[i].use, keeps)
	}
}

// introduce gives the reasons for what a cluster may have.
func (s *seating) introduce(c *candidate) {
	if s.reasons == nil {
		return
	}
	name := c.cluster.Name
	s.reasons.add(name, s.wants.selected(c.cluster)...)
	s.reasons.add(name, s.rules().toleratedTaints(c.cluster)...)
	if s.with != nil && slices.Contains(s.with.clusters, name) {
		s.reasons.add(name, s.with.reason())
	}
	if c.because != "" {
		s.reasons.add(name, c.because)
	}
	if c.stuck > c.unmade {
		s.reasons.add(name, withWords(phrase.Subject(c.stuck-c.unmade, "pod", "there has", "there have")+" been unschedulable", c.says))
	}
	if c.unmade > 0 {
		s.reasons.add(name, phrase.Count(c.unmade, "pod")+" cannot be created there")
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
func (s *seating) enterOrStay(c *candidate) {
	moves := slices.ContainsFunc(s.wants.spread, func(b v1beta1.SpreadConstraint) bool { return b.MaxGroups != nil })
	c.percent = 100
	lost := c.cluster.Phase() != v1beta1.PhaseServing || !c.cluster.IsReady()
	switch {
	case !lost && c.use == out && builtIn(s.o) && !rowOf(s.o).Runs:
		c.use = keeps
	case lost && !moves && len(c.cluster.Spec.Taints) == 0:
		c.use, c.because = usable, ""
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
func (s *seating) applyCapacity(c *candidate, demand apportion.Demand) {
	asked := c.last
	if s.o.Current != nil {
		asked += s.o.Current.Overflow[c.cluster.Name]
	}
	c.unmade = s.o.uncreatedPods(c.cluster.Name, asked)
	pods := s.w.stuck[stuckKey{c.cluster.Name, s.o.Kind, s.o.Namespace, s.o.Name}]
	c.stuck, c.says = int64(pods.Pods)+c.unmade, pods.Message
	if s.o.Whole && c.last > 0 {
		return // its pods wait for room there, as they would if there were no other cluster
	}
	room, known := s.w.Ledger.Room(c.cluster.Name, demand)
	if !known && c.stuck == 0 {
		return
	}
	most := c.last + room
	c.capacityStale = !known || room > 0 || asked > c.last
	switch {
	case c.stuck > 0:
		most = c.last
		if s.isOlderThan(c, reportSettles) {
			most = max(0, asked-c.stuck)
		}
	case asked > c.last && c.use == usable && s.isOlderThan(c, overflowSettles):
		most = asked + room
	}
	c.room = &most
}

// isOlderThan reports whether the last decision is older than age. If not, the decision is repeated when it is.
func (s *seating) isOlderThan(c *candidate, age time.Duration) bool {
	if s.o.Current == nil || len(s.o.Current.History) == 0 {
		return true
	}
	left := s.o.Current.History[0].At.Add(age).Sub(s.now)
	c.lookAgain(left)
	return left <= 0
}
