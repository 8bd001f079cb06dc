package plan

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

// cluster is ready, or has not been for the time that is given.
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

func TestDecide(t *testing.T) {
	const grace = 30 * time.Second
	three := func(away time.Duration) []*v1beta1.Cluster {
		return []*v1beta1.Cluster{cluster("a", away), cluster("b", 0), cluster("c", 0)}
	}
	even := &v1beta1.Placement{Clusters: map[string]int64{"a": 10, "b": 10, "c": 10}}
	for _, c := range []struct {
		name      string
		object    Object
		clusters  []*v1beta1.Cluster
		want      map[string]int64
		lookAgain time.Duration
	}{
		{"all are ready", Object{Replicas: 30}, three(0), map[string]int64{"a": 10, "b": 10, "c": 10}, 0},
		{"away within grace: it keeps what it has", Object{Replicas: 30, Last: even}, three(10 * time.Second), even.Clusters, 20 * time.Second},
		{"away within grace: it gets no more", Object{Replicas: 36, Last: even}, three(10 * time.Second), map[string]int64{"a": 10, "b": 13, "c": 13}, 20 * time.Second},
		{"away within grace: a new object does without", Object{Replicas: 30}, three(10 * time.Second), map[string]int64{"b": 15, "c": 15}, 20 * time.Second},
		{"away for longer: its replicas move", Object{Replicas: 30, Last: even}, three(31 * time.Second), map[string]int64{"b": 15, "c": 15}, 0},
		{"back, rebalance off: what moved stays", Object{Replicas: 30, Last: &v1beta1.Placement{Clusters: map[string]int64{"b": 15, "c": 15}}}, three(0), map[string]int64{"b": 15, "c": 15}, 0},
		{"all are away for longer: nowhere to move to", Object{Replicas: 30, Last: even},
			[]*v1beta1.Cluster{cluster("a", time.Hour), cluster("b", time.Hour), cluster("c", time.Hour)}, even.Clusters, 0},
		{"never seen", Object{Replicas: 4}, []*v1beta1.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, cluster("b", 0)}, map[string]int64{"b": 4}, 0},
		{"selected", Object{Replicas: 4, Selector: labels.SelectorFromSet(labels.Set{"name": "c"})}, three(0), map[string]int64{"c": 4}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.object.Key = "default/web"
			d := Decide(c.object, c.clusters, grace, now)
			if total(d.Placement.Clusters) != total(c.want) || len(d.Placement.Clusters) != len(c.want) || d.LookAgain != c.lookAgain {
				t.Fatalf("got %v, look again in %s; want %v, %s", d.Placement.Clusters, d.LookAgain, c.want, c.lookAgain)
			}
			if !maps.Equal(d.Placement.Clusters, c.want) {
				t.Errorf("got %v, want %v", d.Placement.Clusters, c.want)
			}
			if c.object.Last != nil && !maps.Equal(c.object.Last.Clusters, c.want) && d.Moved == "" {
				t.Error("it moved, and does not say so")
			}
		})
	}
}

func total(m map[string]int64) (sum int64) {
	for _, n := range m {
		sum += n
	}
	return sum
}
