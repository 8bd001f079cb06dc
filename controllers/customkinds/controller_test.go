package customkinds

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/customkinds/plan"
)

func definition(plural, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + ".shop.example"},
		"spec": map[string]any{
			"group": "shop.example", "scope": "Namespaced", "names": map[string]any{"plural": plural, "kind": kind},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}},
		},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}},
	}}
}

func policy(name, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "federation/v1beta1", "kind": "PlacementPolicy", "metadata": map[string]any{"namespace": "default", "name": name},
		"spec": map[string]any{"resourceSelectors": []any{map[string]any{"apiVersion": "shop.example/v1", "kind": kind}}},
	}}
}

// world is a federation in memory, and what is worked with.
type world struct {
	*testing.T
	definitions, policies dynamic.ResourceInterface
	mu                    sync.Mutex
	works                 map[string]bool
}

// start returns what ends the controller and waits for it.
func start(t *testing.T, fail error) (w *world, end func() error) {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		Definitions: "CustomResourceDefinitionList", v1beta1.PoliciesResource: "PlacementPolicyList",
	})
	w = &world{T: t, works: map[string]bool{}, definitions: client.Resource(Definitions), policies: client.Resource(v1beta1.PoliciesResource).Namespace("default")}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	c, err := New(Options{
		Informers: func(gvr schema.GroupVersionResource) cache.SharedIndexInformer {
			return factory.ForResource(gvr).Informer()
		},
		Work: func(ctx context.Context, k plan.Kind) error {
			if fail != nil {
				return fail
			}
			w.work(k.Kind, true)
			defer w.work(k.Kind, false)
			<-ctx.Done()
			return ctx.Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	return w, func() error {
		defer factory.Shutdown()
		if fail == nil {
			cancel()
		}
		err := <-ended
		cancel()
		return err
	}
}

func (w *world) work(kind string, on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.works[kind] == on {
		w.Errorf("%s: told twice that it is worked with: %v", kind, on)
	}
	w.works[kind] = on
}

func (w *world) create(of dynamic.ResourceInterface, u *unstructured.Unstructured) {
	w.Helper()
	if _, err := of.Create(w.Context(), u, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) expect(want string) {
	w.Helper()
	time.Sleep(time.Second) // of the bubble's time, which caches take to say that they are full
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.works, func(_ string, on bool) bool { return !on })
	if got := strings.Join(slices.Sorted(maps.Keys(w.works)), " "); got != want {
		w.Errorf("worked with are %q, want %q", got, want)
	}
}

func TestKindsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, end := start(t, nil)
		w.create(w.policies, policy("carts", "Cart"))
		w.expect("")
		carts := definition("carts", "Cart")
		w.create(w.definitions, carts)
		w.create(w.definitions, definition("birds", "Bird"))
		w.expect("Cart")
		w.create(w.policies, policy("birds", "Bird"))
		w.expect("Bird Cart")
		carts.SetFinalizers([]string{v1beta1.DeleteFromClustersFinalizer})
		if _, err := w.definitions.Update(t.Context(), carts, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"carts", "birds"} {
			if err := w.policies.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		w.expect("Cart") // the members have its definition
		if err := w.definitions.Delete(t.Context(), carts.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.expect("")
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func TestWorkThatEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		w, end := start(t, boom)
		w.create(w.definitions, definition("carts", "Cart"))
		w.create(w.policies, policy("carts", "Cart"))
		if err := end(); !errors.Is(err, boom) {
			t.Errorf("Run has returned %v", err)
		}
	})
}
