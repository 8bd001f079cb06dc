package fleettest

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAPanicCostsWhatItWasAbout has one request of a process panic in each run, by turns one of the first, most of which informers send, and one after
// an object came, most of which controllers send: whatever goroutine makes it, all ends as without it, and the part says that it panicked.
func TestAPanicCostsWhatItWasAbout(t *testing.T) {
	seen := map[string]int{}
	for n := 1; n <= 100; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inFleet(t, func(t *testing.T, p *player) {
				if n%2 == 1 {
					run(t, p, fmt.Sprintf("panic 1 %d", n))
				}
				run(t, p, "cluster add a region=r zone=a", "cluster add b region=r zone=b", "wait 30s")
				if n%2 == 0 {
					run(t, p, fmt.Sprintf("panic 1 %d", n/2))
				}
				run(t, p, "apply web.yaml", "wait 30s")
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
				seen[p.panics.whose()]++
				for _, failure := range p.processes.running[0].parts.Failures() {
					if !failure.Running {
						t.Errorf("%+v does not run", failure)
					}
				}
			})
		})
	}
	for _, part := range []string{"propagation", "placement", "crosscluster", "library"} {
		if seen[part] == 0 {
			t.Errorf("nothing of %s has panicked: %v", part, seen)
		}
	}
	t.Log(seen)
}
