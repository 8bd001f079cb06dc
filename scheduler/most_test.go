package scheduler

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestMostClusters(t *testing.T) {
	east, east2, west := cluster("east-a", 0), cluster("east-b", 0), cluster("west-a", 0)
	east.Status.Region, east2.Status.Region, west.Status.Region = "east", "east", "west"
	private := cluster("private", 0)
	private.Spec.AllowedNamespaces = []string{"shop"}
	clusters := []*v1beta1.Cluster{east, east2, west, private}
	cron := Object{APIVersion: "batch/v1", Kind: "CronJob", Namespace: "default", Name: "report"}
	selects := func(name string, priority int32, spec v1beta1.PlacementPolicySpec) *v1beta1.PlacementPolicy {
		spec.Priority, spec.ResourceSelectors = priority, []v1beta1.ResourceSelector{{APIVersion: "batch/v1", Kind: "CronJob"}}
		return &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec}
	}
	one := int32(1)
	byRegion := v1beta1.PlacementPolicySpec{SpreadConstraints: []v1beta1.SpreadConstraint{{SpreadBy: v1beta1.SpreadByRegion, MaxGroups: &one}}}
	named := v1beta1.PlacementPolicySpec{Clusters: &v1beta1.ClusterAffinity{Names: []string{"east-a"}}}
	chosen := cron
	chosen.Selector = labels.SelectorFromSet(labels.Set{"name": "west-a"})
	for name, c := range map[string]struct {
		object   Object
		policies []*v1beta1.PlacementPolicy
		want     int
	}{
		"of its namespace":              {cron, nil, 3},
		"by annotation":                 {chosen, []*v1beta1.PlacementPolicy{selects("a", 0, named)}, 1},
		"by a policy":                   {cron, []*v1beta1.PlacementPolicy{selects("a", 0, named)}, 1},
		"in one region":                 {cron, []*v1beta1.PlacementPolicy{selects("a", 0, byRegion)}, 2},
		"together in one":               {cron, []*v1beta1.PlacementPolicy{selects("a", 0, v1beta1.PlacementPolicySpec{WorkloadAffinity: v1beta1.WorkloadAffinityRequired})}, 1},
		"only the policy that governs":  {cron, []*v1beta1.PlacementPolicy{selects("a", 0, named), selects("b", 1, v1beta1.PlacementPolicySpec{})}, 3},
		"a policy of another namespace": {cron, []*v1beta1.PlacementPolicy{{ObjectMeta: metav1.ObjectMeta{Namespace: "other"}, Spec: selects("a", 0, named).Spec}}, 3},
	} {
		o := c.object
		if got := NewWorld(clusters, c.policies).MostClusters(&o); got != c.want {
			t.Errorf("%s: %d clusters, want %d", name, got, c.want)
		}
	}
}
