package health

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

var start = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

// words are the checks of the table below.
var words = map[string]Evidence{
	"ok":      {Answer: Healthy},
	"timeout": {Unreachable, "no answer within 1.5s"},
	"refused": {Unreachable, "connection refused"},
	"sick":    {Unhealthy, "500"},
	"401":     {CredentialRejected, "401 Unauthorized"},
	"x509":    {NotTrusted, "unknown authority"},
	"slow":    {Slow, "no answer within 1.5s"},
	"broken":  {Misconfigured, "Secret x is not there"},
}

// say is a state in one line: Ready/Offline reason-of-Ready.
func say(s State) string {
	if len(s.Conditions) == 0 {
		return "unknown"
	}
	ready := findCondition(s.Conditions, v1beta1.ClusterReady)
	return string(ready.Status) + "/" + string(status(s.Conditions, v1beta1.ClusterOffline)) + " " + ready.Reason
}

func TestJudge(t *testing.T) {
	const (
		ready   = "True/False ClusterReady"
		gone    = "False/True ClusterNotReachable"
		sick    = "False/False ClusterNotReady"
		refused = "False/False ClusterCredentialRejected"
		strange = "False/Unknown ClusterNotTrusted"
		broken  = "False/Unknown ClusterMisconfigured"
	)
	for name, test := range map[string]struct {
		checks string
		want   string
	}{
		"never looked":                          {"", "unknown"},
		"first check is good":                   {"ok", ready},
		"one lost check of a new cluster":       {"timeout", "unknown"},
		"one lost check":                        {"ok timeout", ready},
		"lost checks that are not in a row":     {"ok timeout ok timeout ok refused", ready},
		"two lost checks":                       {"ok timeout timeout", gone},
		"two lost checks of different kinds":    {"ok timeout refused", gone},
		"one good check brings back":            {"ok refused refused refused ok", ready},
		"one bad answer":                        {"ok sick", ready},
		"two bad answers":                       {"ok sick sick", sick},
		"lost credential is not a lost cluster": {"ok 401 401", refused},
		"a certificate that is not trusted":     {"ok x509 x509", strange},
		"lost cluster, then lost credential":    {"ok refused refused 401 401 401", refused},
		"a cluster that starts":                 {"ok refused refused 401 sick sick", gone},
		"slow for a while":                      {"ok slow slow slow slow", ready},
		"slow for too long":                     {"ok slow slow slow slow slow", sick},
		"slow, then gone":                       {"ok slow timeout", gone},
		"no configuration is certain at once":   {"ok broken", broken},
		"configuration is repaired":             {"ok broken ok", ready},
	} {
		t.Run(name, func(t *testing.T) {
			s := State{}
			for i, check := range strings.Fields(test.checks) {
				s = Judge(s, words[check], DefaultPolicy(), start.Add(time.Duration(i)*time.Second)).State
			}
			if got := say(s); got != test.want {
				t.Errorf("after %q: %s, want %s", test.checks, got, test.want)
			}
		})
	}
}

func TestJudgeSaysWhenToLookNext(t *testing.T) {
	p := DefaultPolicy()
	good := Judge(State{}, words["ok"], p, start)
	doubt := Judge(good.State, words["timeout"], p, start)
	gone := Judge(doubt.State, words["timeout"], p, start)
	starts := Judge(gone.State, words["sick"], p, start)
	for _, test := range []struct {
		name string
		v    Verdict
		want time.Duration
	}{{"well", good, p.Period}, {"in doubt", doubt, p.Retry}, {"gone", gone, p.Period}, {"gone, starts", starts, p.Period}} {
		if test.v.Next != test.want {
			t.Errorf("%s: next check in %v, want %v", test.name, test.v.Next, test.want)
		}
	}
}

func TestJudgeReportsTransitionsOnce(t *testing.T) {
	s, got := State{}, ""
	for _, check := range strings.Fields("ok ok timeout refused timeout timeout sick sick sick ok") {
		v := Judge(s, words[check], DefaultPolicy(), start)
		if s = v.State; v.Transition != nil {
			got += " " + v.Transition.Reason
		}
	}
	if want := " ClusterReady ClusterNotReachable ClusterNotReady ClusterReady"; got != want {
		t.Errorf("transitions%s, want%s", got, want)
	}
}

func TestConditionsAreWordedAndDated(t *testing.T) {
	s := State{}
	for i, check := range []string{"ok", "timeout", "refused", "timeout", "timeout", "timeout"} {
		s = Judge(s, words[check], DefaultPolicy(), start.Add(time.Duration(i)*time.Second)).State
	}
	ready, offline := findCondition(s.Conditions, v1beta1.ClusterReady), findCondition(s.Conditions, v1beta1.ClusterOffline)
	if want := "cluster is not reachable: connection refused"; ready.Message != want {
		t.Errorf("Ready says %q, want %q: of the failure at the transition", ready.Message, want)
	}
	if want := "cluster is not reachable"; offline.Message != want {
		t.Errorf("Offline says %q, want %q", offline.Message, want)
	}
	if at := start.Add(2 * time.Second); !ready.LastTransitionTime.Time.Equal(at) {
		t.Errorf("transition at %v, want %v", ready.LastTransitionTime, at)
	}
	if at := start.Add(5 * time.Second); !ready.LastProbeTime.Time.Equal(at) {
		t.Errorf("looked at %v, want %v", ready.LastProbeTime, at)
	}
}

func TestJudgeLeavesItsInputAlone(t *testing.T) {
	s := Judge(State{}, words["ok"], DefaultPolicy(), start).State
	before := s.Conditions[0]
	Judge(Judge(s, words["refused"], DefaultPolicy(), start).State, words["refused"], DefaultPolicy(), start.Add(time.Hour))
	if s.Conditions[0] != before {
		t.Errorf("the previous state was changed: %v, was %v", s.Conditions[0], before)
	}
}

func TestReadyIsTheOneTest(t *testing.T) {
	for check, e := range words {
		s := State{}
		for range 5 {
			s = Judge(s, e, DefaultPolicy(), start).State
		}
		if want := check == "ok"; s.Ready() != want || (status(s.Conditions, v1beta1.ClusterReady) == corev1.ConditionTrue) != want {
			t.Errorf("after checks that say %s: ready %v", check, s.Ready())
		}
	}
}
