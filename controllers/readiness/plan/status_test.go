package plan

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	reviewplan "federation/controllers/review/plan"
)

// nextByOrder puts all that are due in order, and has the first: the slow way to say what Next does.
func nextByOrder(all []Standing, now time.Time) (next int, wait time.Duration) {
	type turn struct {
		of        int
		doubt     bool
		first     bool
		urgency   Urgency
		evaluated time.Time
	}
	var due []turn
	var waits []time.Duration
	for i, s := range all {
		switch {
		case s.Evaluated.IsZero(), s.Urgency != None && !s.dueTime().After(now):
			due = append(due, turn{i, s.Urgency == Doubt, s.Evaluated.IsZero(), s.Urgency, s.Evaluated})
		case s.Urgency != None:
			waits = append(waits, s.dueTime().Sub(now))
		}
	}
	slices.SortStableFunc(due, func(a, b turn) int {
		switch {
		case a.doubt != b.doubt && a.doubt, a.doubt == b.doubt && a.first && !b.first:
			return -1
		case a.doubt != b.doubt || a.first != b.first:
			return 1
		case a.urgency != b.urgency:
			return int(b.urgency - a.urgency)
		}
		return a.evaluated.Compare(b.evaluated)
	})
	switch {
	case len(due) > 0:
		return due[0].of, 0
	case len(waits) > 0:
		return -1, slices.Min(waits)
	}
	return -1, 0
}

func TestNextAgainstTheOrder(t *testing.T) {
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		all := make([]Standing, r.IntN(6))
		for i := range all {
			s := &all[i]
			if r.IntN(5) > 0 {
				s.Evaluated = now.Add(-time.Duration(r.IntN(80)) * time.Second)
			}
			for range r.IntN(3) {
				s.Touch([]Urgency{Stale, Changed, Doubt}[r.IntN(3)], now.Add(-time.Duration(r.IntN(15))*time.Second))
			}
		}
		next, wait := Next(all, now, r.IntN(2))
		if want, wantWait := nextByOrder(all, now); next != want || wait != wantWait {
			t.Fatalf("seed %d: %d in %s, want %d in %s: %+v", seed, next, wait, want, wantWait, all)
		}
	}
}

// TestDoubtsAreToldInTime: 45 s after the first doubt, whatever is touched meanwhile, and never without one.
func TestDoubtsAreToldInTime(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		var s Standing
		var since time.Time
		for second := range 120 {
			at := now.Add(time.Duration(second) * time.Second)
			if u := Urgency(r.IntN(30)); u <= Doubt {
				if s.Touch(u, at); u == Doubt && since.IsZero() {
					since = at
				}
			}
			is, left := s.Doubted(at)
			switch {
			case since.IsZero() && (is || left != 0):
				t.Fatalf("seed %d, second %d: told without a doubt: %t, %s", seed, second, is, left)
			case !since.IsZero() && (is != (at.Sub(since) >= 45*time.Second) || left != max(0, 45*time.Second-at.Sub(since)) || s.Urgency != Doubt):
				t.Fatalf("seed %d, second %d: in doubt for %s: told %t, %s left, %+v", seed, second, at.Sub(since), is, left, s)
			}
		}
	}
}

// TestWhatIsToldBeforeItsTurn: the numbers stay those of the last evaluation, which itself is not changed.
func TestWhatIsToldBeforeItsTurn(t *testing.T) {
	loss := reviewplan.Loss{Objects: []reviewplan.ObjectLoss{{Kind: "Deployment", Name: "web", Replicas: 4, Placed: 4}}, Names: 2}
	was := Status(&v1beta1.FailoverReadinessStatus{}, &loss, now, time.Second)
	kept, later := was.DeepCopy(), now.Add(time.Hour+time.Millisecond)
	for want, told := range map[string]v1beta1.FailoverReadinessStatus{
		"False InsufficientCapacity": Lacking(&was, corev1.ResourceMemory, later), "Unknown NotEvaluated": Doubted(&was, later),
	} {
		if !reflect.DeepEqual(was, *kept) {
			t.Fatalf("%s: the last evaluation is now %+v", want, was)
		}
		v := Verdict(&told)
		if got := fmt.Sprint(v.Status, " ", v.Reason); got != want || !v.LastTransitionTime.Time.Equal(now.Add(time.Hour)) || Same(&was, &told) {
			t.Errorf("%s since %s, want %s", got, v.LastTransitionTime, want)
		}
		if strings.Contains(want, "Capacity") != strings.Contains(v.Message, "memory") {
			t.Errorf("%s: %s", want, v.Message)
		}
		told.Conditions, told.EvaluatedAt = was.Conditions, was.EvaluatedAt
		if !reflect.DeepEqual(told, was) {
			t.Errorf("%s: the numbers are %+v, were %+v", want, told, was)
		}
	}
	if v := Verdict(&v1beta1.FailoverReadinessStatus{}); v.Status != metav1.ConditionUnknown || v.Reason != v1beta1.ReadinessNotEvaluated {
		t.Errorf("never evaluated: %+v", v)
	}
}

func randomLoss(r *rand.Rand) reviewplan.Loss {
	l := reviewplan.Loss{Names: r.IntN(3)}
	for i := range r.IntN(30) {
		o := reviewplan.ObjectLoss{Kind: []string{"Deployment", "Job"}[r.IntN(2)], Namespace: string(rune('a' + r.IntN(3))), Name: fmt.Sprint("o", i), Placed: int64(r.IntN(3)), Kept: int64(r.IntN(2))}
		if r.IntN(2) == 0 {
			o.Unschedulable = int64(r.IntN(3))
		}
		o.Pinned = r.IntN(20) == 0
		o.Replicas = o.Placed + o.Kept + o.Unschedulable
		l.Objects = append(l.Objects, o)
	}
	if l.Names > 0 && r.IntN(3) == 0 {
		l.NamesLost = []string{"web.example.com."}
	}
	if r.IntN(4) == 0 {
		l.Held = "failover is turned off"
	}
	if r.IntN(3) == 0 {
		l.Unknown = []string{"east-a"}
	}
	return l
}

// TestVerdictGetsNoBetterByHarm: from survived over unknown to not survived, and within that to a reason that goes before.
func TestVerdictGetsNoBetterByHarm(t *testing.T) {
	order := []string{v1beta1.ReadinessSurvived, v1beta1.ReadinessCapacityUnknown, v1beta1.ReadinessPinned, v1beta1.ReadinessNameLost, v1beta1.ReadinessInsufficientCapacity, v1beta1.ReadinessFailoverWouldBeSuspended}
	rank := func(l reviewplan.Loss) (int, string) {
		s := Status(&v1beta1.FailoverReadinessStatus{}, &l, now, 0)
		v := Verdict(&s)
		if want := map[int]metav1.ConditionStatus{0: metav1.ConditionTrue, 1: metav1.ConditionUnknown}[slices.Index(order, v.Reason)]; want != "" && v.Status != want || want == "" && v.Status != metav1.ConditionFalse {
			t.Fatalf("%s %s", v.Status, v.Reason)
		}
		return slices.Index(order, v.Reason), v.Message
	}
	seen := map[int]int{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 3))
		before := randomLoss(r)
		from, said := rank(before)
		seen[from]++
		for harm, do := range []func(*reviewplan.Loss){
			func(l *reviewplan.Loss) { l.Unknown = append(l.Unknown, "west-a") },
			func(l *reviewplan.Loss) {
				l.Objects = append(l.Objects, reviewplan.ObjectLoss{Kind: "Job", Name: "pinned", Replicas: 1, Kept: 1, Pinned: true})
			},
			func(l *reviewplan.Loss) { l.Names, l.NamesLost = l.Names+1, append(l.NamesLost, "api.example.com.") },
			func(l *reviewplan.Loss) {
				l.Objects = append(l.Objects, reviewplan.ObjectLoss{Kind: "Job", Name: "large", Replicas: 1, Unschedulable: 1})
			},
		} {
			after := before
			after.Objects, after.NamesLost, after.Unknown = slices.Clone(before.Objects), slices.Clone(before.NamesLost), slices.Clone(before.Unknown)
			do(&after)
			if to, says := rank(after); to < from || to < harm+1 {
				t.Fatalf("seed %d: from %s (%s) to %s (%s), and the harm is %s", seed, order[from], said, order[to], says, order[harm+1])
			}
		}
	}
	if len(seen) != len(order) {
		t.Errorf("not every verdict was seen: %v", seen)
	}
}

// TestTheWorstAreShown: what is left out fares no worse than the last that is shown, and what fares well is no part of it.
func TestTheWorstAreShown(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 4))
		l := randomLoss(r)
		s := Status(&v1beta1.FailoverReadinessStatus{}, &l, now, 0)
		bad := map[string]reviewplan.ObjectLoss{}
		for _, o := range l.Objects {
			if o.Unschedulable > 0 || o.Pinned {
				bad[o.Name] = o
			}
		}
		if len(s.Worst) != min(len(bad), 20) {
			t.Fatalf("seed %d: %d of %d are shown", seed, len(s.Worst), len(bad))
		}
		for i, w := range s.Worst {
			o := bad[w.Name]
			if w != (v1beta1.ReadinessObject{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Replicas: o.Replicas, Unschedulable: o.Unschedulable, Pinned: o.Pinned}) {
				t.Fatalf("seed %d: %+v is shown of %+v", seed, w, o)
			}
			delete(bad, w.Name)
			for _, o := range bad {
				if o.Unschedulable > w.Unschedulable || o.Unschedulable == w.Unschedulable && o.Replicas > w.Replicas {
					t.Fatalf("seed %d: %+v fares worse than number %d, %+v", seed, o, i, w)
				}
			}
		}
		r.Shuffle(len(l.Objects), func(i, j int) { l.Objects[i], l.Objects[j] = l.Objects[j], l.Objects[i] })
		if again := Status(&v1beta1.FailoverReadinessStatus{}, &l, now, 0); !slices.Equal(again.Worst, s.Worst) {
			t.Fatalf("seed %d: in another order of objects %+v, want %+v", seed, again.Worst, s.Worst)
		}
	}
}
