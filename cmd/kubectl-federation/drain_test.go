package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	"federation/apiserver/client"
	drainplan "federation/controllers/drain/plan"
	"federation/controllers/drain/progress"
)

var drainedAt = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// world is a federation in memory: one ReplicaSet of 6, and its controllers are functions.
type world struct {
	t      *testing.T
	f      *client.Federation
	copies int64 // in east-a
	review v1beta1.FailoverReviewStatus
	steady drainplan.Steady
	// idle: nobody carries drains out.
	idle bool
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, copies: 4}
	s := runtime.NewScheme()
	_ = metav1.AddMetaToScheme(s)
	kinds := map[schema.GroupVersionResource]string{v1beta1.ClustersResource: "ClusterList", v1beta1.PoliciesResource: "PlacementPolicyList", v1beta1.DNSNameGrantsResource: "DNSNameGrantList"}
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
	dyn := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(s, kinds, clusters...)
	w.f = &client.Federation{Kube: kubefake.NewClientset(system, info), Dynamic: dyn, Metadata: metadatafake.NewSimpleMetadataClient(s, w.metadata()), Namespace: "default"}
	dyn.PrependReactor("get", "clusters", func(k8stesting.Action) (bool, runtime.Object, error) {
		w.carryOut(dyn.Tracker())
		return false, nil, nil
	})
	w.f.REST = &restfake.RESTClient{NegotiatedSerializer: scheme.Codecs, Client: restfake.CreateHTTPClient(w.answer)}
	return w
}

// carryOut takes the next step of the drain of east-a, of which a replica comes or goes each time.
func (w *world) carryOut(tracker k8stesting.ObjectTracker) {
	c := w.stored(tracker)
	if w.idle || !drainplan.Concerns(c) {
		return
	}
	target := int64(4)
	if drainplan.HasTaint(c, drainplan.Taint) {
		target = 0
	}
	if drainplan.WantsContents(c) && w.copies != target {
		w.copies += map[bool]int64{true: 1, false: -1}[w.copies < target]
	}
	contents := drainplan.Contents{Objects: []drainplan.Object{{Kind: "ReplicaSet", Namespace: "default", Name: "web", Placed: target, Current: w.copies, Ready: w.copies}}}
	step := drainplan.Next(c, drainplan.World{Now: time.Now(), TTL: 15 * time.Second, Contents: contents, Steady: w.steady})
	w.steady = step.Steady
	if step.Cluster == nil {
		step.Cluster = c
		step.Cluster.Status.Drain = step.Status
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(step.Cluster)
	if err != nil {
		w.t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind("Cluster"))
	if err := tracker.Update(v1beta1.ClustersResource, u, ""); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) metadata() *metav1.PartialObjectMetadata {
	p := v1beta1.Placement{Clusters: map[string]int64{"east-a": 4, "west-a": 2}}
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Annotations: map[string]string{v1beta1.PlacementAnnotation: p.String()}},
	}
}

func (w *world) stored(tracker k8stesting.ObjectTracker) *v1beta1.Cluster {
	o, err := tracker.Get(v1beta1.ClustersResource, "", "east-a")
	if err != nil {
		w.t.Fatal(err)
	}
	c := &v1beta1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.(*unstructured.Unstructured).Object, c); err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) cluster() *v1beta1.Cluster {
	return w.stored(w.f.Dynamic.(*dynamicfake.FakeDynamicClient).Tracker())
}

// ready sets east-a's state as the registry and failover see it.
func (w *world) ready(yes bool, reason string, phase v1beta1.FailoverPhase) {
	tracker := w.f.Dynamic.(*dynamicfake.FakeDynamicClient).Tracker()
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

// answer answers requests for raw paths: the review.
func (w *world) answer(r *http.Request) (*http.Response, error) {
	var body any = map[string]any{"kind": "List", "apiVersion": "v1", "items": []any{}}
	if strings.HasSuffix(r.URL.Path, "/failoverreviews") {
		body = &v1beta1.FailoverReview{Status: w.review}
	}
	b, err := json.Marshal(body)
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(b))}, err
}

// run runs a command of the world and returns its output.
func (w *world) run(ctx context.Context, do func(*drainCommand) func(context.Context, string) error, set func(*drainCommand)) (string, error) {
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	o := &drainCommand{IOStreams: streams, Federation: w.f, dry: "none", ttl: -1, progress: progress.New(out)}
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
		said, err := w.run(t.Context(), draining, nil)
		if err != nil {
			t.Fatalf("%s%v", said, err)
		}
		if got := drainState(w.cluster()); got != "DNS weight 0, taint federation.kubernetes.io/drain:NoExecute, taint federation.kubernetes.io/unschedulable:NoSchedule" {
			t.Errorf("drained: %s", got)
		}
		again, err := w.run(t.Context(), draining, nil)
		if err != nil || again != "east-a: no replica is left there; cordoned\ncluster/east-a drained\n" {
			t.Errorf("once more: %s%v", again, err)
		}
		back, err := w.run(t.Context(), undraining, nil)
		if err != nil || drainState(w.cluster()) != "DNS weight 100" || len(w.cluster().Annotations) > 0 {
			t.Errorf("undrained: %s%v", back, err)
		}
		golden(t, "testdata/drain", said+"\n"+back)
	})
}

// TestDrainGoesOnWithoutItsWatcher: who watched it has gone, at a time that nobody chose.
func TestDrainGoesOnWithoutItsWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		said, err := w.run(ctx, draining, nil)
		if err == nil || !strings.Contains(err.Error(), "is left with DNS weight 0: the federation goes on emptying it\n  kubectl federation drain east-a ") {
			t.Fatalf("%s%v", said, err)
		}
		for range 60 {
			time.Sleep(time.Second)
			w.carryOut(w.f.Dynamic.(*dynamicfake.FakeDynamicClient).Tracker())
		}
		if got := w.cluster().OutOfService(); got != v1beta1.Drained {
			t.Errorf("a minute later it is %q", got)
		}
	})
}

func TestDrainSaysThatNobodyCarriesItOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.idle = true
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		if said, err := w.run(ctx, draining, nil); err == nil || !strings.Contains(said, "still waiting for the federation to begin") {
			t.Errorf("%s%v", said, err)
		}
	})
}

// TestDrainEndsWhenSomebodyUndrains: two people do not wait for each other.
func TestDrainEndsWhenSomebodyUndrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		go func() {
			time.Sleep(5 * time.Second)
			_, _, _ = w.f.ChangeCluster(t.Context(), "east-a", "none", drainplan.Cancel)
		}()
		if said, err := w.run(t.Context(), draining, nil); err == nil || !strings.Contains(err.Error(), "somebody has removed spec.drain of cluster east-a") {
			t.Errorf("%s%v", said, err)
		}
		synctest.Wait()
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
	if err != nil || !strings.HasSuffix(said, "cluster/east-a would be drained (dry run): DNS weight 100 to 0, wait, move, cordon\n") || drainState(w.cluster()) != "DNS weight 100" {
		t.Errorf("%s%v; %s", said, err, drainState(w.cluster()))
	}
}

// TestUnjoinOfAServingClusterAsks checks that, because what is placed there would run twice.
func TestUnjoinOfAServingClusterAsks(t *testing.T) {
	for _, test := range []struct {
		name, typed string
		yes         bool
		dry         client.DryRun
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
			_, _, _ = w.f.ChangeCluster(context.Background(), "east-a", "none", func(c *v1beta1.Cluster) {
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
	_, err := w.f.Cluster(t.Context(), "east")
	if fmt.Sprint(err) != `cluster "east" not found; there are: east-a, west-a` {
		t.Error(err)
	}
}
