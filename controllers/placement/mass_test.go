package placement

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestAMassFailoverIsOnePassAndOneWriteEach checks that all objects of a dead cluster are decided at once, by priority,
// and written once; another pass writes nothing.
func TestAMassFailoverIsOnePassAndOneWriteEach(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.cluster("east-a", "True")
		f.cluster("west-a", "True")
		f.apply(v1beta1.PoliciesResource, policy(`{priority: 5, resourceSelectors: [{apiVersion: apps/v1, kind: ReplicaSet, labelSelector: {matchLabels: {urgent: "yes"}}}]}`))
		urgent := map[string]bool{}
		const n = 90 // a watch of the fake client buffers 100 events
		for i := range n {
			u := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apps/v1", "kind": "ReplicaSet",
				"metadata": map[string]any{"name": fmt.Sprintf("web-%03d", i), "namespace": "shop", "uid": fmt.Sprint("u", i)},
				"spec":     map[string]any{"replicas": int64(2)},
			}}
			if i%3 == 2 {
				urgent[u.GetName()] = true
				u.SetLabels(map[string]string{"urgent": "yes"})
			}
			if _, err := f.client.Resource(replicaSets).Namespace("shop").Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		f.settle()
		f.client.ClearActions()
		f.cluster("west-a", "False")
		time.Sleep(grace)
		f.settle()
		var first []string
		for _, a := range f.client.Actions() {
			if p, ok := a.(clienttesting.PatchAction); ok && p.GetResource() == replicaSets {
				first = append(first, p.GetName())
			}
		}
		if len(first) != n {
			t.Fatalf("%d writes for %d objects", len(first), n)
		}
		for _, name := range first[:n/3-16] { // 16 are written in parallel
			if !urgent[name] {
				t.Errorf("%s is among the first to be written", name)
			}
		}
		f.cluster("west-a", "False")
		time.Sleep(5 * time.Minute)
		f.settle()
		if got := f.patches(); got != n {
			t.Errorf("%d writes after all was done", got-n)
		}
	})
}

// panics is a recorder that panics over what is said of one object.
type panics struct{ record.EventRecorder }

func (panics) Event(o runtime.Object, _, _, _ string) {
	if o.(*unstructured.Unstructured).GetName() == "bad" {
		panic("over one object")
	}
}

// TestAnObjectThatPanicsHoldsUpNoPass checks that all others of a pass over all objects are decided.
func TestAnObjectThatPanicsHoldsUpNoPass(t *testing.T) {
	inFleetWith(t, func(o *Options) { o.Recorder = panics{o.Recorder} }, func(f *fleet) {
		f.cluster("east-a", "False")
		for name, preferences := range map[string]string{"bad": "[]", "web": `{"clusters": {"*": {"weight": 1}}}`} { // an event reports an invalid annotation
			f.apply(replicaSets, fmt.Sprintf(`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: %s, namespace: shop, uid: %s,
				annotations: {federation.kubernetes.io/replica-set-preferences: %q}}, spec: {replicas: 2}}`, name, name, preferences))
		}
		f.cluster("east-a", "True")
		f.settle()
		if got := f.clustersOf(replicaSets, "web"); got != "east-a" {
			t.Errorf("web is placed on %s", got)
		}
	})
}
