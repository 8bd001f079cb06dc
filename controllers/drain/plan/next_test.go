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
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// world is a cluster that a drain is decided of, second by second, as the controller does.
type world struct {
	t         *testing.T
	c         *v1beta1.Cluster
	now       time.Time
	providers []v1beta1.DNSProvider
	contents  Contents
	steady    Steady
	events    []string
}

func newWorld(t *testing.T, weight *int32, taints ...corev1.Taint) *world {
	return &world{t: t, now: start, c: &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east-a"}, Spec: v1beta1.ClusterSpec{DNSWeight: weight, Taints: taints}}}
}

// pass lets seconds pass.
func (w *world) pass(seconds int) {
	for range seconds {
		for range 10 { // what changes is looked at again at once
			if !Concerns(w.c) {
				break
			}
			before := w.c
			step := Next(before, World{Now: w.now, TTL: 15 * time.Second, Providers: w.providers, Contents: w.contents, Steady: w.steady})
			w.steady = step.Steady
			if step.Event != "" {
				w.events = append(w.events, step.Event)
			}
			if step.Cluster == nil {
				w.c.Status.Drain = step.Status
				break
			}
			if reflect.DeepEqual(step.Cluster, before) {
				w.t.Fatalf("a step changes nothing: %s", w)
			}
			w.c = step.Cluster
		}
		w.now = w.now.Add(time.Second)
	}
}

func (w *world) String() string {
	phase := v1beta1.DrainPhase("-")
	if w.c.Status.Drain != nil {
		phase = w.c.Status.Drain.Phase
	}
	taints := make([]string, 0, len(w.c.Spec.Taints))
	for _, t := range w.c.Spec.Taints {
		taints = append(taints, strings.TrimPrefix(t.Key, "federation.kubernetes.io/"))
	}
	return strings.TrimSpace(fmt.Sprintf("%s %d %s", phase, w.c.DNSWeight(), strings.Join(taints, " ")))
}

func (w *world) expect(want string) {
	w.t.Helper()
	if got := w.String(); got != want {
		w.t.Errorf("after %s: %s, want %s", w.now.Sub(start), got, want)
	}
}

func (w *world) drain()   { Request(w.c, v1beta1.ClusterDrain{}) }
func (w *world) undrain() { Cancel(w.c) }

func TestDrain_TakesItsStepsInOrder(t *testing.T) {
	w := newWorld(t, new(int32(30)))
	w.contents = Contents{Objects: []Object{{Kind: "ReplicaSet", Name: "web", Placed: 4, Current: 4, Ready: 4}}}
	w.pass(3)
	w.expect("- 30")
	w.drain()
	w.pass(17)
	w.expect("Expiring 0")
	w.pass(1)
	w.expect("Evicting 0 drain")
	w.contents.Objects[0] = Object{Kind: "ReplicaSet", Name: "web", Current: 1, Ready: 1}
	w.pass(100)
	w.expect("Evicting 0 drain")
	w.contents = Contents{Unknown: "it does not answer"}
	w.pass(100)
	w.expect("Evicting 0 drain") // unknown is not empty
	w.contents = Contents{}
	w.pass(3)
	w.expect("Drained 0 drain unschedulable")
	w.undrain()
	w.contents = Contents{Objects: []Object{{Kind: "ReplicaSet", Name: "web", Placed: 4, Ready: 3}}}
	w.pass(100)
	w.expect("Returning 0")
	w.contents.Objects[0].Ready = 4
	w.pass(4)
	w.contents.Objects[0].Placed, w.contents.Objects[0].Ready = 5, 5 // a placement on its way has arrived
	w.pass(4)
	w.expect("Returning 0")
	w.pass(3)
	w.expect("- 30")
	if want := []string{v1beta1.EventDraining, v1beta1.EventDrained, v1beta1.EventUndrained}; !slices.Equal(w.events, want) || len(w.c.Annotations) > 0 {
		t.Errorf("events %v, want %v; annotations left %v", w.events, want, w.c.Annotations)
	}
}

// TestDrain_TheTTLBeginsWhenAllProvidersHaveTheWeight: of one that is behind nobody knows when resolvers will forget.
func TestDrain_TheTTLBeginsWhenAllProvidersHaveTheWeight(t *testing.T) {
	w := newWorld(t, nil)
	w.contents = Contents{Objects: []Object{{Placed: 1}}}
	w.providers = []v1beta1.DNSProvider{{Name: "bind", Message: "i/o timeout"}, {Name: "built-in", Published: true, Since: metav1.NewTime(start.Add(-time.Hour))}}
	w.drain()
	w.pass(40)
	w.expect("Publishing 0")
	if got := w.c.Status.Drain.Message; got != "DNS provider bind: i/o timeout" {
		t.Error(got)
	}
	w.providers[0] = v1beta1.DNSProvider{Name: "bind", Published: true, Since: metav1.NewTime(w.now)}
	w.pass(17)
	w.expect("Expiring 0")
	w.providers[0].Published = false // it gets behind again
	w.pass(1)
	w.expect("Publishing 0")
	for seconds, want := range map[int32]string{0: "Evicting 0 drain", 5: "Expiring 0"} { // whatever they report
		fixed := newWorld(t, nil)
		fixed.contents, fixed.providers = w.contents, w.providers
		Request(fixed.c, v1beta1.ClusterDrain{TTLSeconds: &seconds})
		fixed.pass(6)
		fixed.expect(want)
		fixed.pass(2)
		fixed.expect("Evicting 0 drain")
	}
}

func TestDrain_GoesAgainWhereItWasCancelled(t *testing.T) {
	w := newWorld(t, nil)
	w.contents = Contents{Objects: []Object{{Placed: 1}}}
	w.drain()
	w.pass(30)
	w.undrain()
	w.pass(5)
	w.expect("Returning 0")
	w.drain()
	w.pass(1)
	w.expect("Evicting 0 drain") // the weight has been 0 all the time
	w.undrain()
	w.contents = Contents{}
	w.pass(7)
	w.expect("- 100")
}

// TestDrain_LeavesWhatPeopleChange: what somebody sets meanwhile is not undone, and what was there before comes back.
func TestDrain_LeavesWhatPeopleChange(t *testing.T) {
	w := newWorld(t, nil, Cordon)
	w.drain()
	w.pass(5)
	w.c.Spec.DNSWeight = new(int32(40)) // before replicas move it is what the undoing restores
	w.pass(1)
	w.expect("Expiring 0 unschedulable")
	w.pass(30)
	w.expect("Drained 0 unschedulable drain")
	DropTaint(w.c, Taint)
	w.pass(5)
	w.expect("Blocked 0 unschedulable")
	w.drain()
	w.contents = Contents{Objects: []Object{{Current: 1}}} // it is looked at again
	w.pass(5)
	w.expect("Evicting 0 unschedulable drain")
	w.contents = Contents{}
	w.pass(3)
	w.undrain()
	w.pass(2)
	w.expect("Returning 0 unschedulable")
	w.pass(5)
	w.expect("- 40 unschedulable") // it was cordoned before

	w = newWorld(t, nil)
	w.drain()
	w.pass(30)
	w.c.Spec.DNSWeight = new(int32(7)) // of a drained cluster it stays
	w.pass(5)
	w.expect("Drained 7 drain unschedulable")
	w.undrain()
	w.pass(2)
	AddTaint(w.c, Cordon) // somebody cordons it while it comes back
	w.pass(10)
	w.expect("- 7 unschedulable")
}

// TestDrain_LeavesWhatOthersTookOut: what a drill has taken out is its own, until somebody drains or undrains the cluster.
func TestDrain_LeavesWhatOthersTookOut(t *testing.T) {
	drilled := func() *world {
		w := newWorld(t, new(int32), Taint)
		w.c.Annotations = map[string]string{v1beta1.DrainAnnotation: (&v1beta1.Drain{Since: metav1.NewTime(start), DNSWeight: new(int32(30)), Drill: "uid"}).String()}
		return w
	}
	w := drilled()
	w.pass(30)
	w.expect("- 0 drain")
	w.drain()
	w.pass(3)
	if d, _ := v1beta1.ParseDrain(w.c.Annotations[v1beta1.DrainAnnotation]); d.Drill != "" {
		t.Errorf("it still is the drill's: %s", d)
	}
	w.expect("Drained 0 drain unschedulable")
	for name, w := range map[string]*world{"drained": w, "drilled": drilled()} {
		w.undrain()
		w.pass(10)
		if got := w.String(); got != "- 30" {
			t.Errorf("%s, undrained: %s", name, got)
		}
	}
	byHand := newWorld(t, nil, Taint)
	byHand.pass(5)
	byHand.expect("- 100 drain")
	byHand.undrain()
	byHand.expect("- 100")
}

func TestDrain_IsBlockedByARecordThatCannotBeRead(t *testing.T) {
	w := newWorld(t, nil, Taint)
	w.c.Annotations = map[string]string{v1beta1.DrainAnnotation: "{" + strings.Repeat("x\n", 1000)}
	w.drain()
	w.pass(5)
	w.expect("Blocked 100 drain")
	if got := w.c.Status.Drain.Message; !strings.Contains(got, "undrain removes what cannot be read") || len(got) > v1beta1.MaxText {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	w.undrain()
	w.pass(1)
	w.expect("- 100")
}

// TestDrain_UndoneIsAsBefore: whatever is asked for, in whatever order, and whenever another process goes on, who undoes the
// drain in the end has the cluster as it was.
func TestDrain_UndoneIsAsBefore(t *testing.T) {
	for seed := range uint64(2000) {
		chance := rand.New(rand.NewPCG(seed, 20))
		w := newWorld(t, []*int32{nil, new(int32), new(int32(30))}[chance.IntN(3)], [][]corev1.Taint{nil, {Cordon}, {{Key: "a", Effect: corev1.TaintEffectNoExecute}}}[chance.IntN(3)]...)
		was := w.c.DeepCopy().Spec
		for range chance.IntN(12) {
			switch chance.IntN(5) {
			case 0:
				w.undrain()
			case 1:
				w.contents = []Contents{{}, {Unknown: "?"}, {Objects: []Object{{Placed: 1}}}, {Objects: []Object{{Placed: 1, Current: 1, Ready: 1}}}}[chance.IntN(4)]
			case 2:
				w.steady = Steady{} // another process
			default:
				w.drain()
			}
			w.pass(chance.IntN(25))
		}
		w.undrain()
		w.contents = Contents{}
		w.pass(10)
		if w.c.Status.Drain != nil || len(w.c.Annotations) > 0 || !reflect.DeepEqual(w.c.Spec, was) {
			t.Fatalf("seed %d: %s %v, was %v", seed, w, w.c.Annotations, was)
		}
	}
}

func TestContents_WhatADrainWaitsFor(t *testing.T) {
	all := Contents{Objects: []Object{
		{Kind: "ReplicaSet", Name: "gone"}, {Kind: "ReplicaSet", Name: "placed", Placed: 1}, {Kind: "ReplicaSet", Name: "large", Current: 5, Ready: 5},
		{Kind: "ReplicaSet", Name: "stays", Placed: 9, Current: 9, Ready: 9, Stays: true}, {Kind: "ReplicaSet", Name: "ready", Ready: 1},
		{Kind: "Job", Name: "done", Placed: 1, Current: 1, Finished: true},
	}}
	names := func(of []Object) (s string) {
		for i := range of {
			s += of[i].Name + " "
		}
		return s
	}
	if got := names(all.left()); got != "large placed ready " {
		t.Errorf("a drain waits for %s", got)
	}
	if got := names(all.missing()); got != "placed " {
		t.Errorf("an undrain waits for %s", got)
	}
}

// TestStatus_IsBounded whatever is in the cluster.
func TestStatus_IsBounded(t *testing.T) {
	c := Contents{Unknown: strings.Repeat("\x1b[2J", 1000)}
	for i := range 1000 {
		c.Objects = append(c.Objects, Object{Kind: "ReplicaSet", Name: fmt.Sprint(i), Placed: 2, Current: 3, Ready: 1, Message: strings.Repeat("no\n", 1000)})
	}
	for _, s := range []v1beta1.ClusterDrainStatus{moving(&c), returning(&c)} {
		s := wait(&v1beta1.Cluster{}, World{Now: start}, s, 0).Status
		if s.Objects != 1000 || s.Placed != 2000 || s.Current != 3000 || s.Ready != 1000 || len(s.Waiting) != maxWaiting || len(s.Message) > v1beta1.MaxText || strings.Contains(s.Message, "\x1b") {
			t.Errorf("%+v", s)
		}
		for _, o := range s.Waiting {
			if len(o.Message) > v1beta1.MaxText {
				t.Errorf("a message of %d bytes", len(o.Message))
			}
		}
	}
}
