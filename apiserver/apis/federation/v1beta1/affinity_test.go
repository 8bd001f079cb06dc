package v1beta1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestClusterAffinity(t *testing.T) {
	c := &Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east-a", Labels: map[string]string{"tier": "gold"}},
		Status: ClusterStatus{Zones: []string{"a", "b"}, Region: "east"}}
	gold, silver := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}, &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "silver"}}
	for _, test := range []struct {
		affinity *ClusterAffinity
		refuses  string
	}{
		{nil, ""},
		{&ClusterAffinity{}, ""},
		{&ClusterAffinity{Names: []string{"west-a", "east-a"}, Zones: []string{"b"}, Regions: []string{"east"}, LabelSelector: gold}, ""},
		{&ClusterAffinity{Names: []string{"west-a"}}, "not named"},
		{&ClusterAffinity{Zones: []string{"c"}}, "in none of the zones"},
		{&ClusterAffinity{Regions: []string{"west"}}, "in none of the regions"},
		{&ClusterAffinity{Names: []string{"east-a"}, LabelSelector: silver}, "its labels do not match"},
		{&ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Near"}}}}, "its labels do not match"},
	} {
		if got := test.affinity.Refuses(c); got != test.refuses || test.affinity.Matches(c) != (got == "") {
			t.Errorf("%+v refuses with %q, want %q", test.affinity, got, test.refuses)
		}
	}
}
