package health

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// lastEqual counts the last elements that a condition holds for.
func lastEqual(all []Answer, is func(Answer) bool) (n int) {
	for i := len(all) - 1; i >= 0 && is(all[i]); i-- {
		n++
	}
	return n
}

// TestJudgeAgainstTheWholeHistory says of each moment by all answers up to it what a Cluster's conditions are, and since when.
func TestJudgeAgainstTheWholeHistory(t *testing.T) {
	certain := func(a Answer) bool { return a == Healthy || a == Misconfigured || a == ExceedsLimits || a == Duplicate }
	p := DefaultPolicy()
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var s State
		var answers []Answer
		ready, since, reasons := corev1.ConditionUnknown, time.Time{}, 0
		usual := Answer(r.IntN(int(Misconfigured) + 1))
		for i := range 60 {
			now := start.Add(time.Duration(i) * time.Second)
			a := []Answer{Healthy, usual, usual, Answer(r.IntN(int(Misconfigured) + 1))}[r.IntN(4)]
			answers = append(answers, a)
			bad := lastEqual(answers, func(a Answer) bool { return a != Healthy })
			same := lastEqual(answers, func(b Answer) bool { return a == b })
			convinced := certain(a) || ready == corev1.ConditionFalse && same >= p.Settle || ready != corev1.ConditionFalse && bad >= map[bool]int{true: p.SlowThreshold, false: p.Threshold}[a == Slow]
			v := Judge(s, Evidence{Answer: a, Detail: "why"}, p, now)
			before := findCondition(s.Conditions, v1beta1.ClusterReady)
			if convinced {
				is := corev1.ConditionFalse
				if a == Healthy {
					is = corev1.ConditionTrue
				}
				if is != ready {
					ready, since = is, now
				}
			}
			if s = v.State; status(s.Conditions, v1beta1.ClusterReady) != ready || s.Ready() != (ready == corev1.ConditionTrue) {
				t.Fatalf("seed %d: after %v: %s, want %s", seed, answers, status(s.Conditions, v1beta1.ClusterReady), ready)
			}
			if lost := s.LostSince(); ready == corev1.ConditionFalse && !lost.Equal(since) || ready != corev1.ConditionFalse && !lost.IsZero() {
				t.Fatalf("seed %d: after %v: %s, lost since %s, want %s", seed, answers, ready, lost, since)
			}
			after := findCondition(s.Conditions, v1beta1.ClusterReady)
			changed := after != nil && (before == nil || before.Status != after.Status || before.Reason != after.Reason)
			if changed != (v.Transition != nil) {
				t.Fatalf("seed %d: after %v: %+v was %+v, but the transition returned is %+v", seed, answers, after, before, v.Transition)
			}
			if changed {
				reasons++
			}
			if wait := map[bool]time.Duration{true: p.Retry, false: p.Period}[!convinced && ready != corev1.ConditionFalse]; v.Next != wait {
				t.Fatalf("seed %d: after %v: the next check is in %s, want %s", seed, answers, v.Next, wait)
			}
			if after != nil && after.Reason != conditions(Evidence{Answer: a})[0].Reason && convinced {
				t.Fatalf("seed %d: after %v: %s", seed, answers, after.Reason)
			}
		}
		if reasons == 0 {
			t.Fatalf("seed %d: no transition was ever returned", seed)
		}
	}
}

// TestUnclearAnswersSayNothingOfWhatRunsThere: a cluster that is gone, slow or not well is; what our own credentials and settings are to blame for is not.
func TestUnclearAnswersSayNothingOfWhatRunsThere(t *testing.T) {
	for a := Healthy; a <= Misconfigured; a++ {
		reason := conditions(Evidence{Answer: a})[0].Reason
		clear := reason == v1beta1.ReasonClusterReady || reason == v1beta1.ReasonClusterNotReady || reason == v1beta1.ReasonClusterNotReachable
		if a.Unclear() == clear {
			t.Errorf("%s: unclear %t", reason, a.Unclear())
		}
	}
}

// TestOneOfAllNamesIsUsed: of Clusters that are one cluster exactly one is used, all others name it, in whatever order they are read; and those of other
// clusters make no difference.
func TestOneOfAllNamesIsUsed(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 2))
		var all, same []*v1beta1.Cluster
		for i := range 1 + r.IntN(6) {
			c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i), CreationTimestamp: metav1.NewTime(start.Add(time.Duration(r.IntN(3)) * time.Second))}}
			if c.Status.UID = []string{"x", "x", "y", ""}[r.IntN(4)]; c.Status.UID == "x" {
				same = append(same, c)
			}
			if r.IntN(2) == 0 {
				c.Status.Conditions = conditions([]Evidence{{Answer: Healthy}, DuplicateEvidence("other", "x"), {Answer: Unreachable}}[r.IntN(3)])
			}
			all = append(all, c)
		}
		used := ""
		for range 2 {
			names := map[string]int{}
			for _, c := range same {
				if other := DuplicateOf(c, "x", all); other != "" {
					names[other]++
				} else {
					used = c.Name
				}
			}
			if len(same) > 0 && (len(names) > 1 || names[used] != len(same)-1) {
				t.Fatalf("seed %d: of %d names %s is used, and others name %v", seed, len(same), used, names)
			}
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		if others := DuplicateOf(&v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "new", CreationTimestamp: metav1.NewTime(start.Add(-time.Hour))}}, "x", all); others == "" && slices.ContainsFunc(same, func(c *v1beta1.Cluster) bool { return !isDuplicate(c) }) {
			t.Fatalf("seed %d: a new name, though older, is used beside %s", seed, used)
		}
	}
}

// TestWhatIsReportedIsRestored: a process that begins knows of a status what the one before it knew, beside what others have written there; each condition
// says since when it is so; and a write is asked for only where something else than a time has changed.
func TestWhatIsReportedIsRestored(t *testing.T) {
	said := func(s v1beta1.ClusterStatus) (all []string) {
		for _, c := range OwnConditions(s.Conditions) {
			all = append(all, fmt.Sprint(c.Type, c.Status, c.Reason, c.Message))
		}
		slices.Sort(all)
		return all
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		var s State
		var written v1beta1.ClusterStatus
		connected, since := false, metav1.Time{}
		for i := range 40 {
			s = Judge(s, Evidence{Answer: []Answer{Healthy, Healthy, Unreachable}[r.IntN(3)], Detail: "why"}, DefaultPolicy(), start.Add(time.Duration(i)*time.Second)).State
			probed := metav1.Time{}
			if ready := findCondition(s.Conditions, v1beta1.ClusterReady); ready != nil {
				probed = ready.LastProbeTime
			}
			if flips := r.IntN(4) == 0; i == 0 || flips {
				connected, since = connected != flips, probed
			}
			s.Agent, s.Heartbeats = new(AgentCondition("v1.0", connected)), nil
			if r.IntN(3) == 0 {
				s.Heartbeats = new(condition(v1beta1.ClusterNodeHeartbeatsStale, corev1.ConditionTrue, v1beta1.ReasonLeasesNotRenewed, "1 of 2"))
			}
			next, changed := Report(written, nil, s, []*Inventory{nil, {}, {Unfenced: true}}[r.IntN(3)])
			if changed == slices.Equal(said(next), said(written)) {
				t.Fatalf("seed %d, check %d: a write is asked for: %t; %q, and %q is there", seed, i, changed, said(next), said(written))
			}
			agent := findCondition(next.Conditions, v1beta1.ClusterAgentConnected)
			if (agent.Status == corev1.ConditionTrue) != connected || !agent.LastTransitionTime.Equal(&since) {
				t.Fatalf("seed %d, check %d: the agent is connected: %t since %s: %+v", seed, i, connected, since, agent)
			}
			written = next
			r.Shuffle(len(written.Conditions), func(i, j int) {
				written.Conditions[i], written.Conditions[j] = written.Conditions[j], written.Conditions[i]
			})
			again := Restore(append([]v1beta1.ClusterCondition{{Type: v1beta1.ClusterDrill, Status: corev1.ConditionTrue}}, written.Conditions...))
			if again.Ready() != s.Ready() || !again.LostSince().Equal(s.LostSince()) || len(again.Conditions) != len(s.Conditions) || (again.Heartbeats == nil) != (s.Heartbeats == nil) {
				t.Fatalf("seed %d, check %d: %+v is restored of %+v", seed, i, again, s)
			}
			if again.Heartbeats != nil && *again.Heartbeats != *s.Heartbeats {
				t.Fatalf("seed %d, check %d: %+v is restored of %+v", seed, i, again.Heartbeats, s.Heartbeats)
			}
		}
	}
}
