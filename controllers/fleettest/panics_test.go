package fleettest

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAPanicCostsWhatItWasAbout has one request of a process panic in each run, each of the first ones of each part by turns: whatever goroutine makes it,
// all ends as without it, and a controller's part runs again, and says that it panicked.
func TestAPanicCostsWhatItWasAbout(t *testing.T) {
	for part, requests := range map[string]int{library: 50, "propagation": 36, "placement": 7, "crosscluster": 4, "drill": 6, "failover": 2} {
		for n := 1; n <= requests; n++ {
			t.Run(fmt.Sprint(part, n), func(t *testing.T) {
				inFleet(t, func(t *testing.T, p *player) {
					run(t, p, "processes 0", fmt.Sprintf("panic 1 %d %s", n, part), "processes 1")
					run(t, p, "cluster add a region=r zone=a", "cluster add b region=r zone=b", "wait 30s", "apply web.yaml", "wait 30s")
					for replicas := 4; replicas <= 20; replicas += 2 { // placement and propagation by turns
						run(t, p, fmt.Sprintf("scale rs/web %d", replicas), "wait 5s")
					}
					run(t, p, "settle")
					web := p.Federation.Get(replicaSets, "default", "web")
					if n, _, _ := unstructured.NestedInt64(web.Object, "status", "readyReplicas"); n != 20 {
						t.Errorf("%d replicas are ready, want 20", n)
					}
					run(t, p, "delete rs/web", "settle")
					if err := p.Failures(); err != nil {
						t.Error(err)
					}
					if left := p.panics[1].Load().left.Load(); left > 0 {
						t.Errorf("%s made %d requests too few for a panic in number %d", part, left, n)
					}
					failures := p.processes.running[0].parts.Failures()
					if part != library && (len(failures) != 1 || !failures[0].Running) { // an informer's are Kubernetes' own
						t.Errorf("failures are %+v, want one, of a part that runs", failures)
					}
				})
			})
		}
	}
}
