package plan

import (
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// numbered is one entry of a history that is kept in the most obvious way: the latest last.
type numbered struct {
	number int64
	image  string
}

// rollOut is what Kubernetes does with its history: the template gets the next number, unless it is the latest already, and only so many of
// the others stay.
func rollOut(history []numbered, image string, limit int) []numbered {
	next := int64(1)
	for _, h := range history {
		next = max(next, h.number+1)
	}
	if n := len(history); n == 0 || history[n-1].image != image {
		history = slices.DeleteFunc(history, func(h numbered) bool { return h.image == image })
		history = append(history, numbered{next, image})
	}
	return history[max(0, len(history)-limit-1):]
}

// A walk through templates and limits leaves the same history as Kubernetes' own bookkeeping. The order of what there is does not matter, and
// decided again nothing changes.
func TestDecide_RevisionsOverTime(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		var history []numbered
		var is []Revision
		for range 12 {
			image, limit := string("abcde"[random.IntN(5)]), random.IntN(4)
			w := Workload{Kind: "Deployment", Name: "web", Template: template(image), HistoryLimit: int64(limit), Pods: Pods{Wanted: 3, Total: 4,
				Updated: 1, Ready: 4, Available: 2}}
			history = rollOut(history, image, limit)
			random.Shuffle(len(is), func(i, j int) { is[i], is[j] = is[j], is[i] })
			next, current := Decide(w, is)
			var got []numbered
			for _, r := range next {
				got = append(got, numbered{r.Number, strings.Fields(show([]Revision{r}, ""))[1]})
			}
			slices.Reverse(got)
			if !slices.Equal(got, history) || current != next[0].Name {
				t.Fatalf("%s of at most %d: got %v, current %s, want %v", image, limit, got, current, history)
			}
			if again, same := Decide(w, next); !reflect.DeepEqual(again, next) || same != current {
				t.Fatalf("decided again it is %s, not %s", show(again, same), show(next, current))
			}
			is = next
		}
	}
}

// least returns how many of a set of pods are among the first n of all at least, whichever they are: it tries them all.
func least(set, n, all int64) int64 {
	fewest := set
	for chosen := range uint(1) << all {
		if int64(bits.OnesCount(chosen)) == set {
			fewest = min(fewest, int64(bits.OnesCount(chosen&(1<<n-1))))
		}
	}
	return fewest
}

// A revision is said to have only pods that are surely its own, and of all pods none is said to be in two or in none.
func TestPods_SayOnlyWhatIsSure(t *testing.T) {
	const most = 5
	for total := range int64(most) + 1 {
		for i := range (total + 1) * (total + 1) * (total + 1) {
			p := Pods{Total: total, Updated: i % (total + 1), Ready: i / (total + 1) % (total + 1)}
			p.Available = min(i/(total+1)/(total+1), p.Ready)
			newest, before, all := p.newest(), p.before(), p.all()
			if want := (Status{p.Updated, least(p.Ready, p.Updated, total), least(p.Available, p.Updated, total)}); newest != want {
				t.Errorf("%+v: the newest has %+v, want %+v", p, newest, want)
			}
			if want := (Status{total, p.Ready, p.Available}); all != want {
				t.Errorf("%+v: all have %+v, want %+v", p, all, want)
			}
			if before.Replicas != total-p.Updated || before.Ready != p.Ready-newest.Ready || before.Available != min(p.Available-newest.Available,
				before.Ready) {
				t.Errorf("%+v: those before have %+v beside %+v", p, before, newest)
			}
		}
	}
}

// Whatever members say, no revision has negative numbers, more ready than there are, or more available than ready.
func TestPods_WhateverMembersSay(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	some := func() int64 { return random.Int64N(13) - 4 }
	for range 5000 {
		p := Pods{Total: some(), Updated: some(), Ready: some(), Available: some()}
		for name, s := range map[string]Status{"newest": p.newest(), "before": p.before(), "all": p.all()} {
			if s.Available < 0 || s.Ready < s.Available || s.Replicas < s.Ready {
				t.Fatalf("%+v: %s has %+v", p, name, s)
			}
		}
		if sum := p.newest().Replicas + p.before().Replicas; sum != p.all().Replicas {
			t.Fatalf("%+v: the revisions have %d pods, together %d", p, sum, p.all().Replicas)
		}
	}
}

// The greatest number that is believed counts, one more does not.
func TestDecide_RevisionNumbersThatPeopleWrite(t *testing.T) {
	w := Workload{Kind: "Deployment", Name: "web", Template: template("b"), HistoryLimit: 1}
	for number, want := range map[int64]int64{1: 2, 0: 1, -1: 1, maxNumber: maxNumber + 1, maxNumber + 1: 1} {
		if got, _ := Decide(w, []Revision{have(number, "a")}); got[0].Number != want {
			t.Errorf("after %d comes %d, want %d", number, got[0].Number, want)
		}
	}
}

// An old revision loses what the workload says no more of the federation, and keeps all else; none has what only the workload is to have.
func TestAnnotationsOfOldRevisions(t *testing.T) {
	old := have(1, "a")
	old.Annotations = map[string]string{"note": "old", "federation.alpha.kubernetes.io/cluster-selector": "[]",
		"federation.kubernetes.io/job-preferences": "{}"}
	w := Workload{Kind: "Deployment", Name: "web", Template: template("b"), HistoryLimit: 1, Annotations: map[string]string{"note": "new"}}
	for _, key := range notPassedOn {
		old.Annotations[key], w.Annotations[key] = "then", "now"
	}
	before := maps.Clone(w.Annotations)
	got, _ := Decide(w, []Revision{old})
	for i, want := range []map[string]string{{"note": "new"}, {"note": "old"}} {
		if !maps.Equal(got[i].Annotations, want) {
			t.Errorf("revision %d has %v, want %v", got[i].Number, got[i].Annotations, want)
		}
	}
	if !maps.Equal(w.Annotations, before) || old.Annotations[RevisionAnnotation] != "then" {
		t.Error("the annotations of the workload or of a revision were changed")
	}
}

// Templates have one hash only if they are the same to Kubernetes: a null is nothing at any depth, everything else counts, and so does the kind.
func TestHashOf_CountsWhatCounts(t *testing.T) {
	base := map[string]any{"spec": map[string]any{"args": []any{"a", "b"}, "list": []any{map[string]any{"x": int64(1)}}}}
	seen := map[string]string{}
	for name, c := range map[string]struct {
		kind     string
		template map[string]any
		same     bool
	}{
		"the same": {"Deployment", base, true},
		"a null":   {"Deployment", map[string]any{"status": nil, "spec": base["spec"]}, true},
		"a null in a list": {"Deployment", map[string]any{"spec": map[string]any{"args": []any{"a", "b"}, "list": []any{map[string]any{"x": int64(1),
			"y": nil}}}}, true},
		"another kind": {"StatefulSet", base, false},
		"another order": {"Deployment", map[string]any{"spec": map[string]any{"args": []any{"b", "a"},
			"list": []any{map[string]any{"x": int64(1)}}}}, false},
		"an empty map in it": {"Deployment", map[string]any{"spec": base["spec"], "metadata": map[string]any{}}, false},
		"no template":        {"Deployment", nil, false},
		"a label as ours": {"Deployment", map[string]any{"spec": base["spec"],
			"metadata": map[string]any{"labels": map[string]any{"pod-template-hash": "x"}}}, false},
		"a field of its label": {"Deployment", map[string]any{"spec": base["spec"], "pod-template-hash": "x"}, false},
	} {
		hash := HashOf(c.kind, c.template)
		if (hash == HashOf("Deployment", base)) != c.same {
			t.Errorf("%s: hash %s, want the same: %t", name, hash, c.same)
		}
		if other := seen[hash]; !c.same && other != "" {
			t.Errorf("%s and %s have the same hash", name, other)
		}
		seen[hash] = name
	}
}

// The name of a revision is one that objects may have and begins with the workload's, however long that is.
func TestNameOf_IsAName(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	for range 2000 {
		workload := strings.Repeat("a", 1+random.IntN(9))
		for long := random.IntN(245); len(workload) < long; {
			workload += string("--."[random.IntN(3)]) + strings.Repeat("b", 1+random.IntN(8))
		}
		hash := HashOf("Deployment", template(fmt.Sprint(random.Int())))
		name := nameOf(workload, hash)
		if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 || !strings.HasSuffix(name, "-"+hash) || !strings.HasPrefix(workload,
			strings.TrimSuffix(name, "-"+hash)) {
			t.Fatalf("%q of %q: %v", name, workload, errs)
		}
	}
}
