package plan

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// snapshot returns what the engine would know of a simulated move when it syncs one cluster.
func (s *simulation) snapshot(kind *Kind, own int) Snapshot {
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "u1", "finalizers": []any{v1beta1.DeleteFromClustersFinalizer}},
		"spec":     map[string]any{"replicas": s.asked},
	}}
	placement := &v1beta1.Placement{Clusters: map[string]int64{}}
	now := Snapshot{Source: Source{Kind: kind, Object: object, Placement: placement}, AutoscalersSynced: true}
	for i, c := range s.clusters {
		name := fmt.Sprint("cluster-", i)
		placement.Clusters[name] = c.target
		if i == own {
			now.Own = len(now.Members)
		}
		if c.away {
			continue
		}
		c.settles()
		one := Standing{Target: Target{Cluster: &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}}}
		if c.applied > 0 || c.total > 0 {
			one.Have = &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": "web", "namespace": "shop", "annotations": map[string]any{v1beta1.SourceAnnotation: "u1"}},
				"spec":     map[string]any{"replicas": c.applied},
				"status":   map[string]any{"replicas": c.seenTotal, "readyReplicas": c.seen},
			}}
		}
		if c.ceiling >= 0 {
			one.MostReady = &c.ceiling
		}
		now.Members = append(now.Members, one)
	}
	now.Target = now.Members[now.Own].Target
	return now
}

// replicas returns the number of a copy after a step.
func (step Step) replicas(have *unstructured.Unstructured) int64 {
	switch step.Verb {
	case Create, Update:
		n, _, _ := unstructured.NestedInt64(step.Want.Object.Object, "spec", "replicas")
		return n
	case Delete:
		return 0
	}
	return Applied(Source{Kind: &Kind{FederatedKind: v1beta1.FederatedKind{Replicas: "replicas"}}}, have)
}

// TestNextKeepsTheLaw checks that the law of ready replicas holds at every step that Next decides, over random moves,
// and that each way to decide with less than a snapshot, or faster than it allows, breaks it.
func TestNextKeepsTheLaw(t *testing.T) {
	k := kind(t, "ReplicaSet")
	for _, mutant := range []struct {
		name   string
		mutate func(*Snapshot)
		next   func(Snapshot) Step
	}{
		{name: ""},
		{name: "what a write is about to take still counts", mutate: func(s *Snapshot) {
			for i := range s.Members {
				s.Members[i].MostReady = nil
			}
		}},
		{name: "what is not ready yet counts", mutate: func(s *Snapshot) {
			for i := range s.Members {
				if i != s.Own && s.Members[i].Have != nil {
					have := s.Members[i].Have.DeepCopy()
					n, _, _ := unstructured.NestedInt64(have.Object, "spec", "replicas")
					have.Object["status"] = map[string]any{"replicas": n, "readyReplicas": n}
					s.Members[i].Have = have
				}
			}
		}},
		{name: "nobody is asked", next: func(s Snapshot) Step {
			step := Step{Want: Desire(s.Source, s.Target)}
			step.Verb = Operate(step.Want, s.Target.Have, "")
			return step
		}},
		{name: "less is asked for than the object says", mutate: func(s *Snapshot) {
			object := s.Source.Object.DeepCopy()
			object.Object["spec"] = map[string]any{"replicas": s.Source.Asked() / 2}
			s.Source.Object = object
		}},
	} {
		t.Run(mutant.name, func(t *testing.T) {
			next := Next
			if mutant.next != nil {
				next = mutant.next
			}
			decide := func(s *simulation, own int) int64 {
				now := s.snapshot(k, own)
				if mutant.mutate != nil {
					mutant.mutate(&now)
				}
				return next(now).replicas(now.Target.Have)
			}
			broken := ""
			for seed := range uint64(100) {
				if broken = simulate(seed, decide); broken != "" {
					break
				}
			}
			if sound := mutant.name == ""; sound != (broken == "") {
				t.Errorf("the law is broken: %t\n%s", broken != "", broken)
			}
		})
	}
}

// TestSnapshotNext checks that the snapshot alone decides what a create waits for, and whose turn it is.
func TestSnapshotNext(t *testing.T) {
	configMap := func(change func(*Snapshot)) Snapshot {
		now := Snapshot{
			Source: Source{Kind: kind(t, "ConfigMap"), Object: &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": "config", "namespace": "shop", "uid": "u1", "finalizers": []any{v1beta1.DeleteFromClustersFinalizer}},
			}}},
			Target: Target{Cluster: &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east-a"}}, Federation: "fed"},
		}
		if change != nil {
			change(&now)
		}
		return now
	}
	for _, c := range []struct {
		name   string
		change func(*Snapshot)
		verb   Verb
		reason string
	}{
		{"is created", nil, Create, "goes to every selected cluster"},
		{"its Cluster is not known", func(s *Snapshot) { s.ClusterUnknown = true }, Nothing, "the Cluster has not been seen yet"},
		{"has no finalizers", func(s *Snapshot) { s.Source.Object.SetFinalizers(nil) }, Wait, "waits for its finalizers"},
		{"its namespace terminates", func(s *Snapshot) { s.Namespace = NamespaceTerminating }, Wait, "its namespace is being deleted"},
		{"its namespace is missing", func(s *Snapshot) { s.Namespace = NamespaceMissing }, Wait, "waits for its namespace"},
		{"somebody deletes it again and again", func(s *Snapshot) { s.Paused = "is deleted again and again" }, Wait, "is deleted again and again"},
		{"is no more", func(s *Snapshot) { s.Source.Object = nil; s.ClusterUnknown = true }, Nothing, "deleted at the federation"},
	} {
		if got := Next(configMap(c.change)); got.Verb != c.verb || got.Want.Reason != c.reason {
			t.Errorf("%s: %q, %q, want %q, %q", c.name, got.Verb, got.Want.Reason, c.verb, c.reason)
		}
	}
}

// TestWhatHasJustLeftKeepsItsFloor checks that a cluster that has given up five of seven replicas keeps the last two until the
// autoscaler of another one has made the part of all seven that comes to it, and not only that of the two.
func TestWhatHasJustLeftKeepsItsFloor(t *testing.T) {
	now := autoscaled(t, 22, []scaled{{"east-a", 8, 7}, {"east-b", 7, 1}, {"west-b", 7, 7}, {"west-a", 0, 2}})
	for _, c := range []struct{ before, want int64 }{{0, 0}, {3, 2}} {
		now.Members[1].FloorBefore = c.before
		if got := Next(now).replicas(now.Target.Have); got != c.want {
			t.Errorf("with a floor of %d before: %d replicas stay, want %d", c.before, got, c.want)
		}
	}
}

// TestADeletedAutoscalerAsksForNothing checks that a cluster keeps its replicas while those of others are what an autoscaler has left
// there that is being deleted. Beside one that stays they are all that is asked for.
func TestADeletedAutoscalerAsksForNothing(t *testing.T) {
	for leaves, want := range map[bool]int64{false: 0, true: 15} {
		now := autoscaled(t, 20, []scaled{{"east-a", 10, 1}, {"west-a", 10, 1}, {"east-b", 0, 15}})
		object := now.Source.Autoscalers[0].Object
		unstructured.RemoveNestedField(object.Object, "spec", "maxReplicas") // no floor
		if leaves {
			object.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
		}
		if got := Next(now).replicas(now.Target.Have); got != want {
			t.Errorf("the autoscaler is being deleted: %t: %d replicas stay, want %d", leaves, got, want)
		}
	}
}

// scaled is what a cluster has of an autoscaled Deployment, all ready.
type scaled struct {
	cluster   string
	placed, n int64
}

// autoscaled is a Deployment with an autoscaler in each cluster of its placement, as the last of the clusters sees it.
func autoscaled(t *testing.T, replicas int64, clusters []scaled) Snapshot {
	scaler := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "u2"},
		"spec":     map[string]any{"minReplicas": int64(1), "maxReplicas": int64(7)},
	}}
	now := Snapshot{AutoscalersSynced: true, Own: len(clusters) - 1, Source: Source{
		Kind:        kind(t, "Deployment"),
		Object:      &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "u1"}, "spec": map[string]any{"replicas": replicas}}},
		Placement:   &v1beta1.Placement{Clusters: map[string]int64{}},
		Autoscalers: []Source{{Kind: kind(t, "HorizontalPodAutoscaler"), Object: scaler}},
	}}
	for _, c := range clusters {
		if c.placed > 0 {
			now.Source.Placement.Clusters[c.cluster] = c.placed
		}
		one := Standing{Target: Target{Cluster: &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: c.cluster}}, Scaled: c.placed > 0}, AutoscalerComes: c.placed > 0}
		one.Have = &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "web", "namespace": "shop", "annotations": map[string]any{v1beta1.SourceAnnotation: "u1"}},
			"spec":     map[string]any{"replicas": c.n},
			"status":   map[string]any{"replicas": c.n, "updatedReplicas": c.n, "readyReplicas": c.n},
		}}
		now.Members = append(now.Members, one)
	}
	now.Target = now.Members[now.Own].Target
	return now
}

// TestNextRollsOutInTurn checks that of two clusters with the old pod template the first by order gets the new one
// while the other waits and keeps its own. While a write to the first is in flight, it counts as updated and not
// healthy.
func TestNextRollsOutInTurn(t *testing.T) {
	template := func(image string) map[string]any {
		return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": image}}}}
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "u1", "generation": int64(2), "finalizers": []any{v1beta1.DeleteFromClustersFinalizer}},
		"spec":     map[string]any{"replicas": int64(2), "template": template("web:2")},
	}}
	source := Source{
		Kind: kind(t, "Deployment"), Object: object,
		Placement: &v1beta1.Placement{Clusters: map[string]int64{"east-a": 1, "west-a": 1}, Policy: "web"},
		Policy:    &v1beta1.PlacementPolicy{Spec: v1beta1.PlacementPolicySpec{Rollout: &v1beta1.RolloutPolicy{Strategy: v1beta1.RolloutOneClusterAtATime, Order: []string{"west-a"}}}},
	}
	standing := func(name string) Standing {
		return Standing{Target: Target{Cluster: &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}, Have: &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "web", "namespace": "shop", "annotations": map[string]any{v1beta1.SourceAnnotation: "u1"}},
			"spec":     map[string]any{"replicas": int64(1), "template": template("web:1")},
			"status":   map[string]any{"replicas": int64(1), "readyReplicas": int64(1), "updatedReplicas": int64(1), "availableReplicas": int64(1)},
		}}}}
	}
	members := []Standing{standing("east-a"), standing("west-a")}
	at := func(own int) Snapshot {
		return Snapshot{Source: source, Target: members[own].Target, Members: members, Own: own, AutoscalersSynced: true}
	}
	first, second := Next(at(1)), Next(at(0))
	if first.Verb != Update || first.WaitsFor != "" || first.Template == "" {
		t.Errorf("the first: %q, waits for %q", first.Verb, first.WaitsFor)
	}
	if second.WaitsFor != "waits for its turn in the rollout: after west-a" || second.Template != "" || !second.Want.Kept {
		t.Errorf("the second: %q, waits for %q", second.Verb, second.WaitsFor)
	}
	members[1].Template = first.Template
	if second = Next(at(0)); second.WaitsFor != "waits for its turn in the rollout: west-a is not healthy with the change yet" {
		t.Errorf("while the first is written, the second waits for %q", second.WaitsFor)
	}
}
