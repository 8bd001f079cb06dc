package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestWhereOnlyPodsShowThatThereIsNoRoom checks clusters that have room by the sums, but in which pods beyond a limit
// find no node or are not created. These go where they can run, and then nothing moves back and forth.
func TestWhereOnlyPodsShowThatThereIsNoRoom(t *testing.T) {
	for _, c := range []struct {
		name          string
		asked         int64
		limits        numbers
		want          numbers
		unschedulable int64
	}{
		{"another cluster has room", 24, numbers{"a": 8, "b": 100}, numbers{"a": 8, "b": 16}, 0},
		{"none has enough", 40, numbers{"a": 8, "b": 20}, numbers{"a": 8, "b": 20}, 12},
		{"none has any", 10, numbers{"a": 0, "b": 0}, numbers{}, 10},
	} {
		for _, made := range []bool{true, false} {
			for _, rebalance := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, made %t, rebalance %t", c.name, made, rebalance), func(t *testing.T) {
					s := newStory(t, replicaSet(c.asked, nil), "a", "b")
					s.o.Preferences = &v1beta1.ReplicaPreferences{Rebalance: rebalance, Clusters: map[string]v1beta1.ClusterPreferences{"*": {Weight: 1}}}
					for range 4 {
						s.report(c.limits, made)
						s.decide()
					}
					settled := s.o.Current.String()
					for range 10 {
						s.report(c.limits, made)
						s.decide()
					}
					if got := s.o.Current; !maps.Equal(got.Clusters, c.want) || got.Unschedulable != c.unschedulable || got.String() != settled {
						t.Errorf("got %s, want %v and %d that fit nowhere; before %s", got, c.want, c.unschedulable, settled)
					}
					s.report(c.limits, made)
					none := *s
					none.o.Replicas = 0
					none.decide()
					if got := none.o.Current; len(got.Clusters)+len(got.Overflow) > 0 {
						t.Errorf("of 0 replicas: %s", got)
					}
					s.report(numbers{"a": 100, "b": 100}, made)
					s.decide()
					if got := s.o.Current; sum(got.Clusters) != c.asked {
						t.Errorf("once there is room: %s", got)
					}
				})
			}
		}
	}
}

// TestWhatIsNotMadeMovesOnce checks that a late report of what clusters can create still counts.
func TestWhatIsNotMadeMovesOnce(t *testing.T) {
	s := newStory(t, replicaSet(24, nil), "a", "b")
	s.report(nil, false)
	s.expect(numbers{"a": 12, "b": 12}, "created")
	s.report(numbers{"a": 8, "b": 100}, false)
	for range 5 {
		if d := s.decide(); !maps.Equal(d.Placement.Clusters, numbers{"a": 8, "b": 16}) || d.Placement.Overflow["a"] != 1 {
			t.Errorf("%s: %s", d.Moved, d.Placement.String())
		}
	}
}

// report makes the clusters report room, and which pods of the object run in none: those over each limit.
func (s *story) report(limits numbers, made bool) {
	s.o.Made = numbers{}
	for name, c := range s.clusters {
		c.Status.Capacity = &v1beta1.ClusterCapacity{Free: []v1beta1.NodeClass{{Nodes: 10, Free: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("100")}}}}
		if s.o.Current == nil {
			continue
		}
		switch over := s.o.At(name) + s.o.Current.Overflow[name] - limits[name]; {
		case over > 0 && made:
			c.Status.Capacity.Unschedulable = []v1beta1.UnschedulablePods{{Kind: "ReplicaSet", Namespace: "default", Name: "web", Pods: int32(over)}}
		case over > 0:
			s.o.Made[name] = limits[name]
		}
	}
}

// The message of the cluster's scheduler is the reason and the cause, in place of "no room".
func TestTheSchedulersWordsAreTheReason(t *testing.T) {
	const says = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims"
	a := cluster("a", 0)
	a.Status.Capacity = &v1beta1.ClusterCapacity{Unschedulable: []v1beta1.UnschedulablePods{{Kind: "ReplicaSet", Namespace: "default", Name: "web", Pods: 4, Message: says}}}
	d := Decide(replicaSet(4, numbers{"a": 4}), NewWorld([]*v1beta1.Cluster{a, cluster("b", 0)}, nil), now)
	if want := "4 pods there have been unschedulable: " + says; !slices.Contains(d.Reasons["a"], want) {
		t.Errorf("reasons %q, want %q", d.Reasons["a"], want)
	}
	if want := "cluster a: " + says; d.Cause != want {
		t.Errorf("cause %q, want %q", d.Cause, want)
	}
}
