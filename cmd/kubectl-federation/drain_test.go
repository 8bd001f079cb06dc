package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	metadatafake "k8s.io/client-go/metadata/fake"
	restfake "k8s.io/client-go/rest/fake"
	k8stesting "k8s.io/client-go/testing"

	"federation/apiserver/apis/federation/v1beta1"
	drainplan "federation/controllers/drain/plan"
	failoverplan "federation/controllers/failover/plan"
)

var drainedAt = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func weight(n int32) *int32 { return &n }

// TestDrainWaitsForTheLongestTTL of the objects that have addresses in the cluster, and for the provider that is behind.
func TestDrainWaitsForTheLongestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		services := v1beta1.FederatedKindOf(schema.GroupResource{Resource: "services"}).Resource
		for name, annotations := range map[string][2]string{
			"slow": {`{"ttlSeconds":100}`, "east-a"}, "elsewhere": {`{"ttlSeconds":5000}`, "west-a"}, "quick": {`{"ttlSeconds":1}`, "east-a"},
		} {
			u := fromJSON(t, `{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"default","name":"`+name+`"},"spec":{"type":"LoadBalancer"}}`)
			u.SetAnnotations(map[string]string{v1beta1.DNSAnnotation: annotations[0], v1beta1.ServiceIngressesAnnotation: `{"items":[{"cluster":"` + annotations[1] + `","items":[{"ip":"192.0.2.1"}]}]}`})
			if _, err := w.f.dyn.Resource(services).Namespace("default").Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		write := func(condition metav1.Condition) {
			text, _ := json.Marshal(condition)
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: v1beta1.DNSProvidersConfigMap}, Data: map[string]string{"bind": string(text)}}
			maps := w.f.core.CoreV1().ConfigMaps(v1beta1.FederationNamespace)
			if _, err := maps.Update(context.Background(), m, metav1.UpdateOptions{}); err != nil {
				_, _ = maps.Create(context.Background(), m, metav1.CreateOptions{})
			}
		}
		write(metav1.Condition{Status: metav1.ConditionTrue, Reason: "Published"})
		go func() {
			time.Sleep(12 * time.Second)
			write(metav1.Condition{Status: metav1.ConditionFalse, Reason: "Failing", Message: "i/o timeout", LastTransitionTime: metav1.Now()})
			time.Sleep(20 * time.Second)
			write(metav1.Condition{Status: metav1.ConditionTrue, Reason: "Published", LastTransitionTime: metav1.Now()})
		}()
		began := time.Now()
		said, err := w.run(t.Context(), draining, nil)
		if took := time.Since(began); err != nil || took < 134*time.Second || took > 145*time.Second || !strings.Contains(said, "bind: i/o timeout") {
			t.Errorf("drained after %s:\n%s%v", took, said, err)
		}
		synctest.Wait()
	})
}

func TestClusterPatch(t *testing.T) {
	c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east-a", ResourceVersion: "7"}, Spec: v1beta1.ClusterSpec{DNSWeight: weight(30)}}
	if p := clusterPatch(c, c.DeepCopy()); p != nil {
		t.Errorf("nothing changed: patch %s", p)
	}
	after := c.DeepCopy()
	drainplan.Begin(after, drainedAt)
	drainplan.AddTaint(after, drainplan.Taint)
	want := `{"metadata":{"annotations":{"federation.kubernetes.io/drain":"{\"since\":\"2026-01-01T12:00:00Z\",\"dnsWeight\":30}"},"resourceVersion":"7"},` +
		`"spec":{"dnsWeight":0,"taints":[{"key":"federation.kubernetes.io/drain","effect":"NoExecute"}]}}`
	if got := string(clusterPatch(c, after)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	back := `{"metadata":{"annotations":{"federation.kubernetes.io/drain":null},"resourceVersion":"7"},"spec":{"dnsWeight":30,"taints":null}}`
	if got := string(clusterPatch(after, c)); got != back {
		t.Errorf("got  %s\nwant %s", got, back)
	}
}

func TestWhatADrainWaitsFor(t *testing.T) {
	all := []remainder{
		{Kind: "ReplicaSet", Name: "gone"}, {Kind: "ReplicaSet", Name: "placed", Placed: 1}, {Kind: "ReplicaSet", Name: "large", There: 5, Ready: 5},
		{Kind: "ReplicaSet", Name: "stays", Placed: 9, There: 9, Ready: 9, Stays: true}, {Kind: "ReplicaSet", Name: "ready", Ready: 1},
		{Kind: "Job", Name: "done", Placed: 1, There: 1, Finished: true},
	}
	names := func(of []remainder) (s string) {
		for _, r := range of {
			s += r.Name + " "
		}
		return s
	}
	if got := names(notGone(all)); got != "large placed ready " {
		t.Errorf("a drain waits for %s", got)
	}
	if got := names(notReady(all)); got != "placed " {
		t.Errorf("an undrain waits for %s", got)
	}
}

// TestADrainLeavesFinishedJobs checks that they stay placed, also in a cluster that cannot be read.
func TestADrainLeavesFinishedJobs(t *testing.T) {
	w, jobs := newWorld(t), &divided[3]
	job := fromJSON(t, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"default","name":"once"},"status":{"conditions":[{"type":"Complete","status":"True"}]}}`)
	job.SetAnnotations(map[string]string{v1beta1.PlacementAnnotation: `{"clusters":{"east-a":2}}`})
	if _, err := w.f.dyn.Resource(jobs.resource).Namespace("default").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	found := map[string]*remainder{}
	err := (&drainCommand{federation: w.f}).recordPlaced(t.Context(), jobs, "east-a", nil, found)
	if r := found["default/once"]; err != nil || r == nil || r.Placed != 2 || !r.Finished {
		t.Errorf("%+v %v", r, err)
	}
}

// world is a federation in memory: one ReplicaSet of 6, and a placement controller that is a function.
type world struct {
	t      *testing.T
	f      *federation
	copies map[string]int64 // in east-a and west-a
	review v1beta1.FailoverReviewStatus
	// refuse is a member's error, nil if it serves the request.
	refuse func(*http.Request) *apierrors.StatusError
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, copies: map[string]int64{"east-a": 4, "west-a": 2}}
	s := runtime.NewScheme()
	_ = metav1.AddMetaToScheme(s)
	kinds := map[schema.GroupVersionResource]string{v1beta1.ClustersResource: "ClusterList", policiesResource: "PlacementPolicyList"}
	for _, k := range v1beta1.FederatedKinds {
		kinds[k.Resource] = k.Kind + "List"
	}
	var clusters []runtime.Object
	for _, name := range []string{"east-a", "west-a"} {
		clusters = append(clusters, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "federation/v1beta1", "kind": "Cluster", "metadata": map[string]any{"name": name},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
		}})
	}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "fed"}}
	info := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: v1beta1.InfoConfigMap},
		Data: v1beta1.Info{Name: "fed", DNSZone: "example.test", DNSTTL: 15 * time.Second}.ConfigMapData()}
	w.f = &federation{
		core: kubefake.NewClientset(system, info), dyn: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(s, kinds, clusters...),
		meta: metadatafake.NewSimpleMetadataClient(s, w.metadata()), namespace: "default",
	}
	placed := w.f.meta.(*metadatafake.FakeMetadataClient)
	placed.PrependReactor("list", "replicasets", func(k8stesting.Action) (bool, runtime.Object, error) {
		return false, nil, placed.Tracker().Update(divided[0].resource, w.metadata(), "default") // placement is quick
	})
	w.f.rest = &restfake.RESTClient{NegotiatedSerializer: scheme.Codecs, Client: restfake.CreateHTTPClient(w.answer)}
	return w
}

func (w *world) metadata() *metav1.PartialObjectMetadata {
	p := v1beta1.Placement{Clusters: map[string]int64{"east-a": 4, "west-a": 2}}
	if w.f != nil && w.tainted() {
		p.Clusters = map[string]int64{"west-a": 6}
	}
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Annotations: map[string]string{v1beta1.PlacementAnnotation: p.String()}},
	}
}

func (w *world) cluster() *v1beta1.Cluster {
	c, err := w.f.cluster(context.Background(), "east-a")
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// ready sets east-a's state as the registry and failover see it.
func (w *world) ready(yes bool, reason string, phase v1beta1.FailoverPhase) {
	tracker := w.f.dyn.(*dynamicfake.FakeDynamicClient).Tracker()
	o, err := tracker.Get(v1beta1.ClustersResource, "", "east-a")
	if err != nil {
		w.t.Fatal(err)
	}
	status := map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	if !yes {
		status = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": reason}}, "failover": map[string]any{"phase": string(phase)}}
	}
	u := o.(*unstructured.Unstructured).DeepCopy()
	u.Object["status"] = status
	if err := tracker.Update(v1beta1.ClustersResource, u, ""); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tainted() bool { return drainplan.HasTaint(w.cluster(), drainplan.Taint) }

// answer answers requests for raw paths: the review, and the copies in east-a, of which a replica comes or goes each
// second.
func (w *world) answer(r *http.Request) (*http.Response, error) {
	var body any
	if w.refuse != nil && strings.Contains(r.URL.Path, "/proxy/") {
		if refusal := w.refuse(r); refusal != nil {
			b, err := json.Marshal(refusal.Status())
			return &http.Response{StatusCode: int(refusal.Status().Code), Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(b))}, err
		}
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/failoverreviews"):
		body = &v1beta1.FailoverReview{Status: w.review}
	case strings.Contains(r.URL.Path, "/clusters/east-a/proxy/apis/apps/v1/replicasets"):
		if r.URL.Query().Get("labelSelector") != v1beta1.ManagedByLabel+"=fed" {
			w.t.Errorf("asks a member for %s", r.URL)
		}
		target := map[bool]int64{true: 0, false: 4}[w.tainted()]
		if n := w.copies["east-a"]; n != target {
			w.copies["east-a"] = n + map[bool]int64{true: 1, false: -1}[n < target]
		}
		n := w.copies["east-a"]
		marked := func(name string) map[string]any { // with the marks of the copy of web
			return map[string]any{
				"namespace": "default", "name": name, "labels": map[string]any{v1beta1.ManagedByLabel: "fed"},
				"annotations": map[string]any{v1beta1.CopyOfAnnotation: "ReplicaSet.apps/default/web"},
			}
		}
		body = map[string]any{"kind": "ReplicaSetList", "apiVersion": "apps/v1", "items": []any{map[string]any{
			"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": marked("web"),
			"spec": map[string]any{"replicas": n}, "status": map[string]any{"readyReplicas": n},
		}, map[string]any{
			"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": marked("somebodys"), "spec": map[string]any{"replicas": 2},
		}}}
	default:
		body = map[string]any{"kind": "List", "apiVersion": "v1", "items": []any{}}
	}
	b, err := json.Marshal(body)
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(b))}, err
}

// run runs a command of the world and returns its output.
func (w *world) run(ctx context.Context, do func(*drainCommand) func(context.Context, string) error, set func(*drainCommand)) (string, error) {
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	o := &drainCommand{IOStreams: streams, federation: w.f, members: newMembers(w.f, time.Second), dry: "none", ttl: -1}
	o.progress = progress{out: out, every: time.Minute}
	if set != nil {
		set(o)
	}
	err := do(o)(ctx, "east-a")
	if ctx.Err() != nil {
		err = o.explainInterrupt(ctx, "east-a")
	}
	return out.String() + errOut.String(), err
}

func draining(o *drainCommand) func(context.Context, string) error   { return o.drain }
func undraining(o *drainCommand) func(context.Context, string) error { return o.undrain }

func TestDrainAndUndrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := time.Now()
		said, err := w.run(t.Context(), draining, nil)
		if err != nil || !strings.HasSuffix(said, "east-a: no replica is left there; cordoned\ncluster/east-a drained\n") {
			t.Fatalf("%s%v", said, err)
		}
		if took := time.Since(began); took < 17*time.Second || w.copies["east-a"] != 0 {
			t.Errorf("after %s, with %d replicas still there: it did not wait for DNS and for the copies", took, w.copies["east-a"])
		}
		if got := drainState(w.cluster()); got != "DNS weight 0, taint federation.kubernetes.io/drain:NoExecute, taint federation.kubernetes.io/unschedulable:NoSchedule" {
			t.Errorf("drained: %s", got)
		}
		said, err = w.run(t.Context(), undraining, nil)
		if err != nil || !strings.HasSuffix(said, "east-a: 4 replicas ready there; weight in DNS restored\ncluster/east-a undrained\n") {
			t.Fatalf("%s%v", said, err)
		}
		if got := drainState(w.cluster()); got != "DNS weight 100" || w.copies["east-a"] != 4 || len(w.cluster().Annotations) > 0 {
			t.Errorf("undrained: %s, %d replicas, %v", got, w.copies["east-a"], w.cluster().Annotations)
		}
	})
}

// TestDrainOfACordonedCluster checks that it is Drained when it is empty, not as soon as it has both taints.
func TestDrainOfACordonedCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if _, _, err := w.f.changeCluster(t.Context(), "east-a", "none", func(c *v1beta1.Cluster) { drainplan.AddTaint(c, drainplan.Cordon) }); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 18*time.Second) // its replicas go one a second, after 17 s
		defer cancel()
		if said, _ := w.run(ctx, draining, nil); w.cluster().OutOfService() != "Draining" {
			t.Errorf("half drained: %s\n%s", w.cluster().OutOfService(), said)
		}
		if said, err := w.run(t.Context(), draining, nil); err != nil || w.cluster().OutOfService() != "Drained" {
			t.Errorf("drained: %s\n%s%v", w.cluster().OutOfService(), said, err)
		}
		if said, err := w.run(t.Context(), undraining, nil); err != nil || w.cluster().OutOfService() != "SchedulingDisabled" {
			t.Errorf("undrained: %s\n%s%v", w.cluster().OutOfService(), said, err)
		}
	})
}

// TestUnknownIsNotEmpty checks that the cluster does not count as empty, whatever hides the copies while they shrink.
func TestUnknownIsNotEmpty(t *testing.T) {
	for name, hide := range map[string]func(w *world, since time.Duration){
		"one kind cannot be read once": func(w *world, since time.Duration) {
			w.refuse = nil
			if since == time.Second {
				w.refuse = func(r *http.Request) *apierrors.StatusError {
					if strings.HasSuffix(r.URL.Path, "/replicasets") {
						return apierrors.NewInternalError(errors.New("connection reset"))
					}
					return nil
				}
			}
		},
		"no answer for a while": func(w *world, since time.Duration) {
			w.refuse = nil
			if since < 3*time.Second {
				w.refuse = func(*http.Request) *apierrors.StatusError { return apierrors.NewServiceUnavailable("restarts") }
			}
		},
		"not ready for a moment": func(w *world, since time.Duration) {
			w.refuse = nil
			if w.ready(since > 2*time.Second, v1beta1.ReasonClusterNotReachable, v1beta1.PhaseGracePeriod); since <= 2*time.Second {
				w.refuse = func(*http.Request) *apierrors.StatusError { return apierrors.NewServiceUnavailable("dials") }
			}
		},
		"its credential is refused": func(w *world, since time.Duration) {
			w.refuse = nil
			if w.ready(since > 4*time.Second, failoverplan.ReasonCredentialRejected, v1beta1.PhaseFailoverSuspended); since <= 4*time.Second {
				w.refuse = func(*http.Request) *apierrors.StatusError { return apierrors.NewUnauthorized("expired") }
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var tainted time.Time
				w.f.dyn.(*dynamicfake.FakeDynamicClient).PrependReactor("get", "clusters", func(k8stesting.Action) (bool, runtime.Object, error) {
					u, err := w.f.dyn.(*dynamicfake.FakeDynamicClient).Tracker().Get(v1beta1.ClustersResource, "", "east-a")
					if c, _ := toCluster(u.(*unstructured.Unstructured)); err == nil && drainplan.HasTaint(c, drainplan.Taint) {
						if tainted.IsZero() {
							tainted = time.Now()
						}
						hide(w, time.Since(tainted))
					}
					return false, nil, nil
				})
				if said, err := w.run(t.Context(), draining, nil); err != nil || w.copies["east-a"] != 0 {
					t.Errorf("%d replicas are still there:\n%s%v", w.copies["east-a"], said, err)
				}
			})
		})
	}
}

// TestDrainWaitsForCustomKindsThatAreDivided: a policy with replicaPreferences divides them as any workload.
func TestDrainWaitsForCustomKindsThatAreDivided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
		w.f.core.(*kubefake.Clientset).Resources = []*metav1.APIResourceList{{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "widgets", Kind: "Widget", Namespaced: true}}}}
		policy := fromJSON(t, `{"apiVersion":"federation/v1beta1","kind":"PlacementPolicy","metadata":{"namespace":"default","name":"p"},
			"spec":{"resourceSelectors":[{"apiVersion":"example.com/v1","kind":"Widget"}],"replicaPreferences":{"clusters":{"*":{"weight":1}}}}}`)
		if _, err := w.f.dyn.Resource(policiesResource).Namespace("default").Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		placed := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"}, ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "w", Annotations: map[string]string{v1beta1.PlacementAnnotation: `{"clusters":{"east-a":3},"policy":"p"}`}}}
		if err := w.f.meta.(*metadatafake.FakeMetadataClient).Tracker().Create(widgets, placed, "default"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if said, err := w.run(ctx, draining, nil); err == nil || !strings.Contains(said, "Widget default/w: 3 placed") {
			t.Errorf("%s%v", said, err)
		}
	})
}

// TestALostClusterIsEmpty checks that failover has given up what was there.
func TestALostClusterIsEmpty(t *testing.T) {
	for _, phase := range []v1beta1.FailoverPhase{v1beta1.PhaseFailedOver, v1beta1.PhaseFailoverSuspended} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.ready(false, v1beta1.ReasonClusterNotReachable, phase)
			w.refuse = func(*http.Request) *apierrors.StatusError { return apierrors.NewServiceUnavailable("dead") }
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if said, err := w.run(ctx, draining, nil); err != nil || w.cluster().OutOfService() != "Drained" {
				t.Errorf("%s: %s\n%s%v", phase, w.cluster().OutOfService(), said, err)
			}
		})
	}
}

// TestDrainWithoutRightsGoesByTheReport checks that a user who may read neither the cluster nor its credential waits
// for the condition Propagated.
func TestDrainWithoutRightsGoesByTheReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.refuse = func(*http.Request) *apierrors.StatusError {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "users"}, "me", errors.New("cannot impersonate"))
		}
		web := fromJSON(t, `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"namespace":"default","name":"web"},
			"status":{"conditions":[{"type":"Propagated","status":"False","reason":"Progressing","message":"east-a: shrinks from 4 to 2 as others get ready"}]}}`)
		if _, err := w.f.dyn.Resource(divided[0].resource).Namespace("default").Create(t.Context(), web, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(77 * time.Second) // 17 until the taint
			_ = unstructured.SetNestedSlice(web.Object, []any{map[string]any{"type": "Propagated", "status": "True"}}, "status", "conditions")
			_, _ = w.f.dyn.Resource(divided[0].resource).Namespace("default").Update(context.Background(), web, metav1.UpdateOptions{})
		}()
		began := time.Now()
		said, err := w.run(t.Context(), draining, nil)
		synctest.Wait()
		if took := time.Since(began); err != nil || took < 77*time.Second || !strings.Contains(said, "shrinks from 4 to 2") {
			t.Errorf("drained after %s:\n%s%v", took, said, err)
		}
	})
}

func TestDrainIsInterruptedAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		said, err := w.run(ctx, draining, nil)
		if err == nil || !strings.Contains(err.Error(), "cluster east-a is left with DNS weight 0\n  kubectl federation drain east-a ") {
			t.Fatalf("%s%v", said, err)
		}
		began := time.Now()
		if said, err = w.run(t.Context(), draining, nil); err != nil {
			t.Fatalf("%s%v", said, err)
		}
		if took := time.Since(began); took > 18*time.Second {
			t.Errorf("it waited for DNS anew: %s", took)
		}
	})
}

func TestDrainRefusesWhatDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.review = v1beta1.FailoverReviewStatus{ReplicasMoved: 4, ReplicasUnschedulable: 3, Moves: []v1beta1.ReplicaMove{{
			Kind: "ReplicaSet", Namespace: "default", Name: "web", Unschedulable: 3, Clusters: []v1beta1.ReplicaChange{{Cluster: "east-a", Before: 4}, {Cluster: "west-a", Before: 2, After: 3}},
		}}}
		_, err := w.run(t.Context(), draining, nil)
		if err == nil || !strings.Contains(err.Error(), "3 replicas would fit in no other cluster") || drainState(w.cluster()) != "DNS weight 100" {
			t.Errorf("%v; %s", err, drainState(w.cluster()))
		}
		if said, err := w.run(t.Context(), draining, func(o *drainCommand) { o.force = true; o.ttl = 0 }); err != nil {
			t.Errorf("--force: %s%v", said, err)
		}
	})
}

func TestDrainShowsAllThatWouldMove(t *testing.T) {
	w := newWorld(t)
	for i := range maxRows + 5 {
		w.review.Moves = append(w.review.Moves, v1beta1.ReplicaMove{Kind: "ReplicaSet", Namespace: "default", Name: fmt.Sprintf("web-%d", i)})
	}
	dry := func(all bool) string {
		said, err := w.run(t.Context(), draining, func(o *drainCommand) { o.dry, o.all = "client", all })
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	if said := dry(false); !strings.Contains(said, "and 5 objects more (--all shows them)") || strings.Contains(said, "/web-24 ") {
		t.Error(said)
	}
	if said := dry(true); !strings.Contains(said, "/web-24 ") {
		t.Error(said)
	}
}

func TestDrainDryRunChangesNothing(t *testing.T) {
	w := newWorld(t)
	said, err := w.run(t.Context(), draining, func(o *drainCommand) { o.dry = "client" })
	if err != nil || !strings.HasSuffix(said, "cluster/east-a would be drained (dry run): DNS weight 100 to 0, wait 15s, move, cordon\n") || drainState(w.cluster()) != "DNS weight 100" {
		t.Errorf("%s%v; %s", said, err, drainState(w.cluster()))
	}
}

// TestProgressSaysOnlyWhatChanges checks that, and that a long wait prints that it is still waiting.
func TestProgressSaysOnlyWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := progress{out: &out, every: 30 * time.Second}
		api := remainder{Kind: "Deployment", Namespace: "default", Name: "api", Placed: 3, There: 3, Ready: 3}
		web := remainder{Kind: "ReplicaSet", Namespace: "default", Name: "web", There: 20, Ready: 20}
		look := func(times int, why string, left ...remainder) {
			for range times {
				p.printLeft("east-a", left, "", map[string]string{web.name(): why})
				time.Sleep(time.Second)
			}
		}
		look(65, "", web, api)
		p.say("somebody says something else")
		look(1, "", web, api)
		look(1, "west-a: exceeded quota", web, api)
		web.There, web.Ready = 7, 7
		look(1, "", web, api)
		look(31, "", web, api)
		look(40, "", api)
		api.Ready = 1
		p.printMissing("east-a", []remainder{api}, nil)
		time.Sleep(200 * time.Second)
		p.printMissing("east-a", []remainder{api}, nil)
		golden(t, "testdata/drain.progress", out.String())
	})
}

// TestUnjoinOfAServingClusterAsks checks that, because what is placed there would run twice.
func TestUnjoinOfAServingClusterAsks(t *testing.T) {
	for _, test := range []struct {
		name, typed string
		yes         bool
		dry         dryRun
		change      func(*world)
		done        bool
		fails, says string
	}{
		{name: "nothing typed", fails: "cluster east-a was not unjoined", says: "4 replicas of 1 object placed in cluster east-a"},
		{name: "another name", typed: "west-a\n", fails: "cluster east-a was not unjoined"},
		{name: "its name", typed: "east-a\n", says: "kubectl federation drain east-a"},
		{name: "--yes", yes: true},
		{name: "--dry-run", dry: "client", done: true, says: "cluster/east-a would leave the federation (dry run)"},
		{name: "--dry-run --yes", dry: "client", yes: true, done: true},
		{name: "lost", change: func(w *world) { w.ready(false, v1beta1.ReasonClusterNotReachable, v1beta1.PhaseFailedOver) }},
		{name: "drained", change: func(w *world) {
			_, _, _ = w.f.changeCluster(context.Background(), "east-a", "none", func(c *v1beta1.Cluster) {
				drainplan.AddTaint(c, drainplan.Taint)
				drainplan.AddTaint(c, drainplan.Cordon)
			})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			if test.change != nil {
				test.change(w)
			}
			streams, in, out, errOut := genericiooptions.NewTestIOStreams()
			in.WriteString(test.typed)
			o := &unjoinCommand{IOStreams: streams, yes: test.yes, dry: cmp.Or(test.dry, "none")}
			done, err := o.confirm(t.Context(), w.f, "east-a")
			said := out.String() + errOut.String()
			if done != test.done || (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) || !strings.Contains(said, test.says) {
				t.Errorf("done %v, %v\n%s", done, err, said)
			}
		})
	}
}

func TestClustersThatAreNotThere(t *testing.T) {
	w := newWorld(t)
	_, err := w.f.cluster(t.Context(), "east")
	if fmt.Sprint(err) != `cluster "east" not found; there are: east-a, west-a` {
		t.Error(err)
	}
}
