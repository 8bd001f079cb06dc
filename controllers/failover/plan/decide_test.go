package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fleet plays the registry, the API and the controller: it writes conditions, keeps what Decide returns, and judges
// again when a verdict says so.
type fleet struct {
	t        testing.TB
	settings Settings
	now      time.Time
	clusters []*v1beta1.Cluster
	events   []string
	looks    map[string]time.Time
}

// newFleet has clusters that are all ready. Each is in a zone of its own unless named ZONE/NAME.
func newFleet(t testing.TB, s Settings, names ...string) *fleet {
	f := &fleet{t: t, settings: s, now: began, looks: map[string]time.Time{}}
	for _, name := range names {
		zone, short, ok := strings.Cut(name, "/")
		if !ok {
			short = name
		}
		f.clusters = append(f.clusters, &v1beta1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: short},
			Status:     v1beta1.ClusterStatus{Zones: []string{zone}, Region: "r", KubernetesVersion: "v1"},
		})
		f.observe(short, "+")
	}
	f.settle()
	return f
}

func (f *fleet) get(name string) *v1beta1.Cluster {
	i := slices.IndexFunc(f.clusters, func(c *v1beta1.Cluster) bool { return c.Name == name })
	return f.clusters[i]
}

var words = map[string]string{"-": v1beta1.ReasonClusterNotReachable, "sick": v1beta1.ReasonClusterNotReady, "401": ReasonCredentialRejected, "same": ReasonDuplicateCluster, "x509": ReasonNotTrusted}

// observe writes the result of a health check: "+" ready, "-" unreachable, and so on; or "D": the cluster has been
// drained.
func (f *fleet) observe(name, what string) {
	c := f.get(name)
	if what == "D" {
		at := storedTime(f.now)
		c.Spec.Taints = []corev1.Taint{
			{Key: v1beta1.TaintDrain, Effect: corev1.TaintEffectNoExecute, TimeAdded: &at},
			{Key: v1beta1.TaintUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &at},
		}
		return
	}
	is := newCondition(v1beta1.ClusterReady, what == "+", words[what], "", storedTime(f.now))
	if was := c.Condition(v1beta1.ClusterReady); was != nil && was.Status == is.Status {
		is.LastTransitionTime = was.LastTransitionTime
	}
	f.put(c, is)
}

func (f *fleet) put(c *v1beta1.Cluster, conditions ...v1beta1.ClusterCondition) {
	for _, is := range conditions {
		c.Status.Conditions = slices.DeleteFunc(slices.Clone(c.Status.Conditions), func(was v1beta1.ClusterCondition) bool { return was.Type == is.Type })
		c.Status.Conditions = append(c.Status.Conditions, is)
	}
}

// settle applies decisions until nothing changes. If that is not at once, Decide contradicts itself.
func (f *fleet) settle() {
	f.t.Helper()
	for round := range 3 {
		changed := false
		for _, v := range Decide(f.clusters, f.settings, f.now) {
			delete(f.looks, v.Cluster)
			if v.LookAgain > 0 {
				f.looks[v.Cluster] = f.now.Add(v.LookAgain)
			}
			if v.Changed {
				changed = true
				c := f.get(v.Cluster)
				c.Status.Failover = v.Failover
				c.Status.Conditions = slices.DeleteFunc(slices.Clone(c.Status.Conditions), func(was v1beta1.ClusterCondition) bool { return was.Type == v1beta1.ClusterPartiallyReachable })
				f.put(c, v.Conditions...) // an apply takes away what is ours and not said again
				if v.Event != nil {
					f.events = append(f.events, v.Cluster+" "+v.Event.Reason)
				}
			}
		}
		if !changed {
			return
		}
		if round > 0 {
			f.t.Fatalf("at %s the decision on its own result is another one: %s", f.now.Sub(began), f.phases())
		}
	}
}

// wait lets time pass: Decide is asked when it wanted to be.
func (f *fleet) wait(d time.Duration) {
	f.t.Helper()
	for end := f.now.Add(d); ; {
		next := end
		for _, at := range f.looks {
			next = earlier(next, at)
		}
		f.now = next
		f.settle()
		if !next.Before(end) {
			return
		}
	}
}

// phases returns those of all clusters: "a:FailedOver b:FailingBack10".
func (f *fleet) phases() string {
	var out []string
	for _, c := range f.clusters {
		s := c.Name + ":" + string(c.Phase())
		if c.Phase() == v1beta1.PhaseFailingBack {
			s += fmt.Sprint(c.Status.Failover.Percent)
		}
		if held := c.Condition(v1beta1.ClusterFailoverSuspended); held != nil && held.Status == corev1.ConditionTrue {
			s += "(" + held.Reason + ")"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// TestPhases tells stories: "12 a-" is a look at second 12 that finds a lost, "=" what is to be so then.
func TestPhases(t *testing.T) {
	for _, test := range []struct {
		name     string
		clusters string
		settings func(*Settings)
		script   string
	}{
		{"lost and back within the grace period", "a b c", nil, `
			10 a-   = a:GracePeriod b:Serving c:Serving
			39 .    = a:GracePeriod b:Serving c:Serving
			39 a+   = a:Serving b:Serving c:Serving`},
		{"lost for longer: out; back in steps", "a b c", nil, `
			10 a-   = a:GracePeriod b:Serving c:Serving
			40 .    = a:FailedOver b:Serving c:Serving
			99 .    = a:FailedOver b:Serving c:Serving
			100 a+  = a:FailingBack0 b:Serving c:Serving
			159 .   = a:FailingBack0 b:Serving c:Serving
			160 .   = a:FailingBack10 b:Serving c:Serving
			220 .   = a:FailingBack50 b:Serving c:Serving
			280 .   = a:Serving b:Serving c:Serving`},
		{"held down: nothing comes back before, and the next move begins it anew", "a b c", func(s *Settings) { s.HoldDown = 2 * time.Minute }, `
			10 a-   = a:GracePeriod b:Serving c:Serving
			40 .    = a:FailedOver b:Serving c:Serving
			50 a+   = a:FailingBack0 b:Serving c:Serving
			60 a-   = a:FailedOver b:Serving c:Serving
			70 a+   = a:FailingBack0 b:Serving c:Serving
			159 .   = a:FailingBack0 b:Serving c:Serving
			160 .   = a:FailingBack10 b:Serving c:Serving
			170 a-  = a:GracePeriod b:Serving c:Serving
			200 .   = a:FailedOver b:Serving c:Serving
			201 a+  = a:FailingBack0 b:Serving c:Serving
			319 .   = a:FailingBack0 b:Serving c:Serving
			320 .   = a:FailingBack10 b:Serving c:Serving`},
		{"an API that is not well is lost too", "a b c", nil, `
			10 asick = a:GracePeriod b:Serving c:Serving
			40 .     = a:FailedOver b:Serving c:Serving`},
		{"lost again before it has anything: out at once", "a b c", nil, `
			10 a-   = a:GracePeriod b:Serving c:Serving
			40 .    = a:FailedOver b:Serving c:Serving
			50 a+   = a:FailingBack0 b:Serving c:Serving
			60 a-   = a:FailedOver b:Serving c:Serving
			70 a+   = a:FailingBack0 b:Serving c:Serving
			129 .   = a:FailingBack0 b:Serving c:Serving
			130 .   = a:FailingBack10 b:Serving c:Serving`},
		{"lost again with a share: keeps that for a grace period, and goes on from there", "a b c", nil, `
			10 a-   = a:GracePeriod b:Serving c:Serving
			40 a+   = a:FailingBack0 b:Serving c:Serving
			100 .   = a:FailingBack10 b:Serving c:Serving
			110 a-  = a:GracePeriod b:Serving c:Serving
			130 a+  = a:FailingBack10 b:Serving c:Serving
			189 .   = a:FailingBack10 b:Serving c:Serving
			190 .   = a:FailingBack50 b:Serving c:Serving
			200 a-  = a:GracePeriod b:Serving c:Serving
			230 .   = a:FailedOver b:Serving c:Serving`},
		{"20 s away, 5 s back, for ever: the time away adds up", "a b c", nil, `
			10 a-   = a:GracePeriod b:Serving c:Serving
			30 a+   = a:Serving b:Serving c:Serving
			35 a-   = a:GracePeriod b:Serving c:Serving
			49 .    = a:GracePeriod b:Serving c:Serving
			50 .    = a:FailedOver b:Serving c:Serving
			55 a+   = a:FailingBack0 b:Serving c:Serving
			60 a-   = a:FailedOver b:Serving c:Serving`},
		{"a loss is forgotten when it was back for as long", "a b c", nil, `
			10 a-   = a:GracePeriod b:Serving c:Serving
			20 a+   = a:Serving b:Serving c:Serving
			31 a-   = a:GracePeriod b:Serving c:Serving
			60 .    = a:GracePeriod b:Serving c:Serving
			61 .    = a:FailedOver b:Serving c:Serving`},
		{"two of three vanish: nothing moves; the last begins anew when the other is back", "a b c", nil, `
			10 a-   = a:GracePeriod b:Serving c:Serving
			25 b-   = a:GracePeriod b:GracePeriod c:Serving
			40 .    = a:FailoverSuspended(FailStatic) b:GracePeriod c:Serving
			500 .   = a:FailoverSuspended(FailStatic) b:FailoverSuspended(FailStatic) c:Serving
			510 b+  = a:GracePeriod b:Serving c:Serving
			539 .   = a:GracePeriod b:Serving c:Serving
			540 .   = a:FailedOver b:Serving c:Serving`},
		{"all vanish and are back one by one: nothing moves", "a b c", nil, `
			10 a-b-c- = a:GracePeriod b:GracePeriod c:GracePeriod
			99 .      = a:FailoverSuspended(FailStatic) b:FailoverSuspended(FailStatic) c:FailoverSuspended(FailStatic)
			100 a+    = a:Serving b:FailoverSuspended(FailStatic) c:FailoverSuspended(FailStatic)
			101 b+    = a:Serving b:Serving c:GracePeriod
			102 c+    = a:Serving b:Serving c:Serving`},
		{"what is out stays out, and counts for the majority", "a b c", nil, `
			10 a-   = a:GracePeriod b:Serving c:Serving
			40 .    = a:FailedOver b:Serving c:Serving
			50 b-   = a:FailedOver b:GracePeriod c:Serving
			80 .    = a:FailedOver b:FailoverSuspended(FailStatic) c:Serving`},
		{"of two, one is no majority; the last is never out", "a b", nil, `
			10 a-   = a:GracePeriod b:Serving
			40 .    = a:FailedOver b:Serving
			400 b-  = a:FailedOver b:GracePeriod
			999 .   = a:FailedOver b:FailoverSuspended(FailStatic)`},
		{"one alone is not moved", "a", nil, `
			10 a-   = a:GracePeriod
			99 .    = a:FailoverSuspended(FailStatic)
			100 a+  = a:Serving`},
		{"one zone at a time, first lost first; next when that serves again", "a b c d e", nil, `
			10 b-   = a:Serving b:GracePeriod c:Serving d:Serving e:Serving
			12 a-   = a:GracePeriod b:GracePeriod c:Serving d:Serving e:Serving
			42 .    = a:FailoverSuspended(CapReached) b:FailedOver c:Serving d:Serving e:Serving
			50 b+   = a:GracePeriod b:FailingBack0 c:Serving d:Serving e:Serving
			79 .    = a:GracePeriod b:FailingBack0 c:Serving d:Serving e:Serving
			80 .    = a:FailedOver b:FailingBack0 c:Serving d:Serving e:Serving`},
		{"clusters of one zone are out together", "z/a z/b y/c x/d w/e", nil, `
			10 a-b- = a:GracePeriod b:GracePeriod c:Serving d:Serving e:Serving
			40 .    = a:FailedOver b:FailedOver c:Serving d:Serving e:Serving`},
		{"without a cap", "a b c d e", func(s *Settings) { s.MaxZones = -1 }, `
			10 a-b- = a:GracePeriod b:GracePeriod c:Serving d:Serving e:Serving
			40 .    = a:FailedOver b:FailedOver c:Serving d:Serving e:Serving`},
		{"a drained cluster that is switched off takes no zone's place", "a b c d e", nil, `
			1 aD    = a:Serving b:Serving c:Serving d:Serving e:Serving
			10 a-   = a:GracePeriod b:Serving c:Serving d:Serving e:Serving
			40 .    = a:FailedOver b:Serving c:Serving d:Serving e:Serving
			100 b-  = a:FailedOver b:GracePeriod c:Serving d:Serving e:Serving
			130 .   = a:FailedOver b:FailedOver c:Serving d:Serving e:Serving
			140 c-  = a:FailedOver b:FailedOver c:GracePeriod d:Serving e:Serving
			170 .   = a:FailedOver b:FailedOver c:FailoverSuspended(CapReached) d:Serving e:Serving`},
		{"drained clusters that are switched off are no part of a majority", "a b c d e", nil, `
			1 aD    = a:Serving b:Serving c:Serving d:Serving e:Serving
			2 bD    = a:Serving b:Serving c:Serving d:Serving e:Serving
			10 a-b- = a:GracePeriod b:GracePeriod c:Serving d:Serving e:Serving
			20 c-   = a:GracePeriod b:GracePeriod c:GracePeriod d:Serving e:Serving
			50 .    = a:FailedOver b:FailedOver c:FailedOver d:Serving e:Serving`},
		{"drained clusters do not serve: of the others most vanished", "a b c d e", nil, `
			1 aD    = a:Serving b:Serving c:Serving d:Serving e:Serving
			2 bD    = a:Serving b:Serving c:Serving d:Serving e:Serving
			10 c-d- = a:Serving b:Serving c:GracePeriod d:GracePeriod e:Serving
			40 .    = a:Serving b:Serving c:FailoverSuspended(FailStatic) d:FailoverSuspended(FailStatic) e:Serving`},
		{"one that is drained after it was lost vanished all the same, and so does not release the others", "a b c", nil, `
			10 a-b- = a:GracePeriod b:GracePeriod c:Serving
			40 .    = a:FailoverSuspended(FailStatic) b:FailoverSuspended(FailStatic) c:Serving
			60 aD   = a:FailoverSuspended(FailStatic) b:FailoverSuspended(FailStatic) c:Serving
			999 .   = a:FailoverSuspended(FailStatic) b:FailoverSuspended(FailStatic) c:Serving`},
		{"turned off", "a b c", func(s *Settings) { s.MaxZones = 0 }, `
			10 a-   = a:GracePeriod b:Serving c:Serving
			99 .    = a:FailoverSuspended(FailoverDisabled) b:Serving c:Serving`},
		{"a refused credential is no sign of death, and its time does not count", "a b c", nil, `
			10 a401 = a:FailoverSuspended(ClusterCredentialRejected) b:Serving c:Serving
			900 .   = a:FailoverSuspended(ClusterCredentialRejected) b:Serving c:Serving
			910 a-  = a:GracePeriod b:Serving c:Serving
			939 .   = a:GracePeriod b:Serving c:Serving
			940 .   = a:FailedOver b:Serving c:Serving`},
		{"one that starts refuses credentials for a while", "a b c", nil, `
			10 a-   = a:GracePeriod b:Serving c:Serving
			30 ax509= a:FailoverSuspended(ClusterNotTrusted) b:Serving c:Serving
			31 a401 = a:FailoverSuspended(ClusterCredentialRejected) b:Serving c:Serving
			33 a+   = a:Serving b:Serving c:Serving`},
		{"one that is another one by a second name is neither lost nor there", "a b c d", nil, `
			10 asame= a:FailoverSuspended(DuplicateCluster) b:Serving c:Serving d:Serving
			900 .   = a:FailoverSuspended(DuplicateCluster) b:Serving c:Serving d:Serving
			910 b-c-= a:FailoverSuspended(DuplicateCluster) b:GracePeriod c:GracePeriod d:Serving
			940 .   = a:FailoverSuspended(DuplicateCluster) b:FailoverSuspended(FailStatic) c:FailoverSuspended(FailStatic) d:Serving
			950 b+c+= a:FailoverSuspended(DuplicateCluster) b:Serving c:Serving d:Serving
			960 a+  = a:Serving b:Serving c:Serving d:Serving`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := DefaultSettings()
			s.HoldDown = 0
			if test.settings != nil {
				test.settings(&s)
			}
			f := newFleet(t, s, strings.Fields(test.clusters)...)
			for line := range strings.Lines(strings.TrimSpace(test.script)) {
				do, want, _ := strings.Cut(strings.TrimSpace(line), "=")
				f.play(do)
				if got := f.phases(); got != strings.TrimSpace(want) {
					t.Fatalf("%s\ngot  %s\nwant %s", line, got, want)
				}
			}
		})
	}
}

// play does one line of a script: the second, and looks such as a-b+c401.
func (f *fleet) play(do string) {
	f.t.Helper()
	var second int
	var looks string
	if _, err := fmt.Sscan(do, &second, &looks); err != nil {
		f.t.Fatal(err)
	}
	f.wait(began.Add(time.Duration(second) * time.Second).Sub(f.now))
	for looks != "." && looks != "" {
		name, rest := looks[:1], looks[1:]
		end := strings.IndexAny(rest, "+-")
		if end < 0 {
			end = len(rest) - 1
		}
		f.observe(name, rest[:end+1])
		looks = rest[end+1:]
	}
	f.settle()
}

func TestNothingIsOverOnTimeThatNobodySaw(t *testing.T) {
	f := newFleet(t, DefaultSettings(), "a", "b", "c")
	f.play("10 a-")
	f.now = began.Add(time.Hour) // the federation was away
	f.settings.Seen = f.now
	f.settle()
	if f.phases() != "a:GracePeriod b:Serving c:Serving" {
		t.Errorf("moved by a loss that nobody watched: %s", f.phases())
	}
	f.wait(30 * time.Second)
	if f.phases() != "a:FailedOver b:Serving c:Serving" {
		t.Errorf("not moved: %s", f.phases())
	}
	f.observe("a", "+")
	f.now = f.now.Add(time.Hour)
	f.settings.Seen = f.now
	f.settle()
	if f.phases() != "a:FailingBack0 b:Serving c:Serving" {
		t.Errorf("taken for stable though nobody looked: %s", f.phases())
	}
}

func TestAClusterThatWasNeverReadyIsNothing(t *testing.T) {
	f := newFleet(t, DefaultSettings(), "a", "b")
	f.clusters = append(f.clusters, &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "new"}})
	f.observe("new", "-")
	f.settle()
	if c := f.get("new"); c.Status.Failover != nil {
		t.Errorf("failover of a cluster that never served: %+v", c.Status.Failover)
	}
	f.play("10 a-")
	f.play("40 .")
	if got := f.phases(); got != "a:FailedOver b:Serving new:Serving" {
		t.Errorf("%s: one that never served held up another", got)
	}
}

func TestHeldSaysWhatWouldHoldIt(t *testing.T) {
	f := newFleet(t, DefaultSettings(), "z/a", "z/b", "y/c", "x/d", "w/e")
	for _, test := range []struct {
		lost []string
		want string
	}{
		{[]string{"a"}, ""},
		{[]string{"a", "b"}, ""},
		{[]string{"a", "c"}, "as many zones"},
		{[]string{"a", "b", "c"}, "most clusters vanished"},
		{nil, ""},
	} {
		got := WhySuspended(f.clusters, test.lost, f.settings, f.now)
		if got == "" != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%v: %q, want %q", test.lost, got, test.want)
		}
	}
	if f.phases() != "a:Serving b:Serving c:Serving d:Serving e:Serving" {
		t.Error("asking changed something")
	}
}

func TestEventsTellWhatMoves(t *testing.T) {
	s := DefaultSettings()
	s.HoldDown = 0
	f := newFleet(t, s, "a", "b", "c")
	for _, do := range []string{"10 a-", "40 a+", "300 .", "310 b-c-", "400 b+c+"} {
		f.play(do)
	}
	want := "a ClusterFailedOver, a ClusterReturned, a ClusterFailback, a ClusterFailback, a ClusterFailback, b FailoverSuspended, c FailoverSuspended"
	if got := strings.Join(f.events, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for want, change := range map[string]func(*Settings){
		"grace period 0s: must be more than 0":                                func(s *Settings) { s.GracePeriod = 0 },
		"window -1s: must be more than 0":                                     func(s *Settings) { s.Window = -time.Second },
		"hold-down -1s: must not be negative":                                 func(s *Settings) { s.HoldDown = -time.Second },
		"stable period -1s: must not be negative":                             func(s *Settings) { s.Stable = -time.Second },
		"failback steps []: must be percentages from 1 that rise to 100":      func(s *Settings) { s.Steps = nil },
		"failback steps [10 50]: must be percentages from 1 that rise to 100": func(s *Settings) { s.Steps = []int32{10, 50} },
		"failback steps [50 50 100]: each must be more than the one before":   func(s *Settings) { s.Steps = []int32{50, 50, 100} },
	} {
		s := DefaultSettings()
		change(&s)
		if err := s.Validate(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := DefaultSettings().Validate(); err != nil {
		t.Error(err)
	}
}
