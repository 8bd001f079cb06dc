package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// say sets what other processes report of a cluster: "+" healthy, "-" lost, "!" most are lost, "." nothing.
func (f *fleet) say(cluster, votes string) {
	f.settings.Others = map[string]Statement{}
	for i, vote := range strings.Split(votes, "") {
		s := Statement{}
		switch vote {
		case "+":
			s.Well = []string{"else", cluster}
		case "-":
			s.Lost = []string{"else", cluster}
		case "!":
			s.Lost = []string{"a", "b"}
		}
		f.settings.Others[fmt.Sprintf("process-%d", i+2)] = s
	}
}

// partly returns the reason of PartiallyReachable, or "".
func (f *fleet) partly(cluster string) string {
	if c := f.get(cluster).Condition(v1beta1.ClusterPartiallyReachable); c != nil {
		return c.Reason
	}
	return ""
}

// The leader does not reach a. It is failed over if most of the processes that know it agree.
func TestVotesOnALostCluster(t *testing.T) {
	for votes, want := range map[string]string{
		"":     "a:FailedOver b:Serving c:Serving ",
		"-":    "a:FailedOver b:Serving c:Serving ",
		"+":    "a:FailoverSuspended(PartiallyReachable) b:Serving c:Serving ReachableByMajority", // 1:1
		".":    "a:FailedOver b:Serving c:Serving ",
		"--":   "a:FailedOver b:Serving c:Serving ",
		"+-":   "a:FailedOver b:Serving c:Serving ReachableByMinority",
		"++":   "a:FailoverSuspended(PartiallyReachable) b:Serving c:Serving ReachableByMajority",
		"+.":   "a:FailoverSuspended(PartiallyReachable) b:Serving c:Serving ReachableByMajority",
		"-..":  "a:FailedOver b:Serving c:Serving ",
		"++-":  "a:FailoverSuspended(PartiallyReachable) b:Serving c:Serving ReachableByMajority", // 2:2
		"+--+": "a:FailedOver b:Serving c:Serving ReachableByMinority",
		"+!":   "a:FailoverSuspended(PartiallyReachable) b:Serving c:Serving ReachableByMajority", // a process that reaches nothing says nothing of a
		"!":    "a:FailedOver b:Serving c:Serving ",
	} {
		t.Run(votes, func(t *testing.T) {
			f := newFleet(t, DefaultSettings(), "a", "b", "c")
			f.say("a", votes)
			f.observe("a", "-")
			f.settle()
			f.settings.Probes, f.settings.ProbeAge = map[string]Probe{"a": {At: f.now.Add(time.Hour), LostSince: f.now}}, time.Hour
			f.wait(2 * time.Minute)
			if got := f.phases() + " " + f.partly("a"); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			f.observe("a", "+")
			f.say("a", strings.NewReplacer("-", "+", "!", "+").Replace(votes))
			f.settle()
			if f.partly("a") != "" {
				t.Errorf("it is still %s: %s", f.partly("a"), f.phases())
			}
		})
	}
}

// A cluster that votes suspended is lost when they change, and has a grace period then.
func TestVotesThatChange(t *testing.T) {
	f := newFleet(t, DefaultSettings(), "a", "b", "c")
	f.say("a", "++")
	f.observe("a", "-")
	f.settle()
	f.wait(10 * time.Minute)
	f.say("a", "--")
	f.settle()
	f.wait(29 * time.Second)
	if got := f.phases(); got != "a:GracePeriod b:Serving c:Serving" {
		t.Errorf("after 29 s: %s", got)
	}
	f.wait(2 * time.Second)
	if got := f.phases(); got != "a:FailedOver b:Serving c:Serving" {
		t.Errorf("after 31 s: %s", got)
	}
	f.say("a", "++") // it failed over: it comes back when the leader reaches it
	f.settle()
	f.wait(time.Hour)
	if got := f.phases(); got != "a:FailedOver b:Serving c:Serving" {
		t.Errorf("half of them reach it again: %s", got)
	}
}

// Other processes may need some seconds to answer.
func TestVotesAreWaitedFor(t *testing.T) {
	s := DefaultSettings()
	s.GracePeriod = time.Second
	f := newFleet(t, s, "a", "b", "c")
	f.settings.Probes, f.settings.ProbeAge = map[string]Probe{"a": {At: f.now.Add(time.Hour), LostSince: f.now}}, time.Hour
	f.say("a", "..")
	f.observe("a", "-")
	f.settle()
	f.wait(5 * time.Second)
	if got := f.phases(); got != "a:GracePeriod b:Serving c:Serving" {
		t.Errorf("before they answered: %s", got)
	}
	f.wait(5 * time.Second)
	if got := f.phases(); got != "a:FailedOver b:Serving c:Serving" {
		t.Errorf("they have nothing to say: %s", got)
	}
}

// A cluster that only others do not reach stays healthy; the condition reports it.
func TestOthersDoNotReachIt(t *testing.T) {
	f := newFleet(t, DefaultSettings(), "a", "b", "c")
	f.say("a", "---.-")
	f.settle()
	f.wait(time.Hour)
	c := f.get("a").Condition(v1beta1.ClusterPartiallyReachable)
	if f.phases() != "a:Serving b:Serving c:Serving" || c == nil || c.Reason != v1beta1.ReasonReachableByLeader ||
		!strings.HasPrefix(c.Message, "4 of 5 processes of the federation do not reach it (process-2, process-3, process-4 and 1 more): ") {
		t.Errorf("%s %+v", f.phases(), c)
	}
	f.settings.Others = map[string]Statement{} // it is the only one now
	f.settle()
	if f.partly("a") != "" {
		t.Error("nobody else is there, and it is still", f.partly("a"))
	}
}

// Only the leader is cut off from everything: no cluster is lost, and a caller without the votes goes by what is
// written.
func TestTheLeaderAloneIsCutOff(t *testing.T) {
	f := newFleet(t, DefaultSettings(), "a", "b", "c")
	f.settings.Others = map[string]Statement{"2": {Well: []string{"a", "b", "c"}}, "3": {Well: []string{"a", "b", "c"}}}
	for _, name := range []string{"a", "b", "c"} {
		f.observe(name, "-")
	}
	f.settle()
	f.wait(time.Hour)
	if got := f.phases(); got != "a:FailoverSuspended(PartiallyReachable) b:FailoverSuspended(PartiallyReachable) c:FailoverSuspended(PartiallyReachable)" {
		t.Error(got)
	}
	f.settings.Others = nil
	if cut := CutOff(f.clusters, f.settings, f.now); len(cut) > 0 {
		t.Errorf("they count as cut off: %v", cut)
	}
	if held := WhySuspended(f.clusters, []string{"a"}, f.settings, f.now); held == "" || strings.Contains(held, "processes") {
		t.Errorf("if a were lost for all: %q", held)
	}
	f.settle() // which fails if a written decision changes
	for _, v := range Decide(f.clusters, f.settings, f.now) {
		if v.Changed {
			t.Errorf("%s changes without votes: %+v", v.Cluster, v.Conditions)
		}
	}
}

func TestFound(t *testing.T) {
	now := began.Add(time.Hour)
	lost := now.Add(-time.Minute)
	got := Found(map[string]Probe{
		"well": {At: now, Healthy: true}, "lost": {At: now, LostSince: lost}, "old": {At: now.Add(-time.Minute), Healthy: true}, "first-miss": {At: now},
		"back": {At: now, Healthy: true, LostSince: lost}, "refuses": {At: now, LostSince: lost, Unclear: true},
	}, 5*time.Second, now)
	if want := map[string]bool{"well": true, "lost": false}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// In random runs no cluster that at least half of the processes that know it reach is ever failed over.
func TestHalfOfTheVotesHold(t *testing.T) {
	for seed := range uint64(30) {
		w := newWorld(t, seed)
		votes := map[string]string{}
		for range 600 {
			w.settings.Others = map[string]Statement{"2": {}, "3": {}, "4": {}}
			for _, c := range w.clusters {
				if w.random.IntN(40) == 0 || votes[c.Name] == "" {
					votes[c.Name] = []string{"...", "+++", "++-", "+--", "---"}[w.random.IntN(5)]
				}
				for i, vote := range strings.Split(votes[c.Name], "") {
					process := fmt.Sprint(i + 2)
					s := w.settings.Others[process]
					switch vote {
					case "+":
						s.Well = append(s.Well, c.Name)
					case "-":
						s.Lost = append(s.Lost, c.Name)
					}
					w.settings.Others[process] = s
				}
			}
			before := map[string]v1beta1.FailoverPhase{}
			for _, c := range w.clusters {
				before[c.Name] = c.Phase()
			}
			w.second()
			w.settle()
			for _, c := range w.clusters {
				held := slices.Contains([]string{"+++", "++-"}, votes[c.Name])
				if is := c.Phase(); held && is == v1beta1.PhaseFailedOver && before[c.Name] != is && before[c.Name] != v1beta1.PhaseFailingBack {
					t.Fatalf("seed %d: %s is %s after %s, and its votes are %s", seed, c.Name, is, before[c.Name], votes[c.Name])
				}
			}
		}
	}
}
