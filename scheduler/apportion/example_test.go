package apportion_test

import (
	"fmt"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler/apportion"
)

// Thirty replicas: the first cluster gets twice the weight, at least 10 and at most 20, the others share the rest.
func ExamplePlan() {
	result := apportion.Plan(apportion.Request{
		Key:      "shop/web",
		Replicas: 30,
		Preferences: &v1beta1.ReplicaPreferences{Rebalance: true, Clusters: map[string]v1beta1.ClusterPreferences{
			"east-a": {MinReplicas: 10, MaxReplicas: new(int64(20)), Weight: 2},
			"*":      {Weight: 1},
		}},
		Clusters: []apportion.Cluster{{Name: "east-a"}, {Name: "east-b"}, {Name: "west-a"}},
	})
	fmt.Println(result.Plan)
	fmt.Println(result.Reasons["east-a"])
	// Output:
	// map[east-a:20 east-b:5 west-a:5]
	// [at most 20 by maxReplicas 10 by minReplicas 10 by weight 2 of 4]
}
