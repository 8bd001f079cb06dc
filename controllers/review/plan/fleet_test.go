package plan

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	failoverplan "federation/controllers/failover/plan"
	"federation/scheduler"
)

// asFleet returns a fleet of what an input has.
func asFleet(in *Input) *Fleet {
	f := NewFleet(*in.Info, failoverplan.SettingsOf(*in.Info))
	f.SetWorld(asRead(in.Clusters), in.Policies)
	for _, o := range in.Objects {
		f.Set(o)
	}
	for _, o := range in.Named {
		f.SetNamed(o)
	}
	return f
}

// asRead returns copies of Clusters, as if read again.
func asRead(clusters []*v1beta1.Cluster) (out []*v1beta1.Cluster) {
	for _, c := range clusters {
		out = append(out, c.DeepCopy())
	}
	return out
}

// TestLoseIsReview checks that a fleet's answer about a loss equals a review that decides every object, also after
// changes. Acceptance test 30 of drills: readiness equals a whole review, in 1,000 random fleets.
func TestLoseIsReview(t *testing.T) {
	for seed := range int64(1000) {
		f := newFleet(seed)
		kept := asFleet(&f.Input)
		for range 2 {
			for _, spec := range f.losses() {
				if spec.Drained {
					continue
				}
				want, errs := Review(f.Input, spec)
				if len(errs) > 0 {
					t.Fatal(errs)
				}
				same(t, seed, kept.Lose(want.Clusters, f.Now), &want)
			}
			f.change()
			f.change()
			kept.SetWorld(asRead(f.Clusters), slices.Clone(f.Policies))
			for _, o := range f.Objects { // only what was changed, as events report
				if was := kept.objects[keyOf(o.Kind, o.Namespace, o.Name)]; was.Replicas != o.Replicas {
					kept.Set(o)
				}
			}
		}
	}
}

func same(t *testing.T, seed int64, got Loss, want *v1beta1.FailoverReviewStatus) {
	t.Helper()
	var replicas, unschedulable int64
	names := []string{}
	for _, o := range got.Objects {
		names, unschedulable, replicas = append(names, o.Name), unschedulable+o.Unschedulable, replicas+o.Placed
		if o.Placed < 0 || o.Kept < 0 || o.Unschedulable < 0 || o.Placed+o.Kept+o.Unschedulable != o.Replicas {
			t.Fatalf("seed %d: %+v does not add up", seed, o)
		}
	}
	var moved, nowhere int64
	for i, m := range want.Moves {
		if i >= len(names) || names[i] != m.Name {
			t.Fatalf("seed %d: objects %v, in the review %s", seed, names, asText(want.Moves))
		}
		var gone int64
		for _, c := range m.Clusters {
			if slices.Contains(want.Clusters, c.Cluster) {
				gone += c.Before - c.After
			}
		}
		o := got.Objects[i]
		moved, nowhere = moved+min(gone, o.Placed), nowhere+min(m.Unschedulable, o.Replicas)
	}
	if got.Held != want.SuspendedReason || len(names) != len(want.Moves) || unschedulable != nowhere || replicas != moved {
		t.Fatalf("seed %d: held %q, %d objects, %d placed elsewhere, %d nowhere; in the review %q, %d, %d, %d", seed, got.Held, len(names), replicas, unschedulable,
			want.SuspendedReason, len(want.Moves), moved, nowhere)
	}
}

func TestALossInNumbers(t *testing.T) {
	label := func(policy string) map[string]string { return map[string]string{"policy": policy} }
	stays := policyFor("stays", v1beta1.PlacementPolicySpec{Failover: &v1beta1.FailoverPolicy{Disabled: true}})
	only := policyFor("only", v1beta1.PlacementPolicySpec{Clusters: &v1beta1.ClusterAffinity{Names: []string{"east-a"}}})
	for name, c := range map[string]struct {
		room    int64
		cordon  bool // the others
		object  *unstructured.Unstructured
		want    ObjectLoss
		unknown int
	}{
		"all find a place":                    {room: 9, object: replicas("web", `{"east-a":6,"west-a":2}`, nil), want: ObjectLoss{Replicas: 6, Placed: 6}},
		"some fit nowhere":                    {room: 2, object: replicas("web", `{"east-a":6,"west-a":2}`, nil), want: ObjectLoss{Replicas: 6, Placed: 4, Unschedulable: 2}},
		"all fit nowhere: that is not pinned": {room: 0, object: replicas("web", `{"east-a":6}`, nil), want: ObjectLoss{Replicas: 6, Unschedulable: 6}},
		"nobody knows the room":               {room: -1, object: replicas("web", `{"east-a":6}`, nil), want: ObjectLoss{Replicas: 6, Placed: 6}, unknown: 2},
		"failover is off, others run":         {room: 9, object: replicas("web", `{"east-a":6,"west-a":2}`, label("stays")), want: ObjectLoss{Replicas: 6, Kept: 6}},
		"failover is off, and all is there":   {room: 9, object: replicas("web", `{"east-a":6}`, label("stays")), want: ObjectLoss{Replicas: 6, Kept: 6, Pinned: true}},
		"no other may be used now":            {room: 9, cordon: true, object: replicas("web", `{"east-a":6}`, nil), want: ObjectLoss{Replicas: 6, Unschedulable: 6}},
		"it may be nowhere else":              {room: 9, object: replicas("web", `{"east-a":6}`, label("only")), want: ObjectLoss{Replicas: 6, Unschedulable: 6, Pinned: true}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, three(c.room), c.object)
			in.Policies = []*v1beta1.PlacementPolicy{stays, only}
			if c.cordon {
				in.Clusters[1].Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
				in.Clusters[2].Spec.Taints = in.Clusters[1].Spec.Taints
			}
			got := asFleet(&in).Lose([]string{"east-a"}, in.Now)
			c.want.Kind, c.want.Namespace, c.want.Name = "ReplicaSet", "default", "web"
			if len(got.Objects) != 1 || got.Objects[0] != c.want || len(got.Unknown) != c.unknown {
				t.Errorf("%+v, unknown %v; want %+v", got.Objects, got.Unknown, c.want)
			}
		})
	}
}

func TestNamesThatNobodyWouldServe(t *testing.T) {
	one := `{"items":[{"cluster":"east-a","items":[{"ip":"192.0.2.1"}]},{"cluster":"west-a","items":null}]}`
	two := `{"items":[{"cluster":"east-a","items":[{"ip":"192.0.2.1"}]},{"cluster":"west-a","items":[{"ip":"203.0.113.1"}]}]}`
	in := input(t, three(-1), service("one", one), service("two", two), service("none", `{"items":[{"cluster":"east-a","items":null}]}`))
	got := asFleet(&in).Lose([]string{"east-a"}, in.Now)
	if got.Names != 2 || !slices.Equal(got.NamesLost, []string{"one.default.fed.svc.example.test."}) {
		t.Errorf("%d names, %v lost", got.Names, got.NamesLost)
	}
	if got := asFleet(&in).Lose([]string{"east-b"}, in.Now); got.Names != 0 {
		t.Errorf("%d names are served where none is", got.Names)
	}
}

// TestTouched checks that a change of one settled object affects only the loss of its clusters.
func TestTouched(t *testing.T) {
	in := input(t, three(9), replicas("web", `{"east-a":2}`, nil), replicas("api", `{"west-a":2}`, nil))
	f := asFleet(&in)
	scaled := in.Objects[0]
	scaled.Replicas, scaled.Current = 3, &v1beta1.Placement{Clusters: map[string]int64{"east-a": 2, "east-b": 1}}
	if got := f.Set(scaled); got.All || !slices.Equal(got.Clusters, []string{"east-a", "east-b"}) {
		t.Errorf("scaled: %+v", got)
	}
	scaled.Replicas = 5 // not placed yet
	if got := f.Set(scaled); !got.All {
		t.Errorf("it may take room anywhere: %+v", got)
	}
	if got := f.Set(scaled); got.All || got.Clusters != nil {
		t.Errorf("the same again: %+v", got)
	}
	if got := f.Drop("ReplicaSet", "default", "api"); got.All || !slices.Equal(got.Clusters, []string{"west-a"}) {
		t.Errorf("deleted: %+v", got)
	}
	if got := f.SetWorld(slices.Clone(in.Clusters), in.Policies); got.All || len(got.Clusters) > 0 {
		t.Error("the same world touches all")
	}
	fuller := slices.Clone(in.Clusters)
	fuller[1] = member("east-b", "east/b", 1)
	if got := f.SetWorld(fuller, in.Policies); got.All || len(got.Clusters) > 0 {
		t.Error("room touches all")
	}
}

func TestRoomThatIsLeft(t *testing.T) {
	in := input(t, three(11), replicas("web", `{"east-a":20}`, nil))
	f := asFleet(&in)
	room := f.Lose([]string{"east-a"}, in.Now).Room
	if got := room.Gets(); !slices.Equal(got, []string{"east-b", "west-a"}) {
		t.Errorf("gets replicas: %v", got)
	}
	for free, want := range map[int64]bool{20: false, 11: false, 10: true, 4: true} {
		if got := room.Short("east-b", FreeIn(member("east-b", "east/b", free))); got != want {
			t.Errorf("10 are to go to east-b, which has room for %d: short %v", free, got)
		}
	}
	for n, want := range map[string]bool{`{"east-a":2}`: true, `{"east-a":3}`: false, `{"west-a":9}`: true} {
		o, err := scheduler.Read(replicas("other", n, nil))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.TakeIfFits(room, &o, in.Now); got != want {
			t.Errorf("room for %s: %v", n, got)
		}
	}
}

// TestWhatIsDecidedAgainGivesBack: an object takes its room once, however often it is decided.
func TestWhatIsDecidedAgainGivesBack(t *testing.T) {
	in := input(t, three(10), replicas("web", `{"east-a":20}`, nil))
	f := asFleet(&in)
	room := f.Lose([]string{"east-a"}, in.Now).Room
	for i := range 3 {
		if !f.TakeIfFits(room, &in.Objects[0], in.Now) {
			t.Fatalf("there is no room for it when it is decided for the time %d", i+2)
		}
	}
	grown := in.Objects[0]
	grown.Replicas, grown.Current = 21, &v1beta1.Placement{Clusters: map[string]int64{"east-a": 21}}
	if f.Set(grown); f.TakeIfFits(room, &grown, in.Now) {
		t.Error("21 find a place where there is room for 20")
	}
}

// What Lacks reports before a loss is decided again is really lacking, in 300 random fleets with changing rooms and
// replicas.
func TestLackingIsCertain(t *testing.T) {
	lacked := 0
	for seed := range int64(300) {
		f := newFleet(seed)
		kept := asFleet(&f.Input)
		for _, spec := range f.losses() {
			lost, _ := Lost(f.Clusters, spec)
			room := kept.Lose(lost, f.Now).Room
			for i := range f.Clusters {
				if f.one(2) {
					f.Clusters[i] = f.Clusters[i].DeepCopy()
					f.scale = 1
					f.room(i)
				}
			}
			if o := &f.Objects[f.rng.Intn(len(f.Objects))]; o.Current != nil { // what is placed of it is another number
				scaled := *o.Current
				scaled.Clusters = map[string]int64{}
				for name, n := range o.Current.Clusters {
					scaled.Clusters[name] = max(0, n+f.rng.Int63n(5)-2)
				}
				o.Current = &scaled
				kept.Set(*o)
			}
			free := map[string]Amounts{}
			for _, c := range f.Clusters {
				free[c.Name] = FreeIn(c)
			}
			lack := kept.Lacks(room, free)
			kept.SetWorld(f.Clusters, f.Policies)
			loss := kept.Lose(lost, f.Now)
			if lack != "" && nowhere(&loss) == 0 {
				t.Fatalf("seed %d: %s is said to be lacking, and all find a place", seed, lack)
			}
			if lack != "" {
				lacked++
			}
		}
	}
	if t.Logf("%d losses lack room for certain", lacked); lacked < 20 {
		t.Error("these fleets show too little")
	}
}

// TestRoomBeyondNumbers: what nine nodes claim is more than an int64 holds; it is much room, and not less than none.
func TestRoomBeyondNumbers(t *testing.T) {
	in := input(t, three(42), replicas("web", `{"east-a":20}`, nil))
	claimed := &in.Clusters[2].Status.Capacity.Free[0]
	claimed.Nodes, claimed.Free["cpu"], claimed.Free["memory"] = 9, *resource.NewMilliQuantity(1<<60, resource.DecimalSI), *resource.NewQuantity(1<<60, resource.BinarySI)
	f, free := asFleet(&in), map[string]Amounts{}
	for _, c := range in.Clusters {
		free[c.Name] = FreeIn(c)
	}
	if l := f.Lose([]string{"east-a"}, in.Now); f.Lacks(l.Room, free) != "" || l.Room.Short("west-a", free["west-a"]) {
		t.Errorf("room is said to be lacking: %v", free)
	}
}

// TestEndedJobsNeedNoPlace: what ended after the loss was evaluated holds no refit.
func TestEndedJobsNeedNoPlace(t *testing.T) {
	in := input(t, three(42), replicas("web", `{"east-a":20}`, nil), replicas("last", `{"east-a":20}`, nil))
	f := asFleet(&in)
	room := f.Lose([]string{"east-a"}, in.Now).Room
	for i := range in.Objects {
		in.Objects[i].Finished = true
		f.Set(in.Objects[i])
	}
	fuller := asRead(in.Clusters)
	fuller[1], fuller[2] = member("east-b", "east/b", 0), member("west-a", "west/a", 0)
	f.SetWorld(fuller, in.Policies)
	if !f.TakeIfFits(room, &in.Objects[0], in.Now) || !f.Refit(room, in.Now) {
		t.Error("they are said to find no place")
	}
}

// TestRefitAsksForPoliciesAgain: of what would be placed a policy says something else, or has been touched.
func TestRefitAsksForPoliciesAgain(t *testing.T) {
	in := input(t, three(42), replicas("web", `{"east-a":20}`, nil))
	policy := &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
	in.Policies = []*v1beta1.PlacementPolicy{policy}
	f := asFleet(&in)
	room := f.Lose([]string{"east-a"}, in.Now).Room
	touched, other := policy.DeepCopy(), policy.DeepCopy()
	touched.Annotations, other.Spec.Clusters = map[string]string{"a": "b"}, &v1beta1.ClusterAffinity{Names: []string{"east-a"}}
	if f.SetWorld(in.Clusters, []*v1beta1.PlacementPolicy{touched}); !f.Refit(room, in.Now) {
		t.Error("a touched policy keeps it from being refitted")
	}
	if f.SetWorld(in.Clusters, []*v1beta1.PlacementPolicy{other}); f.Refit(room, in.Now) {
		t.Error("refitted, and the policy confines it to the lost cluster")
	}
}

// TestTheEndOfADrainAffectsAll: a drained cluster counts otherwise among those that vanish, and only its annotation says that it is one.
func TestTheEndOfADrainAffectsAll(t *testing.T) {
	in := input(t, three(42))
	draining := in.Clusters[0]
	draining.Spec.Taints = []corev1.Taint{{Key: v1beta1.TaintUnschedulable, Effect: corev1.TaintEffectNoSchedule}, {Key: v1beta1.TaintDrain, Effect: corev1.TaintEffectNoExecute}}
	draining.Annotations = map[string]string{v1beta1.DrainAnnotation: `{"cordoned":true}`}
	f := asFleet(&in)
	drained := slices.Clone(in.Clusters)
	drained[0] = draining.DeepCopy()
	drained[0].Annotations[v1beta1.DrainAnnotation] = `{"cordoned":true,"empty":true}`
	if got := f.SetWorld(drained, nil); !got.All || draining.OutOfService() == drained[0].OutOfService() {
		t.Errorf("%s, then %s: %+v", draining.OutOfService(), drained[0].OutOfService(), got)
	}
}

// TestPoliciesAffectTheirNamespace: a policy that says something else affects the clusters with objects of its namespace; one that is only touched, none.
func TestPoliciesAffectTheirNamespace(t *testing.T) {
	in := input(t, three(42), replicas("web", `{"east-a":2}`, nil))
	f := asFleet(&in)
	policy := &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
	touched, other, elsewhere := policy.DeepCopy(), policy.DeepCopy(), policy.DeepCopy()
	touched.Annotations = map[string]string{"a": "b"}
	other.Spec.Priority = 7
	elsewhere.Namespace = "shop"
	for _, c := range []struct {
		what string
		now  []*v1beta1.PlacementPolicy
		want string
	}{
		{"new", []*v1beta1.PlacementPolicy{policy}, "[east-a]"}, {"touched", []*v1beta1.PlacementPolicy{touched}, "[]"}, {"changed", []*v1beta1.PlacementPolicy{other}, "[east-a]"},
		{"one elsewhere", []*v1beta1.PlacementPolicy{other, elsewhere}, "[]"}, {"all deleted", nil, "[east-a]"},
	} {
		if got := f.SetWorld(in.Clusters, c.now); got.All || fmt.Sprint(got.Clusters) != c.want {
			t.Errorf("%s: %+v, want %s", c.what, got, c.want)
		}
	}
}

// TestStuckPodsAreHeardOf checks that an object with unschedulable pods, which may move, is decided whatever is lost.
func TestStuckPodsAreHeardOf(t *testing.T) {
	in := input(t, three(9), replicas("web", `{"east-a":2}`, nil))
	f := asFleet(&in)
	stuck := slices.Clone(in.Clusters)
	stuck[0] = member("east-a", "east/a", 9)
	stuck[0].Status.Capacity.Unschedulable = []v1beta1.UnschedulablePods{{Kind: "ReplicaSet", Namespace: "default", Name: "web", Pods: 1}}
	for i, clusters := range [][]*v1beta1.Cluster{in.Clusters, stuck, in.Clusters} {
		f.SetWorld(clusters, in.Policies)
		if _, unsteady := f.Objects(); unsteady != i%2 {
			t.Errorf("%d: %d may take room", i, unsteady)
		}
	}
}

// TestRefitIsSurvival checks that where Refit finds places for all after the room in clusters has changed, a new evaluation does too, in 2,000 random fleets.
func TestRefitIsSurvival(t *testing.T) {
	refitted, moved, survived := 0, 0, 0
	for seed := range int64(2000) {
		f := newFleet(seed)
		kept := asFleet(&f.Input)
		for _, spec := range f.losses() {
			lost, _ := Lost(f.Clusters, spec)
			loss := kept.Lose(lost, f.Now)
			if len(loss.Objects) == 0 || nowhere(&loss) > 0 || len(loss.Unknown) > 0 {
				continue
			}
			for fits := true; fits && !f.one(4); {
				for i := range f.Clusters {
					if f.one(3) {
						f.Clusters[i] = f.Clusters[i].DeepCopy()
						f.room(i)
					}
				}
				kept.SetWorld(f.Clusters, f.Policies)
				want, was := kept.Lose(lost, f.Now), fmt.Sprint(loss.Room.gets)
				if nowhere(&want) == 0 {
					survived++
				}
				if fits = kept.Refit(loss.Room, f.Now); !fits {
					break
				}
				if refitted++; fmt.Sprint(loss.Room.gets) != was {
					moved++
				}
				if n := nowhere(&want); n > 0 {
					t.Fatalf("seed %d: all have places, and by an evaluation %d replicas have none", seed, n)
				}
			}
		}
	}
	if t.Logf("%d refitted, %d of them with other places; an evaluation finds %d survived", refitted, moved, survived); refitted < 1000 || moved < 200 || survived > 2*refitted {
		t.Error("these fleets show too little")
	}
}

// nowhere returns how many replicas would fit nowhere.
func nowhere(l *Loss) (n int64) {
	for _, o := range l.Objects {
		n += o.Unschedulable
	}
	return n
}

// TestRefitCountsWhatHasGrown: an object that was checked has taken its room, and one that names a cluster that has left harms nobody.
func TestRefitCountsWhatHasGrown(t *testing.T) {
	gone := replicas("db", `{"gone":1,"west-a":1}`, nil)
	gone.SetKind("StatefulSet")
	gone.Object["spec"].(map[string]any)["volumeClaimTemplates"] = []any{map[string]any{"metadata": map[string]any{"name": "d"}}}
	for added, want := range map[string]bool{`{"east-a":20}`: false, `{"west-a":20}`: true} {
		in := input(t, three(42), replicas("web", `{"east-a":20}`, nil), gone)
		f := asFleet(&in)
		room := f.Lose([]string{"east-a"}, in.Now).Room
		o, err := scheduler.Read(replicas("new", added, nil))
		if err != nil {
			t.Fatal(err)
		}
		f.Set(o)
		if !f.TakeIfFits(room, &o, in.Now) {
			t.Fatal("there is no room before")
		}
		fuller := asRead(in.Clusters)
		fuller[1], fuller[2] = member("east-b", "east/b", 12), member("west-a", "west/a", 12)
		fuller[2].Status.Capacity.Unschedulable = []v1beta1.UnschedulablePods{{Kind: "StatefulSet", Namespace: "default", Name: "db", Pods: 1}}
		f.SetWorld(fuller, in.Policies)
		if got := f.Refit(room, in.Now); got != want {
			t.Errorf("new at %s: refitted %v, and an evaluation finds %d without a place", added, got, nowhere(new(f.Lose([]string{"east-a"}, in.Now))))
		}
	}
}
