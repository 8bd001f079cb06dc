package scheduler

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"federation/apiserver/apis/federation/v1beta1"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// cluster returns a cluster that is ready, or has not been for awayFor.
func cluster(name string, awayFor time.Duration) *v1beta1.Cluster {
	status := corev1.ConditionTrue
	if awayFor > 0 {
		status = corev1.ConditionFalse
	}
	return &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}},
		Status: v1beta1.ClusterStatus{Conditions: []v1beta1.ClusterCondition{{
			Type: v1beta1.ClusterReady, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-awayFor)),
		}}},
	}
}

// replicaSet returns an object with divided replicas.
func replicaSet(replicas int64, last map[string]int64) Object {
	o := Object{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "default", Name: "web", Divided: true, Replicas: replicas, replicasField: "replicas"}
	if last != nil {
		o.Current = &v1beta1.Placement{Clusters: last}
	}
	return o
}

func TestDecideWithoutFailoverState(t *testing.T) {
	const grace = 30 * time.Second
	three := func(away time.Duration) []*v1beta1.Cluster {
		return []*v1beta1.Cluster{cluster("a", away), cluster("b", 0), cluster("c", 0)}
	}
	even := map[string]int64{"a": 10, "b": 10, "c": 10}
	selected := replicaSet(4, nil)
	selected.Selector = labels.SelectorFromSet(labels.Set{"name": "c"})
	for _, c := range []struct {
		name      string
		object    Object
		clusters  []*v1beta1.Cluster
		want      map[string]int64
		lookAgain time.Duration
	}{
		{"all are ready", replicaSet(30, nil), three(0), even, 0},
		{"away within grace: it keeps what it has", replicaSet(30, even), three(10 * time.Second), even, 20 * time.Second},
		{"away within grace: it gets no more", replicaSet(36, even), three(10 * time.Second), map[string]int64{"a": 10, "b": 13, "c": 13}, 20 * time.Second},
		{"away within grace: a new object does without", replicaSet(30, nil), three(10 * time.Second), map[string]int64{"b": 15, "c": 15}, 20 * time.Second},
		{"away for longer: its replicas move", replicaSet(30, even), three(31 * time.Second), map[string]int64{"b": 15, "c": 15}, 0},
		{"back, rebalance off: what moved stays", replicaSet(30, map[string]int64{"b": 15, "c": 15}), three(0), map[string]int64{"b": 15, "c": 15}, 0},
		{"all are away for longer: nowhere to move to", replicaSet(30, even),
			[]*v1beta1.Cluster{cluster("a", time.Hour), cluster("b", time.Hour), cluster("c", time.Hour)}, even, 0},
		{"never seen", replicaSet(4, nil), []*v1beta1.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, cluster("b", 0)}, map[string]int64{"b": 4}, 0},
		{"selected", selected, three(0), map[string]int64{"c": 4}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWorld(c.clusters, nil)
			w.Grace = grace
			d := Decide(c.object, w, now)
			if !maps.Equal(d.Placement.Clusters, c.want) || d.LookAgain != c.lookAgain {
				t.Errorf("got %v, look again in %s; want %v, %s", d.Placement.Clusters, d.LookAgain, c.want, c.lookAgain)
			}
			if c.object.Current != nil && !maps.Equal(c.object.Current.Clusters, c.want) && d.Moved == "" {
				t.Error("it moved, and does not say so")
			}
		})
	}
}

// An object that follows workloads says so when they have moved, whatever happened to their cluster.
func TestWhatFollowsSaysWhom(t *testing.T) {
	o := Object{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "pass", Follow: &Reach{Clusters: []string{"b"}}, Followed: []string{"Deployment web"},
		Current: &v1beta1.Placement{Clusters: map[string]int64{"a": 1}}}
	d := Decide(o, NewWorld([]*v1beta1.Cluster{cluster("a", 0), cluster("b", 0)}, nil), now)
	if want := "what refers to it goes elsewhere: Deployment web"; d.Cause != want || d.Moved != "a 1→0, b 0→1" {
		t.Errorf("%q, %q: want %q", d.Cause, d.Moved, want)
	}
}
