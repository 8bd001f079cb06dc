package propagation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/propagation/plan"
)

// meter is an API in memory that counts our controller's requests other than lists and watches.
type meter struct {
	*memapi.API
	others dynamic.Interface // requests that are not counted: users, and a member's own controllers

	hangs atomic.Bool // writes are not answered

	mu    sync.Mutex
	calls map[string]int
}

func newMeter() *meter {
	resources := []memapi.Resource{
		{GroupVersionResource: v1beta1.ClustersResource, Kind: "Cluster", Status: true},
		{GroupVersionResource: v1beta1.PoliciesResource, Kind: "PlacementPolicy", Namespaced: true, Generation: true},
		{GroupVersionResource: plan.EndpointSlices, Kind: "EndpointSlice", Namespaced: true},
	}
	for _, k := range plan.Kinds {
		workload := k.Healthy != nil
		resources = append(resources, memapi.Resource{GroupVersionResource: k.Resource, Kind: k.Kind, Namespaced: k.Kind != "Namespace", Status: k.Status != nil, Generation: workload})
	}
	api := memapi.New(memapi.Options{Resources: resources})
	return &meter{API: api, others: api.Client("others", nil), calls: map[string]int{}}
}

func (m *meter) count(ctx context.Context, r memapi.Request, do func() error) error {
	if m.hangs.Load() && r.Writes() {
		<-ctx.Done()
		return ctx.Err()
	}
	if r.Verb != "list" && r.Verb != "watch" {
		m.mu.Lock()
		m.calls[strings.TrimSuffix(r.Verb+" "+r.Resource.Resource+"/"+r.Subresource, "/")]++
		m.mu.Unlock()
	}
	return do()
}

// read returns the counts since the last call, as "apply replicasets 1, …".
func (m *meter) read() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, call := range slices.Sorted(maps.Keys(m.calls)) {
		out = append(out, fmt.Sprintf("%s %d", call, m.calls[call]))
	}
	m.calls = map[string]int{}
	return strings.Join(out, ", ")
}

func (m *meter) informers(ctx context.Context, client dynamic.Interface, selector string) Informers {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, metav1.NamespaceAll, func(o *metav1.ListOptions) { o.LabelSelector = selector })
	return func(gvr schema.GroupVersionResource) cache.SharedIndexInformer {
		informer := factory.ForResource(gvr).Informer()
		if !informer.HasSynced() {
			defer func() { go factory.Start(ctx.Done()) }()
		}
		return informer
	}
}

func (m *meter) merge(t *testing.T, gvr schema.GroupVersionResource, name, patch string, subresource ...string) {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.others.Resource(gvr).Namespace("default").Patch(t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{}, subresource...); err != nil {
		t.Fatal(err)
	}
}

func (m *meter) create(t *testing.T, gvr schema.GroupVersionResource, namespace, text string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	var r dynamic.ResourceInterface = m.others.Resource(gvr)
	if namespace != "" {
		u.SetFinalizers([]string{v1beta1.DeleteFromClustersFinalizer})
		r = m.others.Resource(gvr).Namespace(namespace)
	}
	if _, err := r.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// fleet is a federation with members, and a controller that can be restarted.
type fleet struct {
	federation *meter
	members    map[string]*meter
	clients    map[string]*memapi.Client // of the running controller, by member
}

func newFleet(t *testing.T, names ...string) *fleet {
	f := &fleet{federation: newMeter(), members: map[string]*meter{}, clients: map[string]*memapi.Client{}}
	f.federation.create(t, namespaces, "", `{apiVersion: v1, kind: Namespace, metadata: {name: default}}`)
	f.federation.create(t, namespaces, "", `{apiVersion: v1, kind: Namespace, metadata: {name: federation-system}}`)
	for _, name := range names {
		f.members[name] = newMeter()
		f.members[name].create(t, namespaces, "", `{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {federation.kubernetes.io/accept: fed}}}`)
		f.federation.create(t, v1beta1.ClustersResource, "", `{apiVersion: federation/v1beta1, kind: Cluster, metadata: {name: `+name+`}}`)
		if _, err := f.federation.others.Resource(v1beta1.ClustersResource).Patch(t.Context(), name, types.MergePatchType,
			[]byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// run runs a controller while do runs.
func (f *fleet) run(t *testing.T, o Options, do func()) {
	ctx, stop := context.WithCancel(t.Context())
	client := f.federation.Client("federation", f.federation.count)
	o.Client, o.Informers, o.Federation, o.Recorder = client, f.federation.informers(ctx, client, ""), "fed", record.NewFakeRecorder(100)
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range f.members {
		client := m.Client("federation", m.count)
		f.clients[name] = client
		if err := c.Engage(ctx, Member{Name: name, Client: client, Informers: m.informers(ctx, client, v1beta1.ManagedByLabel+"=fed")}); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	calm()
	do()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	calm()
}

func calm() { time.Sleep(5 * time.Second); synctest.Wait() }

// read returns the calls at the federation, and those that each member got; by member if they differ.
func (f *fleet) read() (federation, members string) {
	all := map[string]string{}
	for name, m := range f.members {
		all[name] = m.read()
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] != all["east-a"] {
			members += "; " + name + ": " + all[name]
		}
	}
	return f.federation.read(), all["east-a"] + members
}

var replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}

const webSet = `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web, annotations: {federation.kubernetes.io/placement: '{"clusters":{"east-a":2,"east-b":2,"west-a":2}}'}}
spec: {replicas: 6, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}}
`

// Each change costs exactly these calls.
func TestCallsForEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "east-a", "east-b", "west-a")
		federation, member := f.federation, f.members["east-a"]
		changes := []struct {
			name                string
			do                  func()
			federation, members string
		}{
			{"start", func() {}, "", ""},
			{"create a ConfigMap", func() {
				federation.create(t, configMaps, "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {key: value}}`)
			}, "", "apply configmaps 1, get namespaces 1"}, // once a minute, where the namespace is the member's own
			{"change it", func() { federation.merge(t, configMaps, "web", `{data: {key: other}}`) }, "", "apply configmaps 1"},
			{"create a ReplicaSet", func() { federation.create(t, replicaSets, "default", webSet) }, "patch replicasets/status 1", "apply replicasets 1"},
			{"a copy's status", func() {
				member.merge(t, replicaSets, "web", `{status: {observedGeneration: 1, replicas: 2, readyReplicas: 2}}`, "status")
			}, "patch replicasets/status 1", ""},
			{"the same status", func() {
				member.merge(t, replicaSets, "web", `{status: {observedGeneration: 1, replicas: 2, readyReplicas: 2}}`, "status")
			}, "", ""},
			{"scale up", func() {
				federation.merge(t, replicaSets, "web", `{spec: {replicas: 9}, metadata: {annotations: {federation.kubernetes.io/placement: '{"clusters":{"east-a":3,"east-b":3,"west-a":3}}'}}}`)
			}, "", "apply replicasets 1"}, // its status does not change before a copy's does
			{"a new decision with the same numbers", func() {
				federation.merge(t, replicaSets, "web", `{metadata: {annotations: {federation.kubernetes.io/placement: '{"clusters":{"east-a":3,"east-b":3,"west-a":3},"notes":["x"]}'}}}`)
			}, "", ""},
			{"drift in one member", func() { member.merge(t, replicaSets, "web", `{spec: {replicas: 7}}`) }, "", "apply replicasets 1; east-b: ; west-a: "},
			{"a policy without effect", func() {
				federation.create(t, v1beta1.PoliciesResource, "default", `{apiVersion: federation/v1beta1, kind: PlacementPolicy, metadata: {name: web}, spec: {resourceSelectors: []}}`)
				federation.merge(t, replicaSets, "web", `{metadata: {annotations: {federation.kubernetes.io/placement: '{"clusters":{"east-a":3,"east-b":3,"west-a":3},"policy":"web"}'}}}`)
			}, "", ""},
			{"an override in one cluster", func() {
				federation.merge(t, v1beta1.PoliciesResource, "web", `{spec: {overrides: [{clusters: {names: [east-a]}, jsonPatch: [{op: add, path: /metadata/labels, value: {where: here}}]}]}}`)
			}, "", "apply replicasets 1; east-b: ; west-a: "},
			{"nothing, for an hour", func() { time.Sleep(time.Hour) }, "", ""},
			{"delete it", func() {
				if err := federation.others.Resource(replicaSets).Namespace("default").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}, "patch replicasets 1", "delete replicasets 1"},
		}
		f.run(t, Options{}, func() {
			for _, c := range changes {
				c.do()
				calm()
				if federation, members := f.read(); federation != c.federation || members != c.members {
					t.Errorf("%s\nat the federation  %q, want %q\nin each member     %q, want %q", c.name, federation, c.federation, members, c.members)
				}
			}
		})
		f.run(t, Options{}, func() {
			if federation, members := f.read(); federation+members != "" {
				t.Errorf("a restart: %q at the federation, %q in members", federation, members)
			}
		})
	})
}

// Copies that members delete with a namespace are not created again, and no event mentions them.
func TestCallsWhileANamespaceGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "east-a", "east-b", "west-a")
		shop := `{apiVersion: v1, kind: Namespace, metadata: {name: shop, finalizers: [example.test/held]}}`
		remove := func(m *meter, gvr schema.GroupVersionResource, namespace, name string) {
			t.Helper()
			var r dynamic.ResourceInterface = m.others.Resource(gvr)
			if namespace != "" {
				r = m.others.Resource(gvr).Namespace(namespace)
			}
			background := metav1.DeletePropagationBackground
			if err := r.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
				t.Fatal(err)
			}
		}
		want := func(what, federation, members string) {
			t.Helper()
			calm()
			if gotFederation, gotMembers := f.read(); gotFederation != federation || gotMembers != members {
				t.Errorf("%s\nat the federation  %q, want %q\nin each member     %q, want %q", what, gotFederation, federation, gotMembers, members)
			}
		}
		f.run(t, Options{}, func() {
			f.federation.create(t, namespaces, "", shop)
			f.federation.create(t, replicaSets, "shop", webSet)
			calm()
			f.read()
			remove(f.federation, namespaces, "", "shop")
			want("the namespace is deleted", "", "delete namespaces 1")
			for _, m := range f.members {
				remove(m, replicaSets, "shop", "web")
			}
			want("members delete what is in it", "", "")
			remove(f.federation, replicaSets, "shop", "web")
			want("the federation does", "patch replicasets 1", "")
		})
	})
}
