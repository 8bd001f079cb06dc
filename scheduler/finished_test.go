package scheduler

import (
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestAFinishedJobIsNotPlacedAnew checks that a finished Job stays whatever happens to its clusters or its number, and
// an unfinished one does not.
func TestAFinishedJobIsNotPlacedAnew(t *testing.T) {
	drained := cluster("a", 0)
	drained.Spec.Taints = []corev1.Taint{{Key: v1beta1.TaintDrain, Effect: corev1.TaintEffectNoExecute}}
	const placed = `{"clusters":{"a":2,"b":2},"overflow":{"b":1},"unschedulable":1}`
	for name, first := range map[string]*v1beta1.Cluster{"ready": cluster("a", 0), "lost": cluster("a", time.Hour), "drained": drained, "gone": cluster("c", 0)} {
		w := NewWorld([]*v1beta1.Cluster{first, cluster("b", 0)}, nil)
		w.Grace = time.Minute
		job := func(placement, condition string) Object {
			return object(t, fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: once, namespace: default, annotations: {
  federation.kubernetes.io/placement: '%s'}}, spec: {parallelism: 9}, status: {conditions: [%s]}}`, placement, condition))
		}
		for _, end := range []string{"Complete", "Failed"} {
			finished := `{type: ` + end + `, status: "True"}`
			d := Decide(job(placed, finished), w, now)
			if p := d.Placement; !maps.Equal(p.Clusters, numbers{"a": 2, "b": 2}) || p.Unschedulable != 0 || p.Overflow != nil || !d.Changed || d.Moved != "" {
				t.Errorf("%s, %s: %+v, moved %q", name, end, p, d.Moved)
			}
			if d := Decide(job(d.Value(), finished), w, now); d.Changed {
				t.Errorf("%s, %s: %v is decided anew", name, end, d.Placement)
			}
			if d := Decide(job("", finished), w, now); !d.Wait {
				t.Errorf("%s, %s: without a placement it is placed: %v", name, end, d.Placement)
			}
		}
		if d := Decide(job(placed, `{type: Complete, status: "False"}`), w, now); sum(d.Placement.Clusters) != 9 {
			t.Errorf("%s: one that goes on: %v", name, d.Placement)
		}
	}
}
