package scheduler

import (
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestAnIndexedJobGoesWhole checks that it goes to one cluster, from which only its loss or a request moves it.
func TestAnIndexedJobGoesWhole(t *testing.T) {
	job := func(placement string) Object {
		return object(t, fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: shards, namespace: default, annotations: {
  federation.kubernetes.io/placement: '%s'}}, spec: {parallelism: 6, completions: 6, completionMode: Indexed}}`, placement))
	}
	three := func(awayA, awayB time.Duration) []*v1beta1.Cluster {
		return []*v1beta1.Cluster{cluster("a", awayA), cluster("b", awayB), cluster("c", 0)}
	}
	full := three(0, 0)
	full[1].Status.Capacity = &v1beta1.ClusterCapacity{Unschedulable: []v1beta1.UnschedulablePods{{Kind: "Job", Namespace: "default", Name: "shards", Pods: 6}}}
	drained := three(0, 0)
	drained[1].Spec.Taints = []corev1.Taint{{Key: v1beta1.TaintDrain, Effect: corev1.TaintEffectNoExecute}}
	divided := &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: v1beta1.PlacementPolicySpec{
		ResourceSelectors:  []v1beta1.ResourceSelector{{APIVersion: "batch/v1", Kind: "Job"}},
		SpreadConstraints:  []v1beta1.SpreadConstraint{{SpreadBy: v1beta1.SpreadByCluster, MinGroups: 2}},
		ReplicaPreferences: &v1beta1.ReplicaPreferences{Clusters: map[string]v1beta1.ClusterPreferences{"a": {MinReplicas: 3}, "b": {MinReplicas: 3}}},
	}}
	for name, c := range map[string]struct {
		placement string
		clusters  []*v1beta1.Cluster
		policy    *v1beta1.PlacementPolicy
		in        []string // one of these
		notes     int
	}{
		"new":                                 {"", three(0, 0), nil, []string{"a", "b", "c"}, 0},
		"new, where a policy divides":         {"", three(0, 0), divided, []string{"a", "b"}, 1},
		"placed":                              {`{"clusters":{"b":6}}`, three(0, 0), nil, []string{"b"}, 0},
		"its pods have no room":               {`{"clusters":{"b":6}}`, full, nil, []string{"b"}, 0},
		"its cluster is lost":                 {`{"clusters":{"b":6}}`, three(0, time.Hour), nil, []string{"a", "c"}, 0},
		"its cluster is drained":              {`{"clusters":{"b":6}}`, drained, nil, []string{"a", "c"}, 0},
		"its first cluster is back":           {`{"clusters":{"c":6},"home":{"b":6}}`, three(0, 0), nil, []string{"c"}, 0},
		"its first cluster is back, alone":    {`{"clusters":{"a":6},"home":{"b":6}}`, three(time.Hour, 0)[:2], nil, []string{"b"}, 0},
		"all are lost":                        {`{"clusters":{"b":6}}`, three(time.Hour, time.Hour)[:2], nil, []string{"b"}, 1},
		"its cluster is lost to all its room": {`{"clusters":{"b":6},"overflow":{"b":1}}`, three(0, time.Hour), nil, []string{"a", "c"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var policies []*v1beta1.PlacementPolicy
			if c.policy != nil {
				policies = append(policies, c.policy)
			}
			w := NewWorld(c.clusters, policies)
			w.Grace = time.Minute
			d := Decide(job(c.placement), w, now)
			for _, in := range c.in {
				if maps.Equal(d.Placement.Clusters, numbers{in: 6}) && d.Placement.Overflow == nil && len(d.Notes) == c.notes {
					return
				}
			}
			t.Errorf("%+v, notes %q; want all in one of %v", d.Placement, d.Notes, c.in)
		})
	}
}
