package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// Dividing gives all of the number away, to each its exact part rounded down, and one more to the first by name while something is left.
func TestDivideBySharesGivesAllAway(t *testing.T) {
	chance := rand.New(rand.NewPCG(71, 1))
	for range 5000 {
		shares, sum, number := map[string]int64{}, int64(0), int64(chance.IntN(50))
		for i := range chance.IntN(6) {
			shares[fmt.Sprint("c", i)] = int64(1 + chance.IntN(9))
			sum += shares[fmt.Sprint("c", i)]
		}
		got, given := divideByShares(number, shares), int64(0)
		below := map[string]int64{}
		for name, n := range shares {
			for (below[name]+1)*sum <= number*n { // the largest whole part
				below[name]++
			}
			given += below[name]
		}
		for _, name := range slices.Sorted(maps.Keys(shares)) {
			want := below[name]
			if given < number {
				want, given = want+1, given+1
			}
			if got[name] != want {
				t.Fatalf("%d by %v: %s gets %d, want %d", number, shares, name, got[name], want)
			}
		}
		if len(got) != len(shares) || len(shares) > 0 && given != number {
			t.Fatalf("%d by %v: got %v", number, shares, got)
		}
	}
	if got := divideByShares(7, map[string]int64{"a": 0}); len(got) > 0 {
		t.Errorf("nobody takes part, and got %v", got)
	}
}

// Whatever the order in which clusters get their copies of a Job, all completions are given away once: also where the placement moves between,
// by which a cluster that is left keeps what it has done.
func TestRemainingSharesAddUp(t *testing.T) {
	chance := rand.New(rand.NewPCG(72, 1))
	names := []string{"a", "b", "c", "d"}
	job := func(completions, succeeded int64) *unstructured.Unstructured {
		return parse(t, fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nspec: {completions: %d}\nstatus: {succeeded: %d}", completions, succeeded))
	}
	for range 1000 {
		all := int64(1 + chance.IntN(40))
		s := Source{Kind: kind(t, "Job"), Object: job(all, 0), Placement: &v1beta1.Placement{Clusters: map[string]int64{}}}
		place := func() {
			clear(s.Placement.Clusters)
			for _, name := range names[:1+chance.IntN(3)] {
				s.Placement.Clusters[name] = int64(1 + chance.IntN(5))
			}
		}
		place()
		copies, moved, made := map[string]*unstructured.Unstructured{}, false, 0
		create := func(name string) {
			if s.Share(name) > 0 && copies[name] == nil {
				siblings := maps.Clone(copies)
				made++
				copies[name] = job(s.remainingShare(all, Target{Cluster: cluster(name, nil), Siblings: siblings}), 0)
			}
		}
		for _, i := range chance.Perm(4)[:chance.IntN(5)] {
			create(names[i])
		}
		if chance.IntN(2) == 0 {
			moved, made = true, 0
			place()
			for name, copy := range copies {
				if n, _, _ := unstructured.NestedInt64(copy.Object, "spec", "completions"); s.Share(name) == 0 {
					copies[name] = job(n, int64(chance.IntN(int(n)+1)))
				}
			}
		}
		given := func() (n int64) {
			for name, copy := range copies {
				has, _, _ := unstructured.NestedInt64(copy.Object, "spec", "completions")
				if s.Share(name) == 0 {
					has = statusOf(copy, "succeeded")
				}
				n += has
			}
			return n
		}
		before := given()
		for _, i := range chance.Perm(4) {
			create(names[i])
		}
		for name := range s.Placement.Clusters {
			if n, _, _ := unstructured.NestedInt64(copies[name].Object, "spec", "completions"); !moved && n != divideByShares(all, s.Placement.Clusters)[name] {
				t.Fatalf("%d by %v: %s has %d", all, s.Placement.Clusters, name, n)
			}
		}
		total := given()
		if made > 0 && total != max(all, before) { // where nobody makes one, what lacks is another round's
			t.Fatalf("%d by %v, moved %t: %d are given away, %v", all, s.Placement.Clusters, moved, total, asJSON(copies))
		}
	}
}

// Our autoscalers keep in the clusters that stay at least what leaves the others, by their shares, and no more than what is placed there or their maximum.
func TestFloorsTakeWhatLeaves(t *testing.T) {
	chance := rand.New(rand.NewPCG(73, 1))
	for range 3000 {
		s, shares := Source{Kind: kind(t, "Deployment"), Placement: &v1beta1.Placement{Clusters: map[string]int64{}}}, []Share{}
		leaving, placed, capped := int64(0), int64(0), false
		for i := range 1 + chance.IntN(5) {
			share := Share{Cluster: fmt.Sprint("c", i), Applied: int64(chance.IntN(20)), Placed: int64(max(0, chance.IntN(15)-5)), Most: int64(chance.IntN(30))}
			if s.Placement.Clusters[share.Cluster] = share.Placed; share.Placed == 0 {
				leaving += share.Applied
			}
			shares, placed = append(shares, share), placed+share.Placed
		}
		floors, sum := s.floors(shares), int64(0)
		for i, share := range shares {
			sum += floors[i]
			capped = capped || floors[i] == share.Most || floors[i] == share.Placed && share.Placed > 0
			if floors[i] > share.Most || floors[i] > share.Placed || floors[i] < 0 {
				t.Fatalf("%+v keeps %d", share, floors[i])
			}
			if placed > 0 && floors[i] > leaving*share.Placed/placed+1 {
				t.Fatalf("%+v of %d keeps %d while %d leave", share, placed, floors[i], leaving)
			}
		}
		if Leaving(shares) != leaving || !capped && placed > 0 && sum < leaving {
			t.Fatalf("%d leave, said to be %d; floors %v of %+v", leaving, Leaving(shares), floors, shares)
		}
	}
	if n := (Source{Kind: kind(t, "Deployment")}).Floor("a", 7, 9); n != 0 {
		t.Errorf("nothing is placed, and a keeps %d", n)
	}
}

// A floor raises the minimum of an autoscaler up to its maximum, and never lowers it.
func TestKeepsAtLeast(t *testing.T) {
	for _, c := range []struct {
		spec  string
		floor int64
		want  string
	}{
		{"minReplicas: 2, maxReplicas: 9", 5, `{"maxReplicas":9,"minReplicas":5}`}, {"minReplicas: 2, maxReplicas: 9", 2, `{"maxReplicas":9,"minReplicas":2}`},
		{"minReplicas: 7, maxReplicas: 9", 5, `{"maxReplicas":9,"minReplicas":7}`}, {"minReplicas: 2, maxReplicas: 9", 20, `{"maxReplicas":9,"minReplicas":9}`},
		{"maxReplicas: 9", 1, `{"maxReplicas":9}`}, {"maxReplicas: 9", 2, `{"maxReplicas":9,"minReplicas":2}`}, {"minReplicas: 0, maxReplicas: 9", 1,
			`{"maxReplicas":9,"minReplicas":0}`},
		{"minReplicas: 2", 5, `{"minReplicas":2}`},
	} {
		u := parse(t, "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nspec: {"+c.spec+"}")
		keepsAtLeast(u, c.floor)
		if got := asJSON(u.Object["spec"]); got != c.want {
			t.Errorf("%s with %d: got %s, want %s", c.spec, c.floor, got, c.want)
		}
	}
	s := source(kind(t, "HorizontalPodAutoscaler"), parse(t,
		"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web, namespace: shop}\nspec: {maxReplicas: 9}"))
	d := Desire(s, Target{Cluster: cluster("east-a", nil), Federation: "uid-1", Floor: 3})
	if n, _, _ := unstructured.NestedInt64(d.Object.Object, "spec", "minReplicas"); n != 3 {
		t.Errorf("the copy of an autoscaler has the minimum %d while 3 are to be kept", n)
	}
}

// In a rollout of one cluster at a time never two clusters have the change and are not healthy; they go in the policy's order, then by name,
// and all have it in the end.
func TestRolloutIsOneClusterAtATime(t *testing.T) {
	chance := rand.New(rand.NewPCG(74, 1))
	for range 500 {
		policy, turns := &v1beta1.RolloutPolicy{Strategy: v1beta1.RolloutOneClusterAtATime}, []Turn{}
		var names, went []string
		for i := range 1 + chance.IntN(5) {
			names = append(names, fmt.Sprint("c", i))
			turns = append(turns, Turn{Cluster: names[i], Reachable: true, Holds: true, Healthy: chance.IntN(5) > 0})
		}
		for _, i := range chance.Perm(len(names))[:chance.IntN(len(names)+1)] {
			policy.Order = append(policy.Order, names[i])
		}
		order := slices.Concat(policy.Order, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(policy.Order, n) }))
		for steps := 0; len(went) < len(names); steps++ {
			if steps > 1000 {
				t.Fatalf("order %v: only %v have the change", order, went)
			}
			under := 0
			for i := range turns {
				turn := &turns[i]
				if may, why := MayUpdate(turns, turn.Cluster, policy); may != (why == "") {
					t.Fatalf("%s may: %t, waits for %q", turn.Cluster, may, why)
				} else if may && !turn.Updated {
					went, turn.Updated, turn.Healthy = append(went, turn.Cluster), true, false
				}
				if chance.IntN(3) == 0 {
					turn.Healthy = true
				}
				if turn.Updated && !turn.Healthy {
					under++
				}
			}
			if under > 1 || !slices.Equal(went, order[:len(went)]) {
				t.Fatalf("%d at once; went %v, want %v", under, went, order)
			}
		}
	}
	two := []Turn{{Cluster: "a", Reachable: true, Holds: true}, {Cluster: "b", Reachable: true, Holds: true}}
	if may, why := MayUpdate(two, "a", &v1beta1.RolloutPolicy{Paused: true}); may || !strings.Contains(why, "paused") {
		t.Errorf("paused: may %t, %s", may, why)
	}
	if may, _ := MayUpdate(two, "b", &v1beta1.RolloutPolicy{}); !may {
		t.Error("without a strategy one waits for the other")
	}
}

// How many pods may go without taking a ready one depends on who deletes them: a StatefulSet goes in order of its ordinals, a Deployment that
// rolls in proportion.
func TestSpareOfEachKind(t *testing.T) {
	for _, c := range []struct {
		kind, spec, status string
		want               int64
	}{
		{"StatefulSet", "replicas: 5", "replicas: 5, readyReplicas: 3", 2},
		{"StatefulSet", "replicas: 5, podManagementPolicy: OrderedReady", "replicas: 4, readyReplicas: 3", 2},
		{"StatefulSet", "replicas: 5, podManagementPolicy: Parallel", "replicas: 5, readyReplicas: 3", 0},
		{"StatefulSet", "replicas: 5, podManagementPolicy: Parallel", "replicas: 4, readyReplicas: 3", 1},
		{"Deployment", "replicas: 5", "observedGeneration: 1, replicas: 5, updatedReplicas: 5, readyReplicas: 3", 2},
		{"Deployment", "replicas: 5", "observedGeneration: 1, replicas: 5, updatedReplicas: 4, readyReplicas: 3", 0},
		{"Deployment", "replicas: 5", "observedGeneration: 0, replicas: 4, updatedReplicas: 4, readyReplicas: 3", 1},
		{"ReplicaSet", "replicas: 5", "replicas: 5, readyReplicas: 3", 2},
		{"StatefulSet", "replicas: 5", "replicas: 9, readyReplicas: 9", 0},
	} {
		copy := parse(t, "apiVersion: apps/v1\nkind: "+c.kind+"\nmetadata: {generation: 1}\nspec: {"+c.spec+"}\nstatus: {"+c.status+"}")
		federated := parse(t, "apiVersion: apps/v1\nkind: "+c.kind)
		annotate(v1beta1.PlacementAnnotation, `{"clusters":{"east-a":1}}`)(federated)
		s := source(kind(t, c.kind), federated)
		if got := ShareOf(s, Target{Cluster: east.Cluster, Have: copy}); got.Spare != c.want {
			t.Errorf("%s {%s}, status {%s}: %d can go, want %d", c.kind, c.spec, c.status, got.Spare, c.want)
		}
		if got := ShareOf(s, Target{Cluster: east.Cluster, Have: copy, HeartbeatsStale: true}); got.Ready != 0 || got.Unready != 0 || got.Spare != 0 ||
			got.Applied != 5 {
			t.Errorf("%s of nodes that are silent: %+v", c.kind, got)
		}
	}
}

// A copy is healthy when its controller has seen its spec and each number that counts for the kind is the one that is asked for, 1 where none is.
func TestHealthyOfEachKind(t *testing.T) {
	for _, c := range []struct {
		kind, spec, status string
		want               bool
	}{
		{"Deployment", "replicas: 2", "observedGeneration: 3, replicas: 2, updatedReplicas: 2, availableReplicas: 2", true},
		{"Deployment", "replicas: 2", "observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2", false},
		{"Deployment", "replicas: 2", "observedGeneration: 3, replicas: 3, updatedReplicas: 2, availableReplicas: 2", false},
		{"Deployment", "replicas: 2", "observedGeneration: 3, replicas: 2, updatedReplicas: 1, availableReplicas: 2", false},
		{"Deployment", "paused: false", "observedGeneration: 3, replicas: 1, updatedReplicas: 1, availableReplicas: 1", true},
		{"StatefulSet", "replicas: 2", "observedGeneration: 3, replicas: 2, updatedReplicas: 2, availableReplicas: 1", false},
		{"ReplicaSet", "replicas: 2", "observedGeneration: 4, replicas: 2, availableReplicas: 2", true},
		{"ReplicaSet", "replicas: 0", "observedGeneration: 3", true},
		{"DaemonSet", "minReadySeconds: 0", "observedGeneration: 3, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2", true},
		{"DaemonSet", "minReadySeconds: 0", "observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2", false},
		{"DaemonSet", "minReadySeconds: 0", "observedGeneration: 3, desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2", false},
		{"DaemonSet", "minReadySeconds: 0", "observedGeneration: 3, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1", false},
	} {
		copy := parse(t, "apiVersion: apps/v1\nkind: "+c.kind+"\nmetadata: {generation: 3}\nspec: {"+c.spec+"}\nstatus: {"+c.status+"}")
		if got := kind(t, c.kind).Healthy(copy); got != c.want {
			t.Errorf("%s {%s}, status {%s}: healthy %t, want %t", c.kind, c.spec, c.status, got, c.want)
		}
	}
}
