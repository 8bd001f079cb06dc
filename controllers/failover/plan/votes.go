package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Statement is what another process of the federation reports of clusters that somebody judges lost.
type Statement struct {
	// Lost are the clusters that it judges lost, Well those that answer it.
	Lost, Well []string
}

// Found returns which clusters this process finds healthy by its own latest probes. It knows nothing of clusters that
// are missing.
func Found(probes map[string]Probe, age time.Duration, now time.Time) map[string]bool {
	found := map[string]bool{}
	for cluster, p := range probes {
		switch {
		case now.Sub(p.At) > age:
		case p.Healthy && p.LostSince.IsZero():
			found[cluster] = true
		case !p.Healthy && !p.LostSince.IsZero() && !p.Unclear:
			found[cluster] = false
		}
	}
	return found
}

// votes are the statements of the federation's processes about a cluster.
type votes struct {
	well, lost int
	// silent is the number of processes without a statement about it.
	silent int
	// without are the other processes that do not reach it, sorted.
	without []string
}

// answerTime is how long other processes take to answer when one judges a cluster lost: two renewals of their Leases,
// and their latency.
const answerTime = 6 * time.Second

// countVotes counts the votes. A cluster that this process judges lost is unclear while at least half of the processes that
// know it reach it.
func (m *member) countVotes() {
	if m.settings.Others == nil {
		if m.evidence == lost && m.IsReached() {
			m.evidence, m.unclearFor = unclear, ReasonPartiallyReachable
		}
		return
	}
	for _, process := range slices.Sorted(maps.Keys(m.settings.Others)) {
		switch said := m.settings.Others[process]; {
		case slices.Contains(said.Lost, m.Name):
			m.lost++
			m.without = append(m.without, process)
		case slices.Contains(said.Well, m.Name):
			m.well++
		default:
			m.silent++
		}
	}
	switch m.evidence {
	case well:
		m.well++
	case lost:
		if m.lost++; m.well >= m.lost {
			m.evidence, m.unclearFor = unclear, ReasonPartiallyReachable
		}
	}
}

// othersWhoSee returns the statements of other processes, without those that judge more than half of the clusters lost.
// Such a process is more likely cut off itself, or was just stopped for a while, and knows nothing of any cluster.
func othersWhoSee(others map[string]Statement, clusters []*v1beta1.Cluster) map[string]Statement {
	out := maps.Clone(others)
	maps.DeleteFunc(out, func(_ string, said Statement) bool {
		lost := 0
		for _, c := range clusters {
			if slices.Contains(said.Lost, c.Name) {
				lost++
			}
		}
		return 2*lost > len(clusters)
	})
	return out
}

// votesPending reports whether other processes may still have to answer about a cluster that this process has judged lost
// since then.
func (m *member) votesPending(since time.Time) bool {
	return m.silent > 0 && m.now.Sub(since) < answerTime
}

// partiallyReachable returns the condition that some processes reach the cluster and others do not, or nil.
func (m *member) partiallyReachable() *v1beta1.ClusterCondition {
	was := m.Condition(v1beta1.ClusterPartiallyReachable)
	switch {
	case m.settings.Others == nil:
		return was
	case m.well == 0 || m.lost == 0:
		return nil
	}
	reason, message := m.whoReaches()
	c := newCondition(v1beta1.ClusterPartiallyReachable, true, reason, message, storedTime(m.now))
	if was != nil && was.Status == corev1.ConditionTrue {
		c.LastTransitionTime = was.LastTransitionTime
	}
	return &c
}

// maxWithout is how many processes without a connection a message names.
const maxWithout = 3

func (m *member) whoReaches() (reason, message string) {
	without := strings.Join(m.without[:min(len(m.without), maxWithout)], ", ")
	if more := len(m.without) - maxWithout; more > 0 {
		without += fmt.Sprintf(" and %d more", more)
	}
	if without != "" {
		without = " (" + without + ")"
	}
	all := m.well + m.lost
	switch {
	case m.unclearFor == ReasonPartiallyReachable:
		return v1beta1.ReasonReachableByMajority, fmt.Sprintf("%d of %d processes of the federation reach it, and the one that leads does not: nothing is moved, and objects of processes that do not reach it are not written there", m.well, all)
	case m.evidence == lost:
		return v1beta1.ReasonReachableByMinority, fmt.Sprintf("only %d of %d processes of the federation reach it: it counts as lost", m.well, all)
	default:
		return v1beta1.ReasonReachableByLeader, fmt.Sprintf("%d of %d processes of the federation do not reach it%s: objects that are theirs are not written there", m.lost, all, without)
	}
}
