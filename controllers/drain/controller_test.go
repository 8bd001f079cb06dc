package drain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"federation/apiserver/apis/federation/v1beta1"
	failoverplan "federation/controllers/failover/plan"
	"federation/controllers/fleettest/memapi"
)

var (
	replicaSets = v1beta1.FederatedKindOf(schema.GroupResource{Group: "apps", Resource: "replicasets"}).Resource
	jobs        = v1beta1.FederatedKindOf(schema.GroupResource{Group: "batch", Resource: "jobs"}).Resource
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// world is a federation and its member east-a, in memory.
type world struct {
	t                  *testing.T
	federation, member *memapi.API
	user               *memapi.Client
	// refuse is what becomes of requests at the member, nil: it answers.
	refuse atomic.Pointer[func(ctx context.Context, r memapi.Request) error]
	stop   context.CancelFunc
}

func newWorld(t *testing.T) *world {
	w := &world{t: t}
	resources := []memapi.Resource{
		{GroupVersionResource: v1beta1.ClustersResource, Kind: "Cluster", Status: true, Generation: true}, {GroupVersionResource: v1beta1.PoliciesResource, Kind: "PlacementPolicy", Namespaced: true},
		{GroupVersionResource: widgets, Kind: "Widget", Namespaced: true},
	}
	for _, k := range v1beta1.FederatedKinds {
		resources = append(resources, memapi.Resource{GroupVersionResource: k.Resource, Kind: k.Kind, Namespaced: k.Kind != "Namespace", Status: true})
	}
	w.federation, w.member = memapi.New(memapi.Options{Resources: resources}), memapi.New(memapi.Options{Resources: resources})
	w.user = w.federation.Client("user", nil)
	for _, name := range []string{"east-a", "west-a"} {
		w.write(v1beta1.ClustersResource, `{"metadata":{"name":%q}}`, name)
		w.ready(name, metav1.ConditionTrue, "", v1beta1.PhaseServing)
	}
	for _, name := range []string{v1beta1.FederationNamespace, "default"} {
		for _, api := range []*memapi.API{w.federation, w.member} {
			put(t, api.Client("user", nil), corev1.SchemeGroupVersion.WithResource("namespaces"), `{"metadata":{"name":%q}}`, name)
		}
	}
	w.write(configMaps, `{"metadata":{"namespace":%q,"name":%q},"data":{}}`, v1beta1.FederationNamespace, v1beta1.DNSProvidersConfigMap)
	w.place("web", 4)
	w.copies("web", 4)
	w.start()
	t.Cleanup(func() { w.stop(); synctest.Wait() })
	return w
}

// start runs a controller, in place of the one before.
func (w *world) start() {
	w.t.Helper()
	if w.stop != nil {
		w.stop()
	}
	ctx, stop := context.WithCancel(w.t.Context())
	w.stop = stop
	client := w.federation.Client("federation", nil)
	informers := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	c, err := New(Options{
		Client: client, Recorder: &record.FakeRecorder{}, Federation: "fed", TTL: 15 * time.Second,
		Informers: func(r schema.GroupVersionResource) cache.SharedIndexInformer {
			return informers.ForResource(r).Informer()
		},
		Member: func(string) (dynamic.Interface, error) {
			return w.member.Client("federation", func(ctx context.Context, r memapi.Request, do func() error) error {
				if refuse := w.refuse.Load(); refuse != nil {
					if err := (*refuse)(ctx, r); err != nil {
						return err
					}
				}
				return do()
			}), nil
		},
		Resolve: func(_, kind string) (schema.GroupVersionResource, bool, error) {
			if kind != "Widget" {
				return schema.GroupVersionResource{}, false, errors.New("no such kind")
			}
			return widgets, true, nil
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	informers.Start(ctx.Done())
	go func() {
		if err := c.Run(ctx); err != nil {
			w.t.Error(err)
		}
	}()
}

func (w *world) refuses(how func(ctx context.Context, r memapi.Request) error) {
	if how == nil {
		w.refuse.Store(nil)
		return
	}
	w.refuse.Store(&how)
}

// put writes an object whole, and its status.
func put(t *testing.T, client dynamic.Interface, r schema.GroupVersionResource, text string, args ...any) {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(fmt.Appendf(nil, text, args...), &u.Object); err != nil {
		t.Fatal(err)
	}
	kind := map[schema.GroupVersionResource]string{v1beta1.ClustersResource: "Cluster", v1beta1.PoliciesResource: "PlacementPolicy", widgets: "Widget"}[r]
	if k := v1beta1.FederatedKindOf(r.GroupResource()); k != nil {
		kind = k.Kind
	}
	u.SetGroupVersionKind(r.GroupVersion().WithKind(kind))
	at := client.Resource(r).Namespace(u.GetNamespace())
	_, err := at.Create(t.Context(), u.DeepCopy(), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = at.Update(t.Context(), u.DeepCopy(), metav1.UpdateOptions{})
	}
	if err == nil && u.Object["status"] != nil {
		_, err = at.UpdateStatus(t.Context(), u, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) write(r schema.GroupVersionResource, text string, args ...any) {
	w.t.Helper()
	put(w.t, w.user, r, text, args...)
}

// ready says how the registry and failover see a cluster.
func (w *world) ready(name string, is metav1.ConditionStatus, reason string, phase v1beta1.FailoverPhase) {
	w.t.Helper()
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":%q,"reason":%q}],"failover":{"phase":%q}}}`, is, reason, phase)
	if _, err := w.user.Resource(v1beta1.ClustersResource).Patch(w.t.Context(), name, "application/merge-patch+json", patch, metav1.PatchOptions{}, "status"); err != nil {
		w.t.Fatal(err)
	}
}

// place places replicas of a ReplicaSet in east-a.
func (w *world) place(name string, replicas int) {
	w.t.Helper()
	w.write(replicaSets, `{"metadata":{"namespace":"default","name":%q,"annotations":{%q:"{\"clusters\":{\"east-a\":%d,\"west-a\":2}}"}}}`, name, v1beta1.PlacementAnnotation, replicas)
}

// copies says what of a ReplicaSet is in east-a.
func (w *world) copies(name string, replicas int) {
	w.t.Helper()
	put(w.t, w.member.Client("someone", nil), replicaSets, `{"metadata":{"namespace":"default","name":%q,"labels":{%q:"fed"},"annotations":{%q:"ReplicaSet.apps/default/%s"}},"spec":{"replicas":%d},"status":{"readyReplicas":%d}}`,
		name, v1beta1.ManagedByLabel, v1beta1.CopyOfAnnotation, name, replicas, replicas)
}

// ask sets spec.drain of a cluster, as JSON.
func (w *world) ask(name, drain string) {
	w.t.Helper()
	if _, err := w.user.Resource(v1beta1.ClustersResource).Patch(w.t.Context(), name, "application/merge-patch+json", []byte(`{"spec":{"drain":`+drain+`}}`), metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) cluster(name string) *v1beta1.Cluster {
	return clusterOf(w.federation.Get(v1beta1.ClustersResource, "", name))
}

func (w *world) expect(want v1beta1.DrainPhase) *v1beta1.ClusterDrainStatus {
	w.t.Helper()
	synctest.Wait()
	s := w.cluster("east-a").Status.Drain
	if s == nil {
		s = &v1beta1.ClusterDrainStatus{}
	}
	if s.Phase != want {
		w.t.Errorf("phase %q, want %q: %+v", s.Phase, want, s)
	}
	return s
}

// inBubble runs a test whose time is not the wall's.
func inBubble(t *testing.T, do func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { do(newWorld(t)) })
}

func TestController_CarriesOutADrainThatNobodyWatches(t *testing.T) {
	inBubble(t, func(w *world) {
		time.Sleep(time.Minute)
		before := w.federation.Version()
		w.ask("east-a", `{}`)
		time.Sleep(10 * time.Second)
		w.expect(v1beta1.DrainExpiring)
		w.start() // another process leads
		time.Sleep(10 * time.Second)
		s := w.expect(v1beta1.DrainEvicting)
		if s.Objects != 1 || s.Placed != 4 || s.Current != 4 || s.Ready != 4 || len(s.Waiting) != 1 || s.Waiting[0].Name != "web" {
			t.Errorf("it waits for %+v", s)
		}
		w.place("web", 0)
		w.copies("web", 1)
		w.copies("orphan", 2) // of an object that is gone
		time.Sleep(20 * time.Second)
		if s := w.expect(v1beta1.DrainEvicting); s.Objects != 2 || s.Current != 3 || s.Waiting[0].Name != "orphan" {
			t.Errorf("it waits for %+v", s)
		}
		w.start()
		w.copies("web", 0)
		w.copies("orphan", 0)
		put(t, w.member.Client("someone", nil), replicaSets, `{"metadata":{"namespace":"default","name":"theirs","labels":{%q:"fed"}},"spec":{"replicas":3}}`, v1beta1.ManagedByLabel)
		time.Sleep(5 * time.Second)
		w.expect(v1beta1.DrainDrained)
		if got := w.cluster("east-a").OutOfService(); got != v1beta1.Drained {
			t.Errorf("it is %s", got)
		}
		if writes := w.federation.Version() - before; writes > 15 {
			t.Errorf("%d writes at the federation", writes)
		}
		after := w.federation.Version()
		time.Sleep(time.Hour)
		if w.federation.Version() != after {
			t.Error("a drained cluster costs writes")
		}
		w.ask("east-a", `null`)
		w.place("web", 4)
		time.Sleep(10 * time.Second)
		w.expect(v1beta1.DrainReturning)
		w.copies("web", 4)
		time.Sleep(10 * time.Second)
		w.expect("")
		if c := w.cluster("east-a"); c.DNSWeight() != 100 || len(c.Spec.Taints) > 0 || len(c.Annotations) > 0 || c.Status.Drain != nil {
			t.Errorf("undrained: %+v %v %v", c.Spec, c.Annotations, c.Status.Drain)
		}
	})
}

// TestController_UnknownIsNotEmpty whatever hides the copies.
func TestController_UnknownIsNotEmpty(t *testing.T) {
	for name, hide := range map[string]func(ctx context.Context, r memapi.Request) error{
		"one kind cannot be read": func(_ context.Context, r memapi.Request) error {
			if r.Resource == replicaSets {
				return apierrors.NewInternalError(errors.New("connection reset"))
			}
			return nil
		},
		"it may not be read": func(_ context.Context, r memapi.Request) error {
			return apierrors.NewForbidden(r.Resource.GroupResource(), "", errors.New("no"))
		},
		"it hangs": func(ctx context.Context, _ memapi.Request) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.place("web", 0)
				w.refuses(hide)
				w.ask("east-a", `{"ttlSeconds":0}`)
				time.Sleep(time.Minute)
				if s := w.expect(v1beta1.DrainEvicting); !strings.Contains(s.Message, "what runs there is not known") {
					t.Errorf("message %q", s.Message)
				}
				w.refuses(nil)
				w.copies("web", 0)
				time.Sleep(time.Minute)
				w.expect(v1beta1.DrainDrained)
			})
		})
	}
}

// TestController_AClusterThatHangsHoldsUpNoOther.
func TestController_AClusterThatHangsHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(w *world) {
		for i := range workers - 1 {
			name := fmt.Sprintf("hung-%d", i)
			w.write(v1beta1.ClustersResource, `{"metadata":{"name":%q},"spec":{"drain":{"ttlSeconds":0}}}`, name)
			w.ready(name, metav1.ConditionTrue, "", v1beta1.PhaseServing)
		}
		w.refuses(func(ctx context.Context, _ memapi.Request) error { <-ctx.Done(); return ctx.Err() })
		time.Sleep(time.Minute)
		w.ready("west-a", metav1.ConditionFalse, v1beta1.ReasonClusterNotReachable, v1beta1.PhaseFailedOver) // it is not asked
		w.write(replicaSets, `{"metadata":{"namespace":"default","name":"web"}}`)
		w.ask("west-a", `{"ttlSeconds":0}`)
		time.Sleep(10 * time.Second)
		if got := w.cluster("west-a").OutOfService(); got != v1beta1.Drained {
			t.Errorf("it is %q", got)
		}
	})
}

// TestController_WhatWasInALostClusterIsGivenUp by failover, but not in one that only refuses our credential.
func TestController_WhatWasInALostClusterIsGivenUp(t *testing.T) {
	for _, test := range []struct {
		reason string
		phase  v1beta1.FailoverPhase
		want   v1beta1.DrainPhase
	}{
		{v1beta1.ReasonClusterNotReachable, v1beta1.PhaseFailedOver, v1beta1.DrainDrained},
		{v1beta1.ReasonClusterNotReachable, v1beta1.PhaseFailoverSuspended, v1beta1.DrainDrained},
		{v1beta1.ReasonClusterNotReachable, v1beta1.PhaseGracePeriod, v1beta1.DrainEvicting},
		{failoverplan.ReasonCredentialRejected, v1beta1.PhaseFailoverSuspended, v1beta1.DrainEvicting},
	} {
		t.Run(test.reason+string(test.phase), func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.refuses(func(context.Context, memapi.Request) error { return apierrors.NewServiceUnavailable("dead") })
				w.ready("east-a", metav1.ConditionFalse, test.reason, test.phase)
				w.ask("east-a", `{"ttlSeconds":0}`)
				time.Sleep(5 * time.Second)
				w.expect(v1beta1.DrainEvicting)
				w.place("web", 0)
				time.Sleep(10 * time.Second)
				w.expect(test.want)
			})
		})
	}
}

// TestController_WaitsForTheLongestTTL of the objects that have addresses in the cluster, and for the provider that is behind.
func TestController_WaitsForTheLongestTTL(t *testing.T) {
	inBubble(t, func(w *world) {
		for name, annotations := range map[string][2]string{
			"slow": {`{\"ttlSeconds\":100}`, "east-a"}, "elsewhere": {`{\"ttlSeconds\":5000}`, "west-a"}, "quick": {`{\"ttlSeconds\":1}`, "east-a"},
		} {
			w.write(services, `{"metadata":{"namespace":"default","name":%q,"annotations":{%q:"%s",%q:"{\"items\":[{\"cluster\":\"%s\",\"items\":[{\"ip\":\"192.0.2.1\"}]}]}"}},"spec":{"type":"LoadBalancer"}}`,
				name, v1beta1.DNSAnnotation, annotations[0], v1beta1.ServiceIngressesAnnotation, annotations[1])
		}
		provider := func(is metav1.Condition) {
			is.LastTransitionTime = metav1.Now()
			text, _ := json.Marshal(is)
			value, _ := json.Marshal(string(text))
			w.write(configMaps, `{"metadata":{"namespace":%q,"name":%q},"data":{"bind":%s}}`, v1beta1.FederationNamespace, v1beta1.DNSProvidersConfigMap, value)
		}
		w.ask("east-a", `{}`)
		time.Sleep(12 * time.Second)
		provider(metav1.Condition{Status: metav1.ConditionFalse, Message: "i/o timeout"})
		time.Sleep(20 * time.Second)
		if s := w.expect(v1beta1.DrainPublishing); s.Message != "DNS provider bind: i/o timeout" {
			t.Error(s.Message)
		}
		provider(metav1.Condition{Status: metav1.ConditionTrue})
		time.Sleep(101 * time.Second)
		w.expect(v1beta1.DrainExpiring)
		time.Sleep(5 * time.Second)
		w.expect(v1beta1.DrainEvicting)
	})
}

// TestController_WaitsForCustomKindsThatAreDivided: a policy with replicaPreferences divides them as any workload.
func TestController_WaitsForCustomKindsThatAreDivided(t *testing.T) {
	inBubble(t, func(w *world) {
		w.place("web", 0)
		w.copies("web", 0)
		w.write(v1beta1.PoliciesResource, `{"metadata":{"namespace":"default","name":"p"},"spec":{"resourceSelectors":[{"apiVersion":"example.com/v1","kind":"Widget"},{"apiVersion":"apps/v1","kind":"ReplicaSet"}],
			"replicaPreferences":{"clusters":{"*":{"weight":1}}}}}`)
		widget := func(placed int) {
			w.write(widgets, `{"metadata":{"namespace":"default","name":"w","annotations":{%q:"{\"clusters\":{\"east-a\":%d},\"policy\":\"p\"}"}}}`, v1beta1.PlacementAnnotation, placed)
		}
		widget(3)
		w.ask("east-a", `{"ttlSeconds":0}`)
		time.Sleep(10 * time.Second)
		if s := w.expect(v1beta1.DrainEvicting); s.Objects != 1 || s.Waiting[0].Kind != "Widget" || s.Waiting[0].Placed != 3 {
			t.Errorf("it waits for %+v", s)
		}
		widget(0)
		time.Sleep(10 * time.Second)
		w.expect(v1beta1.DrainDrained)
	})
}

// TestController_LeavesFinishedJobsAndWhatTolerates the taint.
func TestController_LeavesFinishedJobsAndWhatTolerates(t *testing.T) {
	inBubble(t, func(w *world) {
		w.write(jobs, `{"metadata":{"namespace":"default","name":"once","annotations":{%q:"{\"clusters\":{\"east-a\":2}}"}},"status":{"conditions":[{"type":"Complete","status":"True"}]}}`, v1beta1.PlacementAnnotation)
		w.write(v1beta1.PoliciesResource, `{"metadata":{"namespace":"default","name":"p"},"spec":{"tolerations":[{"key":%q,"operator":"Exists"}]}}`, v1beta1.TaintDrain)
		w.write(replicaSets, `{"metadata":{"namespace":"default","name":"web","annotations":{%q:"{\"clusters\":{\"east-a\":4},\"policy\":\"p\"}"}}}`, v1beta1.PlacementAnnotation)
		w.ask("east-a", `{"ttlSeconds":0}`)
		time.Sleep(10 * time.Second)
		w.expect(v1beta1.DrainDrained)
	})
}
