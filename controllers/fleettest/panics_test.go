package fleettest

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAPanicCostsWhatItWasAbout has each of the first requests of a process panic, one in each run: whatever goroutine makes it, all ends as
// without it, and the part says that it panicked.
func TestAPanicCostsWhatItWasAbout(t *testing.T) {
	seen := map[string]int{}
	for n := 1; n <= 100; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inFleet(t, func(t *testing.T, p *player) {
				run(t, p, fmt.Sprintf("panic 1 %d", n), "cluster add a region=r zone=a", "cluster add b region=r zone=b", "apply web.yaml", "wait 30s", "scale rs/web 20", "settle")
				web := p.Federation.Get(replicaSets, "default", "web")
				if n, _, _ := unstructured.NestedInt64(web.Object, "status", "readyReplicas"); n != 20 {
					t.Errorf("%d replicas are ready, want 20", n)
				}
				run(t, p, "delete rs/web", "settle")
				if err := p.Failures(); err != nil {
					t.Error(err)
				}
				seen[p.panics.whose()]++
				for _, failure := range p.controls[0].parts.Failures() {
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
