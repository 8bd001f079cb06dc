package plan

import (
	"cmp"
	"slices"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// Verdict is the decision about one cluster.
type Verdict struct {
	// Cluster is the cluster's name.
	Cluster string
	// Failover is its next status.failover. Nil for a cluster that was never ready: there is nothing to fail over.
	Failover *v1beta1.ClusterFailover
	// Conditions are its next FailedOver and FailoverSuspended, and PartiallyReachable where it applies. None if
	// Failover is nil.
	Conditions []v1beta1.ClusterCondition
	// Changed means that the Cluster does not say this yet.
	Changed bool
	// Event is to be emitted; nil if there is none.
	Event *Event
	// LookAgain is how long the verdict holds if nothing else changes; 0 means for ever.
	LookAgain time.Duration
}

// Event is an event about a cluster.
type Event struct {
	// Warning is false for good news.
	Warning bool
	// Reason is one word, Message a sentence.
	Reason, Message string
}

// Decide judges all clusters together. The verdicts are sorted by cluster; clusters that are leaving have none.
func Decide(clusters []*v1beta1.Cluster, s Settings, now time.Time) []Verdict {
	members := observeEach(clusters, s, now)
	failOver(members, s)
	slices.SortFunc(members, func(a, b *member) int { return cmp.Compare(a.Name, b.Name) })
	verdicts := make([]Verdict, len(members))
	for i, m := range members {
		verdicts[i] = m.verdict()
	}
	return verdicts
}

// observeEach returns the clusters, each judged on its own.
func observeEach(clusters []*v1beta1.Cluster, s Settings, now time.Time) []*member {
	members := make([]*member, 0, len(clusters))
	s.Others = othersWhoSee(s.Others, clusters)
	for _, c := range clusters {
		if c.DeletionTimestamp == nil {
			m := &member{Cluster: c, settings: s, now: now}
			m.observe()
			m.step()
			members = append(members, m)
		}
	}
	return members
}

// CutOff returns the names of the clusters that are lost and would be suspended as ReasonFailStatic says, whether or
// not their grace period is over: they vanished together with most others, or none is left. It does not return clusters
// that are already failed over.
func CutOff(clusters []*v1beta1.Cluster, s Settings, now time.Time) map[string]bool {
	names := map[string]bool{}
	for m := range heldAsCutOff(observeEach(clusters, s, now), s) {
		if !m.isOut() {
			names[m.Name] = true
		}
	}
	return names
}

// WhySuspended returns why not all of the named clusters would be failed over if they were lost now for long; "" if nothing
// would suspend it.
func WhySuspended(clusters []*v1beta1.Cluster, lost []string, s Settings, now time.Time) string {
	s.Seen = now
	then := make([]*v1beta1.Cluster, len(clusters))
	for i, c := range clusters {
		then[i] = c
		switch {
		case !slices.Contains(lost, c.Name):
		case c.Phase() != v1beta1.PhaseFailedOver:
			then[i] = markLost(c, now)
		case Drilled(c): // the drill ends with the real loss
			then[i] = c.DeepCopy()
			then[i].Status.Conditions = slices.DeleteFunc(then[i].Status.Conditions, func(is v1beta1.ClusterCondition) bool { return is.Type == v1beta1.ClusterDrill })
		}
	}
	for _, v := range Decide(then, s, now.Add(s.GracePeriod)) {
		if v.Failover != nil && v.Failover.Phase == v1beta1.PhaseFailoverSuspended && slices.Contains(lost, v.Cluster) {
			return v.Failover.Message
		}
	}
	return ""
}

// markLost returns the cluster as unreachable from now on.
func markLost(c *v1beta1.Cluster, now time.Time) *v1beta1.Cluster {
	c = c.DeepCopy()
	at := storedTime(now)
	c.Status.Conditions = []v1beta1.ClusterCondition{newCondition(v1beta1.ClusterReady, false, v1beta1.ReasonClusterNotReachable, "", at)}
	c.Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseGracePeriod, Since: at, LostAt: &at}
	return c
}
