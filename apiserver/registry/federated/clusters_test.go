package federated

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/apps"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestClustersOfAPlacementAreShownAndBounded(t *testing.T) {
	many := v1beta1.Placement{Clusters: map[string]int64{}}
	for i := range 1000 {
		many.Clusters[fmt.Sprintf("c%03d", i)] = 1
	}
	for value, want := range map[string]string{
		"":                "<pending>",
		"pending":         "<pending>",
		`{"clusters":{}}`: "<none>",
		`{"clusters":{"west-a":5,"east-a":20,"east-b":0}}`: "east-a:20 west-a:5",
		`{"clusters":{"west-a":5},"unschedulable":2}`:      "west-a:5 unschedulable:2",
		`{"clusters":{},"unschedulable":2}`:                "unschedulable:2",
		many.String():                                      "c000:1 c001:1 c002:1 c003:1 c004:1 c005:1 c006:1 c007:1 c008:1 c009:1 and 990 more",
	} {
		object := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta1.PlacementAnnotation: value}}}
		if got := placementOf(object); got != want {
			t.Errorf("%.60s: %q, want %q", value, got, want)
		}
	}
}
