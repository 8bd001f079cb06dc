package propagation

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/propagation/plan"
)

// Two controllers share the objects: each creates its own copies and leaves the other's alone, though it does not know
// their federated objects.
func TestPropagationKeepsForeignObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "east-a")
		for _, name := range []string{"mine", "theirs"} {
			f.federation.create(t, configMaps, "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`}, data: {key: value}}`)
		}
		owns := func(name string) Options {
			return Options{Owns: func(_ *plan.Kind, _, object string) bool { return object == name }}
		}
		f.run(t, owns("mine"), func() {
			if _, members := f.read(); members != "apply configmaps 1, get namespaces 1" {
				t.Errorf("mine: %s", members)
			}
		})
		f.run(t, owns("theirs"), func() {
			if err := f.federation.others.Resource(configMaps).Namespace("default").Delete(t.Context(), "mine", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			calm()
			if federation, members := f.read(); federation != "" || members != "apply configmaps 1, get namespaces 1" {
				t.Errorf("theirs: %q at the federation, %s", federation, members)
			}
		})
		f.run(t, owns("mine"), func() {
			if _, members := f.read(); members != "delete configmaps 1" {
				t.Errorf("mine again: %s", members)
			}
		})
	})
}

// A custom kind is an instance with a row of its own. Objects go unchanged; their status is left alone.
func TestPropagationOfACustomKind(t *testing.T) {
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "east-a", "west-a")
		for _, m := range []*meter{f.federation, f.members["east-a"], f.members["west-a"]} {
			m.Serve(memapi.Resource{GroupVersionResource: widgets, Kind: "Widget", Namespaced: true, Generation: true})
		}
		f.federation.create(t, widgets, "default", `
apiVersion: example.com/v1
kind: Widget
metadata: {name: one, annotations: {federation.kubernetes.io/placement: '{"clusters":{"west-a":1}}'}}
spec: {size: 3, replicas: 5}
status: {phase: Big}
`)
		f.run(t, Options{Kinds: []plan.Kind{plan.CustomKind(widgets, "Widget")}}, func() {
			if federation, members := f.read(); federation != "" || members != "; west-a: apply widgets 1" {
				t.Errorf("%q at the federation, %s", federation, members)
			}
			got := f.members["west-a"].Get(widgets, "default", "one")
			if size, _, _ := unstructured.NestedInt64(got.Object, "spec", "replicas"); size != 5 || got.Object["status"] != nil {
				t.Errorf("%v", got.Object)
			}
		})
	})
}

// A controller that ends leaves no handlers in informers that live on, nor do its members.
func TestAControllerEndsWholly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "east-a", "west-a")
		federation := f.federation.informers(t.Context(), f.federation.others, "")
		members := map[string]Informers{}
		for name, m := range f.members {
			members[name] = m.informers(t.Context(), m.others, v1beta1.ManagedByLabel+"=fed")
		}
		var before int
		for round := range 4 {
			ctx, stop := context.WithCancel(t.Context())
			c, err := New(Options{Client: f.federation.others, Informers: federation, Federation: "fed", Recorder: record.NewFakeRecorder(10)})
			if err != nil {
				t.Fatal(err)
			}
			for name, m := range f.members {
				if err := c.Engage(ctx, Member{Name: name, Client: m.others, Informers: members[name]}); err != nil {
					t.Fatal(err)
				}
			}
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx) }()
			calm()
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			calm()
			if round == 1 {
				before = runtime.NumGoroutine()
			}
		}
		// A leak would be at least one per member; goroutines of other tests may still be ending.
		if after := runtime.NumGoroutine(); after >= before+2*len(members) {
			t.Errorf("%d goroutines, there were %d two controllers ago", after, before)
		}
	})
}

// A member that does not let us list one kind gets the others all the same, and a delete does not wait for it.
func TestAKindThatCannotBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "east-a")
		f.federation.create(t, configMaps, "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {key: value}}`)
		f.federation.create(t, replicaSets, "default", webSet)
		m := f.members["east-a"]
		ctx, stop := context.WithCancel(t.Context())
		defer func() { stop(); calm() }()
		client := m.Client("federation", func(ctx context.Context, r memapi.Request, do func() error) error {
			if r.Resource == replicaSets && (r.Verb == "list" || r.Verb == "watch") {
				<-ctx.Done()
				return ctx.Err()
			}
			return m.count(ctx, r, do)
		})
		federation := f.federation.informers(ctx, f.federation.others, "")
		c, err := New(Options{Client: f.federation.Client("federation", f.federation.count), Informers: federation, Federation: "fed", Recorder: record.NewFakeRecorder(10)})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Engage(ctx, Member{Name: "east-a", Client: client, Informers: m.informers(ctx, client, v1beta1.ManagedByLabel+"=fed")}); err != nil {
			t.Fatal(err)
		}
		go func() { _ = c.Run(ctx) }()
		for range 4 {
			calm()
		}
		if federation, members := f.read(); members != "apply configmaps 1, get namespaces 1" || federation != "patch replicasets/status 1" {
			t.Errorf("%q at the federation, %s", federation, members)
		}
		if err := f.federation.others.Resource(replicaSets).Namespace("default").Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		calm()
		if f.federation.Get(replicaSets, "default", "web") != nil {
			t.Error("the delete waits for a kind that cannot be listed")
		}
	})
}
