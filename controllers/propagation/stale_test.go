package propagation

import (
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestWhoSeesAnOldCopyChangesNothing checks that a process with a stale copy, because another one has its shard by now,
// neither shrinks the copy, nor rolls it back, nor deletes it. Once it sees the current copy it acts.
func TestWhoSeesAnOldCopyChangesNothing(t *testing.T) {
	const share = `{metadata: {annotations: {federation.kubernetes.io/placement: '{"clusters":{"east-a":`
	for name, change := range map[string]func(f *fleet, t *testing.T){
		"shrink": func(f *fleet, t *testing.T) {
			f.federation.merge(t, replicaSets, "web", share+`1}}'}}, spec: {replicas: 1}}`)
		},
		"grow": func(f *fleet, t *testing.T) {
			f.federation.merge(t, replicaSets, "web", share+`3}}'}}, spec: {replicas: 3}}`)
		},
		"template": func(f *fleet, t *testing.T) {
			f.federation.merge(t, replicaSets, "web", `{spec: {template: {spec: {containers: [{name: web, image: "web:0"}]}}}}`)
		},
		"delete": func(f *fleet, t *testing.T) {
			if err := f.federation.others.Resource(replicaSets).Namespace("default").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, "east-a")
				member := f.members["east-a"]
				f.run(t, Options{}, func() {
					f.federation.create(t, replicaSets, "default", webSet)
					calm()
					f.clients["east-a"].Silence(true)
					member.merge(t, replicaSets, "web", `{spec: {replicas: 7, template: {spec: {containers: [{name: web, image: "web:2"}]}}}}`)
					change(f, t)
					calm()
					copied := member.Get(replicaSets, "default", "web")
					if copied == nil {
						t.Fatal("the copy is deleted by what was known of it before it changed")
					}
					if n, _, _ := unstructured.NestedInt64(copied.Object, "spec", "replicas"); n != 7 {
						t.Errorf("the copy has %d replicas, by what was known of it before it had 7", n)
					}
					f.clients["east-a"].Silence(false)
					calm()
					if copied := member.Get(replicaSets, "default", "web"); copied != nil {
						if n, _, _ := unstructured.NestedInt64(copied.Object, "spec", "replicas"); n == 7 {
							t.Error("the copy is seen again, and still has 7 replicas")
						}
					}
				})
			})
		})
	}
}
