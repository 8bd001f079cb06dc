package crosscluster

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"federation/apiserver/apis/resourceversion"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/servicedns/plan"
)

// api is a member's API in memory, with what our controller wrote to it.
type api struct {
	*memapi.API
	others dynamic.Interface // requests that are not counted

	mu     sync.Mutex
	writes []string
	fault  func(ctx context.Context, r memapi.Request) error // of writes
}

func newAPI() *api {
	a := &api{API: memapi.New(memapi.Options{Resources: []memapi.Resource{
		{GroupVersionResource: services, Kind: "Service", Namespaced: true, Status: true},
		{GroupVersionResource: endpointSlices, Kind: "EndpointSlice", Namespaced: true},
	}})}
	a.others = a.Client("others", nil)
	return a
}

func (a *api) carry(ctx context.Context, r memapi.Request, do func() error) error {
	if !r.Writes() {
		return do()
	}
	a.mu.Lock()
	a.writes = append(a.writes, r.Verb+" "+r.Name)
	fault := a.fault
	a.mu.Unlock()
	if fault != nil {
		if err := fault(ctx, r); err != nil {
			return err
		}
	}
	return do()
}

func (a *api) fail(fault func(context.Context, memapi.Request) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fault = fault
}

// read returns the writes since the last call, sorted.
func (a *api) read() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.Sort(a.writes)
	defer func() { a.writes = nil }()
	return strings.Join(a.writes, ", ")
}

func (a *api) create(t *testing.T, r schema.GroupVersionResource, text string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	if _, err := a.others.Resource(r).Namespace("shop").Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// service creates the copy of shop/NAME.
func (a *api) service(t *testing.T, name string) {
	t.Helper()
	a.create(t, services, `{apiVersion: v1, kind: Service, metadata: {namespace: shop, name: `+name+`, labels: {federation.kubernetes.io/managed-by: fed}, annotations: {federation.kubernetes.io/copy-of: Service/shop/`+name+`}}, spec: {ports: [{name: http, protocol: TCP, port: 80}]}}`)
}

func (a *api) patch(t *testing.T, r schema.GroupVersionResource, name, patch string) {
	t.Helper()
	if _, err := a.others.Resource(r).Namespace("shop").Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (a *api) remove(t *testing.T, r schema.GroupVersionResource, name string) {
	t.Helper()
	if err := a.others.Resource(r).Namespace("shop").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// fleet has members, and the offers of the federation.
type fleet struct {
	offers  *Offers
	members map[string]*api
	events  *record.FakeRecorder
}

func newFleet(names ...string) *fleet {
	f := &fleet{offers: NewOffers(), members: map[string]*api{}, events: record.NewFakeRecorder(100)}
	for _, name := range names {
		f.members[name] = newAPI()
	}
	return f
}

// run runs a controller while do runs.
func (f *fleet) run(t *testing.T, o Options, do func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	o.Offers, o.Federation, o.Recorder = f.offers, "fed", f.events
	c := New(o)
	var factories []dynamicinformer.DynamicSharedInformerFactory
	for name, a := range f.members {
		client := a.Client("federation", a.carry)
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, metav1.NamespaceAll, func(o *metav1.ListOptions) { o.LabelSelector = v1beta1.ManagedByLabel + "=fed" })
		factories = append(factories, factory)
		err := c.Engage(ctx, Member{Name: name, Client: client, Informers: func(r schema.GroupVersionResource) cache.SharedIndexInformer {
			return factory.ForResource(r).Informer()
		}})
		if err != nil {
			t.Fatal(err)
		}
		factory.Start(ctx.Done())
	}
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	calm()
	do()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, factory := range factories {
		factory.Shutdown()
	}
	calm()
}

func calm() { time.Sleep(time.Second); synctest.Wait() }

// wrote fails unless the members got exactly these writes since the last call: "member: writes", without members that
// got none.
func (f *fleet) wrote(t *testing.T, what string, want ...string) {
	t.Helper()
	calm()
	var got []string
	for _, name := range slices.Sorted(maps.Keys(f.members)) {
		if writes := f.members[name].read(); writes != "" {
			got = append(got, name+": "+writes)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// offers parses "CLUSTER=ADDRESS"; a leading "!" marks a cluster that is not seen.
func offers(items ...string) []plan.Offer {
	out := []plan.Offer{}
	for _, item := range items {
		name, address, _ := strings.Cut(item, "=")
		o := plan.Offer{Cluster: strings.TrimPrefix(name, "!"), Weight: 100, Addresses: []netip.Addr{netip.MustParseAddr(address)}}
		if o.Cluster != name {
			o.Rank = plan.RankUnseen
		}
		out = append(out, o)
	}
	return out
}

func (f *fleet) set(service string, o []plan.Offer) {
	f.offers.Set(map[string][]plan.Offer{service: o})
}

// Each change costs exactly these writes.
func TestWritesForEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("east", "north", "west")
		three := []string{"east=192.0.2.1", "north=192.0.2.2", "west=192.0.2.3"}
		f.run(t, Options{}, func() {
			for _, m := range f.members {
				m.service(t, "web")
			}
			f.wrote(t, "before it is known what clusters have")
			f.set("shop/web", offers(three...))
			f.wrote(t, "three clusters", "east: create web.north.v4, create web.west.v4", "north: create web.east.v4, create web.west.v4", "west: create web.east.v4, create web.north.v4")
			f.set("shop/web", offers(three...))
			f.wrote(t, "the same again")
			f.set("shop/web", offers("east=192.0.2.1", "!north=192.0.2.2", "west=192.0.2.3"))
			f.wrote(t, "a cluster is lost", "east: update web.north.v4", "west: update web.north.v4")
			f.set("shop/web", offers("east=192.0.2.1", "west=192.0.2.3"))
			f.wrote(t, "it says that nothing is ready", "east: delete web.north.v4", "west: delete web.north.v4")
			f.set("shop/web", offers(three...))
			f.wrote(t, "it is back", "east: create web.north.v4", "west: create web.north.v4")
			f.members["east"].patch(t, services, "web", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`)
			f.members["east"].create(t, endpointSlices, `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: shop, name: web-abcde, labels: {federation.kubernetes.io/managed-by: fed, kubernetes.io/service-name: web, endpointslice.kubernetes.io/managed-by: endpointslice-controller.k8s.io, multicluster.kubernetes.io/service-name: web}}}`)
			f.wrote(t, "what the member's own controllers write")
			f.members["east"].patch(t, endpointSlices, "web.west.v4", `{"endpoints":[]}`)
			f.wrote(t, "drift", "east: update web.west.v4")
			f.members["east"].remove(t, endpointSlices, "web.west.v4")
			f.wrote(t, "a slice is deleted", "east: create web.west.v4")
			time.Sleep(time.Hour)
			f.wrote(t, "nothing, for an hour")
		})
		f.run(t, Options{}, func() {
			f.wrote(t, "a restart")
			f.members["east"].patch(t, services, "web", `{"metadata":{"labels":{"federation.kubernetes.io/managed-by":null}}}`)
			f.wrote(t, "the copy is released", "east: delete web.north.v4, delete web.west.v4")
			f.members["west"].remove(t, services, "web")
			f.wrote(t, "the copy is deleted", "west: delete web.east.v4, delete web.north.v4")
		})
	})
}

// A controller that does not know what clusters have changes nothing.
func TestNothingGoesForWhatIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("east")
		f.members["east"].service(t, "web")
		f.set("shop/web", offers("west=192.0.2.3"))
		f.run(t, Options{}, func() { f.wrote(t, "at first", "east: create web.west.v4") })
		f.offers = NewOffers()
		f.run(t, Options{}, func() {
			f.wrote(t, "a new process that has planned nothing yet")
			f.set("shop/other", offers("west=192.0.2.4"))
			f.wrote(t, "one that could not read the Service")
			f.set("shop/web", offers())
			f.wrote(t, "one that knows that no cluster has an address", "east: delete web.west.v4")
		})
	})
}

func TestServicesOfOthersAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("east")
		f.members["east"].service(t, "web")
		f.members["east"].service(t, "api")
		f.offers.Set(map[string][]plan.Offer{"shop/web": offers("west=192.0.2.3"), "shop/api": offers("west=192.0.2.4")})
		f.run(t, Options{Owns: func(_, name string) bool { return name == "api" }}, func() { f.wrote(t, "half of them", "east: create api.west.v4") })
	})
}

// With Withdraw nothing is written and existing slices go, whether or not offers are known.
func TestWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("east")
		f.members["east"].service(t, "web")
		f.set("shop/web", offers("north=192.0.2.2", "west=192.0.2.3"))
		f.run(t, Options{}, func() { f.wrote(t, "with them", "east: create web.north.v4, create web.west.v4") })
		f.offers = NewOffers()
		f.run(t, Options{Withdraw: true}, func() {
			f.wrote(t, "without", "east: delete web.north.v4, delete web.west.v4")
			f.set("shop/web", offers("west=192.0.2.3"))
			f.members["east"].service(t, "api")
			f.wrote(t, "what comes after")
		})
		f.run(t, Options{}, func() { f.wrote(t, "with them again", "east: create web.west.v4") })
	})
}

// A foreign slice with the name of one of ours stays as it is.
func TestAForeignSliceIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("east")
		east := f.members["east"]
		east.create(t, endpointSlices, `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: shop, name: web.west.v4, labels: {by: hand}}, addressType: IPv4}`)
		east.service(t, "web")
		f.set("shop/web", offers("north=192.0.2.2", "west=192.0.2.3"))
		f.run(t, Options{}, func() {
			calm()
			if got := east.Get(endpointSlices, "shop", "web.west.v4"); got.GetLabels()["by"] != "hand" || len(got.GetLabels()) != 1 {
				t.Errorf("it became %v", got)
			}
			if east.Get(endpointSlices, "shop", "web.north.v4") == nil {
				t.Error("the others did not come")
			}
			for i := range 7 {
				f.set("shop/web", offers(fmt.Sprint("north=192.0.2.1", i), "west=192.0.2.3"))
				calm()
			}
			if n := len(f.events.Events); n > 0 {
				t.Errorf("%d events in 9 seconds, for which a cache may be behind", n)
			}
			time.Sleep(time.Minute)
			if got := <-f.events.Events; len(f.events.Events) > 0 || !strings.HasPrefix(got, `Warning EndpointSliceRejected east: "web.west.v4": `) || !strings.Contains(got, `"web.west.v4" already exists`) {
				t.Errorf("%d more events than %q, want one that names the cluster and the slice", len(f.events.Events), got)
			}
			time.Sleep(time.Hour)
			if n := len(f.events.Events); n != 2 {
				t.Errorf("%d events in an hour, want one each half, so that there is always one to be seen", n)
			}
			east.read()
			east.remove(t, endpointSlices, "web.west.v4")
			time.Sleep(time.Minute)
			if got := east.Get(endpointSlices, "shop", "web.west.v4"); got == nil || got.GetLabels()["by"] != "" {
				t.Errorf("once the name is free: %v", got)
			}
		})
	})
}

func TestAMemberThatHangsHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("east", "west")
		for _, m := range f.members {
			m.service(t, "web")
		}
		f.members["east"].fail(func(ctx context.Context, _ memapi.Request) error { <-ctx.Done(); return ctx.Err() })
		f.run(t, Options{WriteTimeout: 10 * time.Second}, func() {
			f.set("shop/web", offers("east=192.0.2.1", "west=192.0.2.3"))
			calm()
			if got := f.members["west"].read(); got != "create web.east.v4" {
				t.Errorf("the other got %q", got)
			}
			f.members["east"].fail(nil)
			time.Sleep(15 * time.Second)
			if f.members["east"].Get(endpointSlices, "shop", "web.west.v4") == nil {
				t.Error("it hangs no more, and has no slice")
			}
		})
	})
}

// An account of an earlier version has no permission to write slices: an event reports it, without a storm of retries.
func TestRightsThatAreMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("east")
		east := f.members["east"]
		east.fail(func(_ context.Context, r memapi.Request) error {
			return apierrors.NewForbidden(endpointSlices.GroupResource(), r.Name, fmt.Errorf("no"))
		})
		for i := range 3 {
			east.service(t, fmt.Sprint("web", i))
			f.set(fmt.Sprint("shop/web", i), offers("north=192.0.2.2", "west=192.0.2.3"))
		}
		f.run(t, Options{}, func() {
			time.Sleep(time.Hour)
			if n := strings.Count(east.read(), "create"); n < 3*11 || n > 3*13 {
				t.Errorf("%d tries in an hour, want one in 5 minutes for each Service", n)
			}
			if n := len(f.events.Events); n != 3 {
				t.Errorf("%d events in an hour, want one at first and each half, so that there is always one to be seen", n)
			}
			east.fail(nil)
			time.Sleep(6 * time.Minute)
			f.wrote(t, "the cluster was joined again", "east: create web0.north.v4, create web0.west.v4, create web1.north.v4, create web1.west.v4, create web2.north.v4, create web2.west.v4")
		})
	})
}

// An event of one write must not repeat the next write, and a late response must not restore a deleted slice.
func TestWhatTheCacheHasNotSeen(t *testing.T) {
	slice := func(version, uid string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetNamespace("shop")
		u.SetName("web.west.v4")
		u.SetResourceVersion(version)
		u.SetUID(types.UID(uid))
		u.SetLabels(map[string]string{"endpointslice.kubernetes.io/managed-by": "federation.kubernetes.io", v1beta1.RemoteServiceLabel: "web"})
		return u
	}
	synctest.Test(t, func(t *testing.T) { whatTheCacheHasNotSeen(t, slice) })
}

func whatTheCacheHasNotSeen(t *testing.T, slice func(version, uid string) *unstructured.Unstructured) {
	var w expectations
	wrote := func(l left) { w.recordWrite("shop/web", "web.west.v4", l) }
	sees := func(what, want string, cached ...any) {
		t.Helper()
		var got string
		for _, u := range w.overlay("shop/web", cached) {
			got += u.GetResourceVersion()
		}
		if got != want {
			t.Errorf("%s: sees versions %q, want %q", what, got, want)
		}
	}
	sees("nothing written", "7", slice("7", "a"))
	wrote(left{slice: slice("9", "a")})
	sees("written, the cache is behind", "9", slice("7", "a"))
	sees("written, the cache has none", "9")
	sees("the cache has caught up", "10", slice("10", "a"))
	wrote(left{deleted: "a"})
	sees("deleted, the cache is behind", "", slice("10", "a"))
	sees("deleted, and there is another one", "12", slice("12", "b"))
	wrote(left{slice: slice("13", "b")})
	w.recordDeletion(slice("13", "b"))
	sees("written, and gone", "")
	for _, l := range []left{{slice: slice("13", "b")}, {deleted: "b"}} {
		wrote(l)
		time.Sleep(resourceversion.Believed)
		sees("the member has been restored from a backup of before the write", "5", slice("5", "b"))
	}
	wrote(left{slice: slice("13", "b")})
	time.Sleep(resourceversion.Believed)
	sees("the member has been restored from a backup that does not have it", "")
	if len(w.left) > 0 {
		t.Errorf("remembered for ever: %v", w.left)
	}
}

// A member that joins as the controller ends leaves nothing behind: the bubble ends only when all its goroutines have.
func TestAMemberThatComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		c := New(Options{Offers: NewOffers(), Federation: "fed"})
		if err := c.Run(ctx); err != nil {
			t.Fatal(err)
		}
		factory := dynamicinformer.NewDynamicSharedInformerFactory(newAPI().Client("federation", nil), 0)
		err := c.Engage(t.Context(), Member{Name: "late", Informers: func(r schema.GroupVersionResource) cache.SharedIndexInformer {
			return factory.ForResource(r).Informer()
		}})
		if err != nil {
			t.Fatal(err)
		}
	})
}
