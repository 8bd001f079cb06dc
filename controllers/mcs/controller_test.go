package mcs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
)

var kinds = map[string]memapi.Resource{
	"Namespace":     {GroupVersionResource: namespaces, Kind: "Namespace"},
	"Service":       {GroupVersionResource: services, Kind: "Service", Namespaced: true, Status: true},
	"EndpointSlice": {GroupVersionResource: endpointSlices, Kind: "EndpointSlice", Namespaced: true},
	"ServiceExport": {GroupVersionResource: serviceExports, Kind: "ServiceExport", Namespaced: true, Status: true},
	"ServiceImport": {GroupVersionResource: serviceImports, Kind: "ServiceImport", Namespaced: true, Status: true},
	"Cluster":       {GroupVersionResource: v1beta1.ClustersResource, Kind: "Cluster", Status: true},
}

// api is the API of a cluster in memory, with what our controller wrote to it.
type api struct {
	*memapi.API
	others dynamic.Interface // requests that are not counted

	mu      sync.Mutex
	writes  []string
	refuses bool // to show exports
}

func (a *api) refuse(is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refuses = is
}

func newAPI(with ...string) *api {
	a := &api{}
	addresses := 0
	o := memapi.Options{Admit: func(r memapi.Resource, before, after *unstructured.Unstructured) error {
		if r.Kind == "Service" && before == nil {
			if ip, _, _ := unstructured.NestedString(after.Object, "spec", "clusterIP"); ip == "" {
				addresses++
				ip = fmt.Sprintf("10.96.0.%d", addresses)
				_ = unstructured.SetNestedField(after.Object, ip, "spec", "clusterIP")
				return unstructured.SetNestedStringSlice(after.Object, []string{ip}, "spec", "clusterIPs")
			}
		}
		return nil
	}}
	for _, kind := range with {
		o.Resources = append(o.Resources, kinds[kind])
	}
	a.API = memapi.New(o)
	a.others = a.Client("others", nil)
	return a
}

func (a *api) carry(ctx context.Context, r memapi.Request, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refuses && r.Resource == serviceExports {
		return apierrors.NewForbidden(r.Resource.GroupResource(), r.Name, nil)
	}
	if r.Writes() {
		verb := r.Verb
		if r.Subresource != "" {
			verb = r.Subresource
		}
		a.writes = append(a.writes, fmt.Sprintf("%s %s/%s", verb, r.Resource.Resource, r.Name))
	}
	return do()
}

// read returns the writes since the last call, sorted.
func (a *api) read() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() { a.writes = nil }()
	slices.Sort(a.writes)
	return a.writes
}

// create creates an object of shop, or of no namespace.
func (a *api) create(t testing.TB, kind, name, rest string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(rest), &u.Object); err != nil {
		t.Fatal(err)
	}
	if u.Object == nil {
		u.Object = map[string]any{}
	}
	r := kinds[kind]
	u.SetGroupVersionKind(r.GroupVersion().WithKind(kind))
	u.SetName(name)
	if _, err := a.in(kind).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (a *api) in(kind string) dynamic.ResourceInterface {
	if r := kinds[kind]; r.Namespaced {
		return a.others.Resource(r.GroupVersionResource).Namespace("shop")
	}
	return a.others.Resource(kinds[kind].GroupVersionResource)
}

func (a *api) patch(t testing.TB, kind, name, patch string, sub ...string) {
	t.Helper()
	if _, err := a.in(kind).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, sub...); err != nil {
		t.Fatal(err)
	}
}

func (a *api) remove(t testing.TB, kind, name string) {
	t.Helper()
	if err := a.in(kind).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// serve creates Service and endpoints of shop/NAME.
func (a *api) serve(t testing.TB, name string, addresses ...string) {
	t.Helper()
	a.create(t, "Service", name, `{spec: {ipFamilies: [IPv4], ports: [{name: http, protocol: TCP, port: 80, targetPort: 8080}]}}`)
	var all []string
	for _, address := range addresses {
		all = append(all, fmt.Sprintf("{addresses: [%s], conditions: {ready: true}}", address))
	}
	a.create(t, "EndpointSlice", name+"-x", fmt.Sprintf(`{metadata: {labels: {kubernetes.io/service-name: %s}}, addressType: IPv4, ports: [{name: http, protocol: TCP, port: 8080}], endpoints: [%s]}`, name, strings.Join(all, ",")))
}

// fleet has members and a federation over them.
type fleet struct {
	federation *api
	members    map[string]*api
	events     *record.FakeRecorder
	engaged    map[string]context.CancelFunc
	controller *Controller
	ctx        context.Context
}

func newFleet(t testing.TB, names ...string) *fleet {
	f := &fleet{federation: newAPI("Namespace", "Service", "ServiceExport", "ServiceImport", "Cluster"), members: map[string]*api{}, events: record.NewFakeRecorder(100)}
	f.federation.create(t, "Namespace", "shop", "")
	for _, name := range names {
		f.members[name] = newAPI("Namespace", "Service", "EndpointSlice", "ServiceExport", "ServiceImport")
		f.members[name].create(t, "Namespace", "shop", "")
		f.federation.create(t, "Cluster", name, `{spec: {network: flat}}`)
		f.ready(t, name, true)
	}
	return f
}

func (f *fleet) ready(t testing.TB, name string, is bool) {
	t.Helper()
	f.federation.patch(t, "Cluster", name, fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, map[bool]string{true: "True", false: "False"}[is]), "status")
}

// informers returns informers of a client, limited by a selector and a namespace.
func informers(client dynamic.Interface, namespace, selector string) (Informers, dynamicinformer.DynamicSharedInformerFactory) {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, func(o *metav1.ListOptions) { o.LabelSelector = selector })
	return func(r schema.GroupVersionResource) cache.SharedIndexInformer {
		return factory.ForResource(r).Informer()
	}, factory
}

// engage connects a member, until lose is called.
func (f *fleet) engage(t testing.TB, name string) {
	t.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	f.engaged[name] = cancel
	client := f.members[name].Client("federation", f.members[name].carry)
	from := func(ctx context.Context, namespace, selector string) (Informers, func()) {
		of, factory := informers(client, namespace, selector)
		return of, func() { factory.Start(ctx.Done()) }
	}
	if err := f.controller.Engage(ctx, Member{
		Name: name, Client: client,
		Ours: func(ctx context.Context, selector string) (Informers, func()) {
			return from(ctx, "", strings.TrimSuffix(v1beta1.ManagedByLabel+"=fed,"+selector, ","))
		},
		All: func(ctx context.Context, namespace string) (Informers, func()) { return from(ctx, namespace, "") },
	}); err != nil {
		t.Fatal(err)
	}
}

// run runs a controller, with all members engaged but those that are away, while do runs.
func (f *fleet) run(t testing.TB, away string, do func()) {
	t.Helper()
	stop := f.start(t, away)
	calm()
	do()
	stop()
	calm()
}

// start starts a controller, with all members engaged but those that are away.
func (f *fleet) start(t testing.TB, away string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f.ctx, f.engaged = ctx, map[string]context.CancelFunc{}
	client := f.federation.Client("federation", f.federation.carry)
	of, factory := informers(client, "", "")
	c, err := New(Options{Client: client, Informers: of, Federation: "fed", Recorder: f.events})
	if err != nil {
		t.Fatal(err)
	}
	f.controller = c
	factory.Start(ctx.Done())
	for name := range f.members {
		if name != away {
			f.engage(t, name)
		}
	}
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		factory.Shutdown()
	}
}

func calm() { time.Sleep(2 * time.Second); synctest.Wait() }

// wrote fails unless APIs got exactly these writes since the last call: "NAME: verb resource/name, …", "federation" first.
func (f *fleet) wrote(t *testing.T, what string, want ...string) {
	t.Helper()
	calm()
	var got []string
	all := maps.Clone(f.members)
	all[""] = f.federation
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if writes := all[name].read(); len(writes) > 0 {
			got = append(got, strings.TrimPrefix(name+": "+strings.Join(writes, ", "), ": "))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got  %q\n want %q", what, got, want)
	}
}

// endpoints returns what a member has of shop/web: "CLUSTER ADDRESS", "!" before what is not ready.
func (f *fleet) endpoints(member string) string {
	var all []string
	for _, u := range f.members[member].List(endpointSlices, nil) {
		if cluster := u.GetLabels()[mcsv1beta1.LabelSourceCluster]; cluster != "" && u.GetLabels()["kubernetes.io/service-name"] == "derived-web" {
			list, _, _ := unstructured.NestedSlice(u.Object, "endpoints")
			for _, e := range list {
				e := e.(map[string]any)
				ready, _, _ := unstructured.NestedBool(e, "conditions", "ready")
				all = append(all, map[bool]string{true: "", false: "!"}[ready]+cluster+" "+e["addresses"].([]any)[0].(string))
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (f *fleet) expect(t *testing.T, what, member, want string) {
	t.Helper()
	calm()
	if got := f.endpoints(member); got != want {
		t.Errorf("%s: %s has %q, want %q", what, member, got, want)
	}
}

func condition(t testing.TB, a *api, kind, condition string) string {
	t.Helper()
	u := a.Get(kinds[kind].GroupVersionResource, "shop", "web")
	if u == nil {
		return "no " + kind
	}
	var conditions []metav1.Condition
	e := read[mcsv1beta1.ServiceExport](u)
	if conditions = e.Status.Conditions; kind == "ServiceImport" {
		conditions = read[mcsv1beta1.ServiceImport](u).Status.Conditions
	}
	if c := meta.FindStatusCondition(conditions, condition); c != nil && !c.LastTransitionTime.IsZero() {
		return string(c.Status) + " " + c.Reason
	}
	return "none"
}

// Each change costs exactly these writes.
func TestWritesForEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "east", "west")
		f.run(t, "", func() {
			f.wrote(t, "nothing is exported")
			f.members["east"].serve(t, "web", "10.1.0.1")
			f.members["east"].serve(t, "other", "10.1.0.9")
			f.wrote(t, "nor is a Service by itself")
			f.members["east"].create(t, "ServiceExport", "web", "")
			name := f.slice(t, "west")
			imported := "create endpointslices/" + name + ", create serviceimports/web, create services/derived-web, status serviceimports/web, status serviceimports/web, update serviceimports/web"
			f.wrote(t, "an export",
				"create serviceimports/web, status serviceimports/web",
				"east: "+strings.Replace(imported, "derived-web, ", "derived-web, status serviceexports/web, ", 1),
				"west: "+imported)
			f.members["east"].patch(t, "EndpointSlice", "web-x", `{"endpoints":[{"addresses":["10.1.0.1"],"conditions":{"ready":true}},{"addresses":["10.1.0.2"],"conditions":{"ready":true}}]}`)
			f.wrote(t, "an endpoint more", "east: update endpointslices/"+name, "west: update endpointslices/"+name)
			f.members["east"].patch(t, "EndpointSlice", "other-x", `{"endpoints":[]}`)
			f.members["east"].patch(t, "Service", "other", `{"metadata":{"labels":{"a":"b"}}}`)
			f.wrote(t, "what is not exported")
			f.members["west"].patch(t, "EndpointSlice", name, `{"endpoints":[]}`)
			f.members["west"].patch(t, "Service", "derived-web", `{"spec":{"selector":{"a":"b"}}}`)
			f.wrote(t, "drift", "west: update endpointslices/"+name+", update services/derived-web")
			f.members["west"].remove(t, "Service", "derived-web")
			f.wrote(t, "a derived Service is deleted: the next one has another address", "west: create services/derived-web, update serviceimports/web, update serviceimports/web")
			time.Sleep(time.Hour)
			f.wrote(t, "nothing, for an hour")
		})
		f.run(t, "", func() { f.wrote(t, "a restart") })
		f.run(t, "east", func() {
			f.wrote(t, "a restart while the exporting cluster is not seen")
			f.engage(t, "east")
			f.wrote(t, "it is seen")
			name := f.slice(t, "west")
			f.members["east"].remove(t, "ServiceExport", "web")
			gone := "delete endpointslices/" + name + ", delete serviceimports/web, delete services/derived-web"
			f.wrote(t, "the export ends", "delete serviceimports/web", "east: "+gone, "west: "+gone)
		})
	})
}

// slice returns the name of the slice that a member has of east's endpoints.
func (f *fleet) slice(t *testing.T, member string) string {
	t.Helper()
	calm()
	for _, u := range f.members[member].List(endpointSlices, nil) {
		if u.GetLabels()[mcsv1beta1.LabelSourceCluster] == "east" {
			return u.GetName()
		}
	}
	t.Fatalf("%s has no slice of east", member)
	return ""
}

func TestTwoClustersExport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "east", "north", "west")
		f.run(t, "", func() {
			f.members["east"].create(t, "ServiceExport", "web", "")
			calm()
			if got := condition(t, f.members["east"], "ServiceExport", "Valid"); got != "False NoService" {
				t.Errorf("an export without a Service: Valid is %s", got)
			}
			f.members["east"].serve(t, "web", "10.1.0.1") // later than its export
			time.Sleep(time.Second)
			f.members["west"].serve(t, "web", "10.3.0.1")
			f.members["west"].create(t, "ServiceExport", "web", "")
			f.expect(t, "both export", "north", "east 10.1.0.1, west 10.3.0.1")
			for _, m := range []string{"east", "west"} {
				if got := condition(t, f.members[m], "ServiceExport", "Valid") + condition(t, f.members[m], "ServiceExport", "Conflict"); got != "True ValidFalse NoConflicts" {
					t.Errorf("%s: %s", m, got)
				}
			}
			f.members["west"].patch(t, "Service", "web", `{"spec":{"ports":[{"name":"http","protocol":"TCP","port":81}]}}`)
			f.expect(t, "west's port has another number", "north", "east 10.1.0.1")
			if got := condition(t, f.members["east"], "ServiceExport", "Conflict"); got != "True PortConflict" {
				t.Errorf("east is told %s", got)
			}
			f.members["west"].patch(t, "Service", "web", `{"spec":{"ports":[{"name":"http","protocol":"TCP","port":80}]}}`)
			f.expect(t, "and the same again", "north", "east 10.1.0.1, west 10.3.0.1")

			f.engaged["west"]()
			f.expect(t, "west is not connected, but ready", "north", "east 10.1.0.1, west 10.3.0.1")
			f.ready(t, "west", false)
			f.expect(t, "west is lost", "north", "!west 10.3.0.1, east 10.1.0.1")
			f.members["east"].patch(t, "EndpointSlice", "web-x", `{"endpoints":[]}`)
			f.expect(t, "west is lost, and east serves nothing", "north", "west 10.3.0.1")
			f.ready(t, "west", true)
			f.engage(t, "west")
			f.expect(t, "west is back", "north", "west 10.3.0.1")
			f.members["east"].remove(t, "ServiceExport", "web")
			f.members["west"].remove(t, "ServiceExport", "web")
			calm()
			if got := condition(t, f.members["north"], "ServiceImport", "Ready"); got != "no ServiceImport" {
				t.Errorf("nobody exports it, and the import is %s", got)
			}
			if len(f.controller.seen["east"].spaces) > 0 {
				t.Error("caches of a namespace stay where nothing is exported")
			}
		})
	})
}

// Imports go where the namespace is, and where nobody else's object has the name.
func TestWhereImportsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "east", "west")
		f.members["west"] = newAPI("Namespace", "Service", "EndpointSlice", "ServiceExport", "ServiceImport")
		f.run(t, "", func() {
			f.members["east"].serve(t, "web", "10.1.0.1")
			f.members["east"].create(t, "ServiceExport", "web", "")
			f.expect(t, "the namespace is not there", "west", "")
			f.members["west"].create(t, "Namespace", "shop", "")
			f.expect(t, "it is", "west", "east 10.1.0.1")
			f.federation.patch(t, "Cluster", "west", `{"spec":{"allowedNamespaces":["office"]}}`)
			f.federation.patch(t, "Cluster", "west", `{"spec":{"dnsWeight":0}}`)
			f.expect(t, "west is for others", "west", "")
			f.federation.patch(t, "Cluster", "west", `{"spec":{"allowedNamespaces":null,"network":"other"}}`)
			f.expect(t, "west reaches no pods of east", "west", "")
			f.members["east"].patch(t, "Service", "web", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`, "status")
			f.expect(t, "but its load balancer", "west", "east 192.0.2.1")
		})
		f = newFleet(t, "east", "west")
		f.members["west"].create(t, "ServiceImport", "web", `{spec: {type: Headless, ports: []}}`)
		f.members["west"].create(t, "Service", "derived-api", `{spec: {ports: [{port: 80}]}}`)
		f.run(t, "", func() {
			for _, name := range []string{"web", "api"} {
				f.members["east"].serve(t, name, "10.1.0.1")
				f.members["east"].create(t, "ServiceExport", name, "")
			}
			f.expect(t, "somebody else's import has the name", "west", "")
			for _, u := range f.members["west"].List(endpointSlices, nil) {
				t.Errorf("somebody else's Service has the name of the derived one, and gets %s", u.GetName())
			}
			got := map[string]bool{}
			for len(f.events.Events) > 0 {
				text := <-f.events.Events
				if got[text] = true; !strings.Contains(text, v1beta1.EventServiceNotImported) || !strings.Contains(text, "left alone") {
					t.Errorf("event %q", text)
				}
			}
			if len(got) != 2 {
				t.Errorf("events %v, want one for each", got)
			}
		})
	})
}

// What is exported at the federation is exported where the Service has a copy; an export of a member's user stays.
func TestExportsAtTheFederation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "east", "north", "west")
		mark := `{"metadata":{"labels":{"federation.kubernetes.io/managed-by":"fed"},"annotations":{"federation.kubernetes.io/copy-of":"Service/shop/web"}}}`
		f.run(t, "", func() {
			f.federation.create(t, "ServiceExport", "web", `{spec: {exportedLabels: {tier: gold}}}`)
			calm()
			if got := condition(t, f.federation, "ServiceExport", "Valid"); got != "False NoService" {
				t.Errorf("no cluster has the Service: %s", got)
			}
			for name, address := range map[string]string{"east": "10.1.0.1", "west": "10.3.0.1"} {
				f.members[name].serve(t, "web", address)
			}
			f.members["west"].create(t, "ServiceExport", "web", "") // of a user
			f.members["east"].patch(t, "Service", "web", mark)
			f.members["west"].patch(t, "Service", "web", mark)
			f.expect(t, "two have it", "north", "east 10.1.0.1, west 10.3.0.1")
			if got := condition(t, f.federation, "ServiceExport", "Valid"); got != "True Valid" {
				t.Errorf("Valid is %s", got)
			}
			if got := condition(t, f.federation, "ServiceExport", "Conflict"); got != "True LabelsConflict" {
				t.Errorf("west's has other labels: Conflict is %s", got)
			}
			summary := read[mcsv1beta1.ServiceImport](f.federation.Get(serviceImports, "shop", "web"))
			if summary == nil || len(summary.Status.Clusters) != 2 || len(summary.Spec.IPs) > 0 {
				t.Errorf("at the federation: %+v", summary)
			}
			f.members["east"].remove(t, "Service", "web")
			f.members["east"].remove(t, "EndpointSlice", "web-x")
			f.expect(t, "the copy leaves east", "north", "west 10.3.0.1")
			if f.members["east"].Get(serviceExports, "shop", "web") != nil {
				t.Error("its export stays in east")
			}
			f.federation.remove(t, "ServiceExport", "web")
			f.expect(t, "the export of west's user counts", "north", "west 10.3.0.1")
		})
	})
}

// A cluster that does not serve the API takes no part; when it does, it does.
func TestMembersWithoutTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "east", "west")
		f.members["west"] = newAPI("Namespace", "Service", "EndpointSlice")
		f.members["west"].create(t, "Namespace", "shop", "")
		f.run(t, "", func() {
			f.members["east"].serve(t, "web", "10.1.0.1")
			f.members["east"].create(t, "ServiceExport", "web", "")
			f.expect(t, "west does not serve it", "east", "east 10.1.0.1")
			f.expect(t, "west does not serve it", "west", "")
			f.members["west"].Serve(kinds["ServiceExport"])
			f.members["west"].Serve(kinds["ServiceImport"])
			time.Sleep(servedLast)
			f.expect(t, "west serves it", "west", "east 10.1.0.1")
			f.members["west"].serve(t, "web", "10.3.0.1")
			f.members["west"].create(t, "ServiceExport", "web", "")
			f.expect(t, "west exports", "east", "east 10.1.0.1, west 10.3.0.1")
			f.members["west"].refuse(true)
			time.Sleep(absentAfter / 2)
			f.expect(t, "west takes the rights away", "east", "east 10.1.0.1, west 10.3.0.1")
			time.Sleep(servedStill + absentAfter + servedLast)
			f.expect(t, "a while later", "east", "east 10.1.0.1")
			f.members["west"].refuse(false)
			time.Sleep(servedLast)
			f.expect(t, "west gives them back", "east", "east 10.1.0.1, west 10.3.0.1")
		})
	})
}

// Clients use the clusters that the export's selectors select, by the labels of Clusters.
func TestClustersAreSelected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "east", "north", "west")
		f.run(t, "", func() {
			export := `{spec: {exportedAnnotations: {federation.kubernetes.io/cluster-selectors: '[{"propertySelector": {"matchProperties": {"example.com/ocean": "@SameAsImporter@"}}}]'}}}`
			for i, m := range []string{"east", "west"} {
				f.members[m].serve(t, "web", fmt.Sprintf("10.%d.0.1", i+1))
				f.members[m].create(t, "ServiceExport", "web", export)
			}
			f.expect(t, "nobody has the property", "north", "east 10.1.0.1, west 10.2.0.1")
			for cluster, ocean := range map[string]string{"north": "atlantic", "east": "atlantic", "west": "pacific"} {
				f.federation.patch(t, "Cluster", cluster, `{"metadata":{"labels":{"example.com/ocean":"`+ocean+`"}}}`)
			}
			f.expect(t, "all have it", "north", "!west 10.2.0.1, east 10.1.0.1")
			f.ready(t, "east", false)
			f.expect(t, "what is selected is lost", "north", "!east 10.1.0.1, west 10.2.0.1")
		})
	})
}
