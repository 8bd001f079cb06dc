package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	reviewplan "federation/controllers/review/plan"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func cluster(name, region string, zones ...string) *v1beta1.Cluster {
	return &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1beta1.ClusterStatus{Region: region, Zones: zones}}
}

func TestDomains(t *testing.T) {
	clusters := []*v1beta1.Cluster{
		cluster("e2", "east", "a"), cluster("e1", "east", "a"), cluster("wide", "east", "a", "b"), cluster("w", "west", "a"), cluster("none", ""), cluster("x", "east", "A"),
	}
	for want, levels := range map[string][]string{
		"region.east east [e1 e2 wide x]; region.west west [w]; zone.east.a east/a [e1 e2]; zone.west.a west/a [w]": {"Zone", "Region", "Zone"},
		"region.east east [e1 e2 wide x]; region.west west [w]":                                                     {"Region"},
		"": {},
	} {
		parsed, err := ParseLevels(levels)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range Domains(clusters, parsed) {
			got = append(got, fmt.Sprintf("%s %s %v", d.Name, d.Spec.Domain(), d.Clusters))
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%v: %q, want %q", levels, got, want)
		}
	}
	if _, err := ParseLevels([]string{"zone"}); err == nil || !strings.Contains(err.Error(), `"zone": must be Zone or Region`) {
		t.Errorf("error %v", err)
	}
}

func TestNextDomain(t *testing.T) {
	ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	for name, c := range map[string]struct {
		all  []Standing
		turn int
		want int
		wait time.Duration
	}{
		"none":                               {nil, 0, -1, 0},
		"nothing changed":                    {[]Standing{{Urgency: None, Evaluated: ago(9999)}}, 0, -1, 0},
		"never looked at goes before change": {[]Standing{{Urgency: Changed, Evaluated: ago(60)}, {Urgency: None, Evaluated: time.Time{}}}, 0, 1, 0},
		"doubt goes first":                   {[]Standing{{Urgency: None, Evaluated: time.Time{}}, {Urgency: Doubt, Evaluated: ago(60)}}, 0, 1, 0},
		"doubt before change, though it is newer":    {[]Standing{{Urgency: Changed, Evaluated: ago(600)}, {Urgency: Doubt, Evaluated: ago(40)}}, 0, 1, 0},
		"the oldest of those that changed":           {[]Standing{{Urgency: Changed, Evaluated: ago(60)}, {Urgency: Changed, Evaluated: ago(600)}}, 0, 1, 0},
		"each is left alone for 30 s":                {[]Standing{{Urgency: Doubt, Evaluated: ago(20)}, {Urgency: Changed, Evaluated: ago(5)}}, 0, -1, 10 * time.Second},
		"who may goes before who may not":            {[]Standing{{Urgency: Doubt, Evaluated: ago(20)}, {Urgency: Changed, Evaluated: ago(31)}}, 0, 1, 0},
		"what is stale waits for longer":             {[]Standing{{Urgency: Stale, Evaluated: ago(40)}}, 0, -1, 20 * time.Second},
		"a change is left to show in the room":       {[]Standing{{Urgency: Changed, Since: ago(4), Evaluated: ago(600)}}, 0, -1, 6 * time.Second},
		"and then its turn comes":                    {[]Standing{{Urgency: Changed, Since: ago(10), Evaluated: ago(600)}}, 0, 0, 0},
		"and then comes last":                        {[]Standing{{Urgency: Stale, Evaluated: ago(600)}, {Urgency: Changed, Evaluated: ago(60)}}, 0, 1, 0},
		"each third turn has who has waited longest": {[]Standing{{Urgency: Doubt, Evaluated: ago(60)}, {Urgency: Changed, Evaluated: ago(600)}}, 2, 1, 0},
		"and not what appears all the time":          {[]Standing{{Appeared: ago(2)}, {Urgency: Stale, Evaluated: ago(600)}}, 5, 1, 0},
	} {
		if got, wait := Next(c.all, now, c.turn); got != c.want || wait != c.wait {
			t.Errorf("%s: %d in %s, want %d in %s", name, got, wait, c.want, c.wait)
		}
	}
}

// TestReadinessBudget checks that evaluations, refits and intakes take a tenth of a core, whatever an evaluation costs. An intake that costs
// much delays the next for a bounded time instead.
func TestReadinessBudget(t *testing.T) {
	for _, took := range []time.Duration{time.Millisecond, time.Second, 10 * time.Second} {
		if took >= time.Second {
			if left := Gather(took); left > 8*time.Second {
				t.Errorf("after an intake of %s the next waits %s", took, left)
			}
			took /= 100
		}
		evaluating, refitting, takingIn := share(took, Rest(took)), share(took, RestRefit(took)), share(took, Gather(took))
		if evaluating+refitting+takingIn > 0.1 || evaluating < 0.045 {
			t.Errorf("%s and then a rest of %s, %s, %s: %.3f, %.3f and %.3f of a core", took, Rest(took), RestRefit(took), Gather(took), evaluating, refitting, takingIn)
		}
	}
}

func share(took, rest time.Duration) float64 { return float64(took) / float64(took+rest) }

func TestStatus(t *testing.T) {
	ok := reviewplan.ObjectLoss{Kind: "Deployment", Namespace: "shop", Name: "web", Replicas: 4, Placed: 3, Kept: 1}
	short := reviewplan.ObjectLoss{Kind: "Deployment", Namespace: "shop", Name: "api", Replicas: 4, Placed: 1, Unschedulable: 3}
	pinned := reviewplan.ObjectLoss{Kind: "StatefulSet", Namespace: "shop", Name: "db", Replicas: 2, Kept: 2, Pinned: true}
	for name, c := range map[string]struct {
		loss           reviewplan.Loss
		status, reason string
		message        string
	}{
		"nothing there":           {reviewplan.Loss{}, "True", "Survived", "0 of 0 replicas"},
		"held, but nothing there": {reviewplan.Loss{Held: "off"}, "True", "Survived", "0 of 0 replicas"},
		"all find a place":        {reviewplan.Loss{Objects: []reviewplan.ObjectLoss{ok}, Names: 2}, "True", "Survived", "3 of 4 replicas would be placed elsewhere, 1 kept where they are; 2 names would be served by others"},
		"no room":                 {reviewplan.Loss{Objects: []reviewplan.ObjectLoss{ok, short}, Unknown: []string{"x"}}, "False", "InsufficientCapacity", "3 of 8 replicas would fit nowhere"},
		"held":                    {reviewplan.Loss{Objects: []reviewplan.ObjectLoss{short}, Held: "failover is turned off"}, "False", "FailoverWouldBeSuspended", "turned off; 3 of 4 replicas would fit nowhere"},
		"a name":                  {reviewplan.Loss{Objects: []reviewplan.ObjectLoss{ok}, Names: 5, NamesLost: []string{"a.", "b.", "c.", "d."}}, "False", "NameWithoutServer", "4 of 5 names would have no server: a., b., c. and 1 more"},
		"pinned":                  {reviewplan.Loss{Objects: []reviewplan.ObjectLoss{ok, pinned}}, "False", "Pinned", "1 objects are there alone, and may be nowhere else: StatefulSet shop/db"},
		"the room is unknown":     {reviewplan.Loss{Objects: []reviewplan.ObjectLoss{ok}, Unknown: []string{"x"}}, "Unknown", "CapacityUnknown", "not known: x"},
	} {
		s := Status(&v1beta1.FailoverReadinessStatus{}, &c.loss, now, time.Second)
		v := Verdict(&s)
		if string(v.Status) != c.status || v.Reason != c.reason || !strings.Contains(v.Message, c.message) {
			t.Errorf("%s: %s %s %q, want %s %s %q", name, v.Status, v.Reason, v.Message, c.status, c.reason, c.message)
		}
		if s.Replicas != s.Placed+s.Kept+s.Unschedulable || len(s.Conditions) != 2 {
			t.Errorf("%s: %+v", name, s)
		}
		later := Status(&s, &c.loss, now.Add(time.Hour), time.Minute)
		if !Same(&s, &later) || !transition(&later).Equal(now) {
			t.Errorf("%s: said again an hour later, it is another one: %+v, %+v", name, s, later)
		}
	}
	var many []reviewplan.ObjectLoss
	for i := range 50 {
		many = append(many, reviewplan.ObjectLoss{Name: fmt.Sprint(i), Replicas: 100, Unschedulable: int64(i)})
	}
	s := Status(&v1beta1.FailoverReadinessStatus{}, &reviewplan.Loss{Objects: many, Names: 50, NamesLost: make([]string, 50)}, now, 0)
	if len(s.Worst) != 20 || s.Worst[0].Name != "49" || len(s.Names.Lost) != 20 || s.Names.Survive != 0 {
		t.Errorf("%d objects, first %+v, names %+v", len(s.Worst), s.Worst[0], s.Names)
	}
	other := s.DeepCopy()
	other.Placed++
	if Same(&s, other) {
		t.Error("another number is the same")
	}
}

func TestDrilled(t *testing.T) {
	at := metav1.NewTime(now)
	for want, last := range map[string]*v1beta1.ReadinessDrill{
		"False NeverDrilled": nil,
		"True Succeeded":     {Name: "x", SucceededAt: new(metav1.NewTime(now.Add(-89 * 24 * time.Hour)))},
		"False LongAgo":      {Name: "x", SucceededAt: new(metav1.NewTime(now.Add(-91 * 24 * time.Hour)))},
	} {
		if c := Drilled(last, at); fmt.Sprint(c.Status, " ", c.Reason) != want {
			t.Errorf("%s %s, want %s", c.Status, c.Reason, want)
		}
	}
}

func transition(s *v1beta1.FailoverReadinessStatus) time.Time {
	v := Verdict(s)
	return v.LastTransitionTime.Time
}
