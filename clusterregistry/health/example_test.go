package health_test

import (
	"fmt"
	"time"

	"federation/clusterregistry/health"
)

// A cluster that was well does not answer: the first time it is only asked again soon, the second time it is not ready.
func ExampleJudge() {
	policy, now := health.DefaultPolicy(), time.Unix(0, 0)
	verdict := health.Judge(health.State{}, health.Evidence{Answer: health.Healthy}, policy, now)
	for range 2 {
		now = now.Add(verdict.Next)
		verdict = health.Judge(verdict.State, health.Evidence{Answer: health.Unreachable, Detail: "no answer in 1.5s"}, policy, now)
		fmt.Println("ready:", verdict.State.Ready(), "next in:", verdict.Next)
	}
	fmt.Println(verdict.Transition.Reason)
	// Output:
	// ready: true next in: 250ms
	// ready: false next in: 1s
	// ClusterNotReachable
}
