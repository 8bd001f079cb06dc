package clustersetip

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	"federation/apiserver/apis/resourceversion"
	"federation/controllers/clustersetip/plan"
	"federation/controllers/fleettest/memapi"
)

// stage is a federation's API in memory.
type stage struct {
	*testing.T
	api    *memapi.API
	user   dynamic.Interface
	events *record.FakeRecorder

	mu     sync.Mutex
	writes []string
}

func newStage(t *testing.T) *stage {
	api := memapi.New(memapi.Options{Resources: []memapi.Resource{
		{GroupVersionResource: services, Kind: "Service", Namespaced: true, Status: true},
		{GroupVersionResource: ipAddresses, Kind: "IPAddress"},
	}})
	return &stage{T: t, api: api, user: api.Client("user", nil), events: record.NewFakeRecorder(100)}
}

func (s *stage) carry(_ context.Context, r memapi.Request, do func() error) error {
	err := do()
	if r.Writes() {
		s.mu.Lock()
		defer s.mu.Unlock()
		line := fmt.Sprintf("%s %s/%s", r.Verb, r.Name, r.Subresource)
		s.writes = append(s.writes, strings.TrimSuffix(line, "/"))
	}
	return err
}

// run runs a controller while do runs.
func (s *stage) run(do func(), ranges ...string) {
	s.Helper()
	r, err := plan.ParseRanges(ranges)
	if err != nil {
		s.Fatal(err)
	}
	ctx, stop := context.WithCancel(s.Context())
	client := s.api.Client("federation", s.carry)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	c := New(Options{Ranges: r, Client: client, Recorder: s.events, Informers: func(r schema.GroupVersionResource) cache.SharedIndexInformer {
		return factory.ForResource(r).Informer()
	}})
	factory.Start(ctx.Done())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	do()
	stop()
	if err := <-done; err != nil {
		s.Error(err)
	}
	factory.Shutdown()
	calm()
}

func calm() { time.Sleep(5 * time.Second); synctest.Wait() }

func (s *stage) create(r schema.GroupVersionResource, namespace, text string) {
	s.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		s.Fatal(err)
	}
	var to dynamic.ResourceInterface = s.user.Resource(r)
	if namespace != "" {
		to = s.user.Resource(r).Namespace(namespace)
	}
	if _, err := to.Create(s.Context(), u, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) service(name, value string) {
	s.Helper()
	s.create(services, "shop", `{apiVersion: v1, kind: Service, metadata: {namespace: shop, name: `+name+`, annotations: {federation.kubernetes.io/clusterset-ip: "`+value+`"}}, spec: {ports: [{port: 80}]}}`)
}

func (s *stage) annotate(name, value string) {
	s.Helper()
	body := `{"metadata":{"annotations":{"` + v1beta1.ClusterSetIPAnnotation + `":` + value + `}}}`
	if _, err := s.user.Resource(services).Namespace("shop").Patch(s.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
}

// is fails unless Services and IPAddresses are exactly these: "web=ADDRESS" and "ADDRESS:shop/web"; and these were the
// writes.
func (s *stage) is(what string, writes int, want ...string) {
	s.Helper()
	calm()
	var got []string
	for _, u := range s.api.List(services, nil) {
		got = append(got, u.GetName()+"="+u.GetAnnotations()[v1beta1.ClusterSetIPAnnotation])
	}
	for _, u := range s.api.List(ipAddresses, nil) {
		got = append(got, u.GetName()+":"+holderKey(u))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		s.Errorf("%s: got %q, want %q", what, got, want)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.writes) != writes {
		s.Errorf("%s: writes %q, want %d", what, s.writes, writes)
	}
	s.writes = nil
}

func (s *stage) told(want string) {
	s.Helper()
	select {
	case got := <-s.events.Events:
		if !strings.Contains(got, want) {
			s.Errorf("event %q, want %q", got, want)
		}
	default:
		s.Errorf("no event, want %q", want)
	}
}

func (s *stage) condition(name string) string {
	list, _, _ := unstructured.NestedSlice(s.api.Get(services, "shop", name).Object, "status", "conditions")
	for _, item := range list {
		return fmt.Sprint(item.(map[string]any)["reason"])
	}
	return ""
}

func TestTheLifeOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.run(func() {
			s.service("web", "auto")
			s.is("asked for", 2, "10.0.0.1:shop/web", "web=10.0.0.1")
			s.service("api", "auto")
			s.is("another one", 2, "10.0.0.1:shop/web", "10.0.0.2:shop/api", "api=10.0.0.2", "web=10.0.0.1")
			s.service("late", "auto")
			s.is("the range is full", 1, "10.0.0.1:shop/web", "10.0.0.2:shop/api", "api=10.0.0.2", "late=auto", "web=10.0.0.1")
			s.told("RangeFull")
			if got := s.condition("late"); got != "RangeFull" {
				t.Errorf("condition %q", got)
			}
			time.Sleep(time.Hour)
			s.is("an hour later", 0, "10.0.0.1:shop/web", "10.0.0.2:shop/api", "api=10.0.0.2", "late=auto", "web=10.0.0.1")
			s.annotate("api", "null")
			s.is("one needs none any more", 4, "10.0.0.1:shop/web", "10.0.0.2:shop/late", "api=", "late=10.0.0.2", "web=10.0.0.1")
			if got := s.condition("late"); got != "" {
				t.Errorf("condition %q once it has one", got)
			}
			s.annotate("api", `"10.0.0.2"`) // admission rejects it
			s.is("two say the same", 3, "10.0.0.1:shop/web", "10.0.0.2:shop/late", "api=auto", "late=10.0.0.2", "web=10.0.0.1")
			s.told("ClusterSetIPRangeFull 10.0.0.2 is allocated to shop/late; all addresses of 10.0.0.0/30 are allocated")
			if err := s.user.Resource(services).Namespace("shop").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			s.is("a Service is deleted", 4, "10.0.0.1:shop/api", "10.0.0.2:shop/late", "api=10.0.0.1", "late=10.0.0.2")
		}, "10.0.0.0/30")
	})
}

// The first pass of a new leader corrects what went wrong while there was none.
func TestRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		held := func(address, name string) {
			s.create(ipAddresses, "", `{apiVersion: networking.k8s.io/v1, kind: IPAddress, metadata: {name: `+address+`, labels: {ipaddress.kubernetes.io/managed-by: federation-clusterset-ip}}, spec: {parentRef: {resource: services, namespace: shop, name: `+name+`}}}`)
		}
		held("10.0.0.1", "gone")
		held("10.0.0.2", "half")
		s.create(ipAddresses, "", `{apiVersion: networking.k8s.io/v1, kind: IPAddress, metadata: {name: 10.0.0.3}, spec: {parentRef: {resource: services, namespace: shop, name: reserved}}}`)
		s.service("half", "auto")
		s.service("lost", "10.0.0.5")
		s.run(func() {
			s.is("a leak, one not written, one not held, one reserved", 3, "10.0.0.2:shop/half", "10.0.0.3:", "10.0.0.5:shop/lost", "half=10.0.0.2", "lost=10.0.0.5")
		}, "10.0.0.0/29")
		s.run(func() {
			s.is("a restart", 0, "10.0.0.2:shop/half", "10.0.0.3:", "10.0.0.5:shop/lost", "half=10.0.0.2", "lost=10.0.0.5")
		}, "10.0.0.0/29")
		s.run(func() {
			s.is("without a range what is given stays", 2, "10.0.0.2:shop/half", "10.0.0.3:", "10.0.0.5:shop/lost", "half=10.0.0.2", "lost=10.0.0.5")
		})
	})
}

// The store may be restored from a backup while we run: what a Service is then has an older version than what it was.
func TestServiceChanged_OfARestoredStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Controller{wake: make(chan struct{}, 1), asking: map[string]asked{}}
		service := func(version string) *unstructured.Unstructured {
			u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1beta1.ClusterSetIPAnnotation: ""}}}}
			u.SetNamespace("shop")
			u.SetName("web")
			u.SetUID("u1")
			u.SetResourceVersion(version)
			return u
		}
		is := func(what, want string) {
			t.Helper()
			if got := c.asking["shop/web"].ResourceVersion; got != want {
				t.Errorf("%s: at version %s, want %s", what, got, want)
			}
		}
		c.serviceChanged(service("9"), false)
		c.recordWrite(service("12"), nil)
		c.serviceChanged(service("11"), false)
		is("the event of a change before our write", "12")
		c.serviceChanged(service("13"), false)
		is("a change after it", "13")
		c.serviceChanged(service("3"), false)
		is("the store was restored", "3")
		c.recordWrite(service("5"), nil)
		time.Sleep(resourceversion.Believed)
		c.serviceChanged(service("2"), false)
		is("it was restored after a write", "2")
		c.serviceChanged(service("2"), true)
		if len(c.asking) > 0 {
			t.Error("it is gone")
		}
	})
}
