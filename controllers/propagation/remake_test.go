package propagation

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestACopyThatSomebodyDeletesAgainAndAgain checks that it is created again at once some times, then with growing
// pauses, and that the status says so.
func TestACopyThatSomebodyDeletesAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "east-a")
		member := f.members["east-a"]
		f.run(t, Options{}, func() {
			f.federation.create(t, configMaps, "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {key: value}}`)
			calm()
			deletes := 0
			for range 1200 { // two minutes
				if member.Get(configMaps, "default", "web") != nil {
					deletes++
					if err := member.others.Resource(configMaps).Namespace("default").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
			}
			if deletes < 5 || deletes > 10 {
				t.Errorf("it was created %d times in two minutes", deletes)
			}
			says := f.federation.Get(configMaps, "default", "web").GetAnnotations()[v1beta1.PropagatedAnnotation]
			if !strings.Contains(says, "somebody else deleted it") {
				t.Errorf("the object says %s", says)
			}
			time.Sleep(3 * time.Minute)
			synctest.Wait()
			if member.Get(configMaps, "default", "web") == nil {
				t.Error("nobody deletes it any more, and it is not created")
			}
			for range 10 { // deletions by the federation do not count
				if err := f.federation.others.Resource(configMaps).Namespace("default").Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
					t.Fatal(err)
				}
				calm()
				f.federation.create(t, configMaps, "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {key: value}}`)
				calm()
				if member.Get(configMaps, "default", "web") == nil {
					t.Fatal("it is not created again after it was deleted at the federation")
				}
			}
		})
	})
}
