package health

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestDuplicateOf: of Clusters that are one cluster one is used, whichever is asked, and it stays the same one.
func TestDuplicateOf(t *testing.T) {
	cluster := func(name string, age int, uid, reason string) *v1beta1.Cluster {
		c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(1000-age), 0))}}
		c.Status.UID = uid
		c.Status.Conditions = []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: corev1.ConditionTrue, Reason: reason}}
		return c
	}
	ready, duplicate := v1beta1.ReasonClusterReady, ReasonDuplicateCluster
	tests := []struct {
		name string
		of   *v1beta1.Cluster
		uid  string
		all  []*v1beta1.Cluster
		want string
	}{
		{"alone", cluster("a", 2, "x", ready), "x", nil, ""},
		{"another cluster", cluster("a", 2, "x", ready), "x", []*v1beta1.Cluster{cluster("b", 3, "y", ready)}, ""},
		{"nothing is known of it", cluster("a", 2, "", ready), "", []*v1beta1.Cluster{cluster("b", 3, "", ready)}, ""},
		{"both are known: the older one", cluster("b", 1, "x", ready), "x", []*v1beta1.Cluster{cluster("a", 2, "x", ready)}, "a"},
		{"it is the older one", cluster("a", 2, "x", ready), "x", []*v1beta1.Cluster{cluster("b", 1, "x", ready)}, ""},
		{"as old: by name", cluster("b", 1, "x", ready), "x", []*v1beta1.Cluster{cluster("a", 1, "x", ready)}, "a"},
		{"the other had it first, though it is younger", cluster("a", 2, "", ready), "x", []*v1beta1.Cluster{cluster("b", 1, "x", ready)}, "b"},
		{"its address was changed to that of a younger one", cluster("a", 2, "y", ready), "x", []*v1beta1.Cluster{cluster("b", 1, "x", ready)}, "b"},
		{"an older one is the duplicate already", cluster("b", 1, "x", ready), "x", []*v1beta1.Cluster{cluster("a", 2, "x", duplicate)}, ""},
		{"it is the duplicate already, and older", cluster("a", 2, "x", duplicate), "x", []*v1beta1.Cluster{cluster("b", 1, "x", ready)}, "b"},
		{"the one that was used has left", cluster("b", 1, "x", duplicate), "x", nil, ""},
		{"two duplicates of one that has left", cluster("c", 1, "x", duplicate), "x", []*v1beta1.Cluster{cluster("b", 2, "x", duplicate)}, "b"},
		{"the one in use is named", cluster("c", 1, "x", ready), "x", []*v1beta1.Cluster{cluster("a", 4, "x", duplicate), cluster("b", 3, "x", ready)}, "b"},
	}
	for _, tt := range tests {
		if got := DuplicateOf(tt.of, tt.uid, append(tt.all, tt.of)); got != tt.want {
			t.Errorf("%s: %q is used in its place, want %q", tt.name, got, tt.want)
		}
	}
}
