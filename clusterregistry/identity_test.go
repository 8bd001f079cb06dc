package clusterregistry

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/health"
)

// TestAnAliasIsNotConnected: a second Cluster whose cluster has joined already is told apart, and takes its place when that leaves.
func TestAnAliasIsNotConnected(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	east.uid = "uid-of-east"
	f.join("old", east, "good")
	f.eventually("the identity is written", func() bool { return f.cluster("old").Status.UID == "uid-of-east" })
	f.join("also-east", east, "good")
	f.eventuallyReady("also-east", health.ReasonDuplicateCluster)
	if c := f.cluster("also-east").Condition(v1beta1.ClusterReady); !strings.Contains(c.Message, "Cluster old") {
		t.Errorf("message %q does not name the Cluster that is used", c.Message)
	}
	f.mu.Lock()
	for _, m := range f.engaged {
		if m.Name == "also-east" {
			t.Error("the alias was taken up")
		}
	}
	f.mu.Unlock()
	if f.member("old").Context().Err() != nil {
		t.Error("the Cluster that was first is not used any more")
	}
	east.gate.set(true)
	f.eventuallyReady("old", v1beta1.ReasonClusterNotReachable)
	if reason := f.cluster("also-east").Condition(v1beta1.ClusterReady).Reason; reason != health.ReasonDuplicateCluster {
		t.Errorf("the alias of a lost cluster is %s: it is not lost once more", reason)
	}
	east.gate.set(false)
	f.member("old")
	if err := f.clusters.Resource(v1beta1.ClustersResource).Delete(t.Context(), "old", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.member("also-east")
}

// TestEachVersionOfAnAliasIsReadOnce: it is asked for once a second, and a Cluster can be large.
func TestEachVersionOfAnAliasIsReadOnce(t *testing.T) {
	k := &clusterObject{name: "new", registry: newRegistry(Options{}, nil, nil, nil)}
	store := func(name, uid, version string) {
		u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"uid": uid}}}
		u.SetName(name)
		u.SetResourceVersion(version)
		if err := k.registry.clusters.GetIndexer().Add(u); err != nil {
			t.Fatal(err)
		}
	}
	store("new", "one", "1")
	store("old", "one", "2")
	store("west", "two", "3")
	first := k.othersWith("one")
	if len(first) != 1 || first[0].Name != "old" || first[0].ResourceVersion != "2" {
		t.Fatalf("found %v", first)
	}
	if again := k.othersWith("one"); len(again) != 1 || again[0] != first[0] {
		t.Errorf("asked again, it was read again: %v", again)
	}
	store("old", "one", "4")
	if changed := k.othersWith("one"); len(changed) != 1 || changed[0].ResourceVersion != "4" {
		t.Errorf("after a change: %v", changed)
	}
	if k.othersWith("two"); len(k.others) != 1 {
		t.Errorf("%d are kept that nobody asks for", len(k.others)-1)
	}
}

// TestARebuiltClusterIsTakenUpAgain: another cluster answers at the same address, with the same credential.
func TestARebuiltClusterIsTakenUpAgain(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	east.uid = "first"
	f.join("east", east, "good")
	before := f.member("east")
	f.eventually("the identity is written", func() bool { return f.cluster("east").Status.UID == "first" })
	east.set(func() { east.uid = "second" })
	f.eventually("the connection to the cluster of before ends", func() bool { return before.Context().Err() != nil })
	f.member("east")
	f.eventually("the identity is written", func() bool { return f.cluster("east").Status.UID == "second" })
	f.eventually("an event tells people", func() bool {
		events, err := f.core.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			if e.Reason == v1beta1.EventClusterReplaced && strings.Contains(e.Message, "was first and is second") {
				return true
			}
		}
		return false
	})
}

// TestAnIdentityThatIsNotGivenIsNotKnown: a member may refuse it; one that cannot answer for now is not taken up before it can.
func TestAnIdentityThatIsNotGivenIsNotKnown(t *testing.T) {
	f, refuses, fails := newFleet(t), newFakeMember(t), newFakeMember(t)
	refuses.uid, refuses.forbids = "secret", kubeSystemPath
	fails.uid, fails.fails = "late", kubeSystemPath
	f.join("refuses", refuses, "good")
	f.join("fails", fails, "good")
	f.member("refuses")
	f.eventuallyReady("refuses", v1beta1.ReasonClusterReady)
	f.eventuallyReady("fails", v1beta1.ReasonClusterNotReady)
	if uid := f.cluster("refuses").Status.UID; uid != "" {
		t.Errorf("UID %q of a cluster that does not give it", uid)
	}
	fails.set(func() { fails.fails = "" })
	f.member("fails")
	f.eventually("the identity is written", func() bool { return f.cluster("fails").Status.UID == "late" })
}
