package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"federation/apiserver/apis/federation/v1beta1"
	drainplan "federation/controllers/drain/plan"
)

var seenAt = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const uid = "fed"

var (
	replicaSets = appsv1.SchemeGroupVersion.WithResource("replicasets")
	jobs        = batchv1.SchemeGroupVersion.WithResource("jobs")
)

// clusterAt returns a cluster that is ready, or has not been for a while.
func clusterAt(name string, lostFor time.Duration) *v1beta1.Cluster {
	c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	ready := v1beta1.ClusterCondition{Type: v1beta1.ClusterReady, Status: corev1.ConditionTrue}
	if lostFor > 0 {
		lost := metav1.NewTime(seenAt.Add(-lostFor))
		ready = v1beta1.ClusterCondition{Type: v1beta1.ClusterReady, Status: corev1.ConditionFalse, LastTransitionTime: lost,
			Reason: v1beta1.ReasonClusterNotReachable, Message: "cluster is not reachable"}
		c.Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseGracePeriod, Since: lost, LostAt: &lost}
	}
	c.Status.Conditions = []v1beta1.ClusterCondition{ready}
	return c
}

var update = flag.Bool("update", false, "rewrite the golden files")

// goldenJSON compares with a file, or rewrites it with -update. Screens of the plugin are made of these files.
func goldenJSON(t *testing.T, file string, x any) {
	t.Helper()
	got, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs (go test -update rewrites it); got:\n%s", file, got)
	}
}

func fromJSON(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal([]byte(text), &u.Object); err != nil { // whole numbers are integers, as in what clients read
		t.Fatal(err)
	}
	return u
}

// replicaSet returns the federated object of the tests: replicas, and its placement.
func replicaSet(t *testing.T, replicas int64, p *v1beta1.Placement) *unstructured.Unstructured {
	u := fromJSON(t, `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"namespace":"default","name":"web","uid":"web-uid","generation":3},"spec":{}}`)
	_ = unstructured.SetNestedField(u.Object, replicas, "spec", "replicas")
	u.SetAnnotations(map[string]string{v1beta1.PlacementAnnotation: p.String()})
	return u
}

// at makes the cluster's copy as propagation wants it, with other numbers of desired and ready replicas.
func (e *Evidence) at(cluster string, there, ready int64) {
	i := slices.IndexFunc(e.Clusters, func(c *v1beta1.Cluster) bool { return c.Name == cluster })
	u := e.desiredNow(e.Clusters[i]).Object.DeepCopy()
	u.SetGeneration(2)
	_ = unstructured.SetNestedField(u.Object, there, "spec", "replicas")
	_ = unstructured.SetNestedField(u.Object, ready, "status", "readyReplicas")
	_ = unstructured.SetNestedField(u.Object, int64(2), "status", "observedGeneration")
	e.Copies[cluster] = CopyAnswer{Copy: u}
}

func evidenceOf(o *unstructured.Unstructured, resource schema.GroupVersionResource, clusters ...*v1beta1.Cluster) Evidence {
	return Evidence{Object: o, Resource: resource, Clusters: clusters, UID: uid, Copies: map[string]CopyAnswer{}, Now: seenAt}
}

// moving has a lost cluster and a draining one, whose replicas come up in a third.
func moving(t *testing.T) Evidence {
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(seenAt.Add(-d)) }
	o := replicaSet(t, 30, &v1beta1.Placement{
		Clusters: map[string]int64{"east-b": 26, "west-a": 4}, Policy: "web", Notes: []string{"spread over 2 of 3 zones"},
		History: []v1beta1.PlacementDecision{
			{At: ago(20 * time.Second), Cause: "cluster east-a: taint federation.kubernetes.io/drain:NoExecute", Changes: []v1beta1.PlacementChange{{Cluster: "east-a", From: 20}, {Cluster: "east-b", From: 6, To: 26}}},
			{At: ago(time.Hour), Cause: "created", Changes: []v1beta1.PlacementChange{{Cluster: "east-a", To: 20}, {Cluster: "east-b", To: 6}, {Cluster: "west-a", To: 4}}},
		},
	})
	_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{
		"type": "Propagated", "status": "False", "reason": "Progressing", "lastTransitionTime": "2026-01-01T11:59:40Z",
		"message": "east-a: shrinks from 12 to 0 as others get ready: 14 of 26 ready elsewhere; west-a: cluster cannot be reached; since 10s",
	}}, "status", "conditions")
	notes := o.GetAnnotations()
	notes[v1beta1.OutOfSyncAnnotation] = v1beta1.NewOutOfSync([]v1beta1.ClusterOutOfSync{{Cluster: "east-a", Reason: "Progressing", Message: "shrinks from 12 to 0 as others get ready: 14 of 26 ready elsewhere"}}).String()
	o.SetAnnotations(notes)
	drained := clusterAt("east-a", 0)
	drainplan.AddTaint(drained, drainplan.Taint)
	e := evidenceOf(o, replicaSets, drained, clusterAt("east-b", 0), clusterAt("west-a", 10*time.Second), clusterAt("west-b", 0))
	e.Policies = []*v1beta1.PlacementPolicy{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: v1beta1.PlacementPolicySpec{
		ResourceSelectors: []v1beta1.ResourceSelector{{APIVersion: "apps/v1", Kind: "ReplicaSet"}},
		Clusters:          &v1beta1.ClusterAffinity{Names: []string{"east-a", "east-b", "west-a"}},
	}}}
	e.at("east-a", 12, 12)
	e.at("east-b", 26, 14)
	e.Copies["west-a"] = CopyAnswer{Err: errors.New("no answer within 3s")}
	return e
}

func TestExplainAMove(t *testing.T) { goldenJSON(t, "testdata/moving.json", Explain(moving(t))) }

func TestReadyWithoutCopies(t *testing.T) {
	for name, c := range map[string]struct {
		status string
		by     v1beta1.ReadySource
		ready  int64
	}{
		"of its status": {`{"replicas":3,"readyReplicas":2}`, v1beta1.ReadyByStatus, 2}, "none ready": {`{"replicas":3}`, v1beta1.ReadyByStatus, 0},
		"no status": {`{}`, v1beta1.ReadyUnknown, 0}, "conditions say nothing": {`{"conditions":[]}`, v1beta1.ReadyUnknown, 0},
	} {
		o := replicaSet(t, 3, &v1beta1.Placement{Clusters: map[string]int64{"a": 2, "b": 1}})
		o.Object["status"] = fromJSON(t, `{"kind":"Status","status":`+c.status+`}`).Object["status"]
		e := evidenceOf(o, replicaSets, clusterAt("a", 0), clusterAt("b", 0))
		e.Copies["a"] = CopyAnswer{Err: errors.New("forbidden")}
		if x := Explain(e); x.ReadyBy != c.by || x.Ready != c.ready {
			t.Errorf("%s: %d by %q, want %d by %q", name, x.Ready, x.ReadyBy, c.ready, c.by)
		}
	}
	o := replicaSet(t, 3, &v1beta1.Placement{Clusters: map[string]int64{"a": 3}})
	if x := Explain(evidenceOf(o, replicaSets, clusterAt("a", 0))); x.ReadyBy != "" {
		t.Errorf("copies that can be read: by %q", x.ReadyBy)
	}
}

func TestStatesOfACopy(t *testing.T) {
	config := v1beta1.FederatedKindOf(schema.GroupResource{Resource: "configmaps"}).Resource
	settings := func() *unstructured.Unstructured {
		return fromJSON(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"settings","uid":"u"},"data":{"a":"b"}}`)
	}
	for name, c := range map[string]struct {
		change func(e *Evidence)
		want   v1beta1.CopyState
		waits  string
	}{
		"as it is to be": {func(*Evidence) {}, v1beta1.CopyInSync, ""},
		"not there":      {func(e *Evidence) { e.Copies["a"] = CopyAnswer{} }, v1beta1.CopyMissing, "to be written"},
		"changed since":  {func(e *Evidence) { _ = unstructured.SetNestedField(e.Object.Object, "c", "data", "a") }, v1beta1.CopyBehind, ""},
		"somebody else's": {func(e *Evidence) { e.Copies["a"].Copy.SetLabels(nil) }, v1beta1.CopyConflict,
			"an object of that name that is not the federation's; delete or rename one of them"},
		"on its way out": {func(e *Evidence) { now := metav1.NewTime(seenAt); e.Copies["a"].Copy.SetDeletionTimestamp(&now) }, v1beta1.CopyLeaving, ""},
		"not placed there": {func(e *Evidence) {
			e.Object.SetAnnotations(map[string]string{v1beta1.PlacementAnnotation: `{"clusters":{"b":1}}`})
		}, v1beta1.CopyLeaving, ""},
		"pending, nothing there": {func(e *Evidence) {
			e.Object.SetAnnotations(map[string]string{v1beta1.PlacementAnnotation: v1beta1.PlacementPending})
			e.Copies["a"] = CopyAnswer{}
		}, v1beta1.CopyNone, ""},
		"the selector excludes it": {func(e *Evidence) {
			e.Object.SetAnnotations(map[string]string{v1beta1.ClusterSelectorAnnotation: `[{"key":"tier","operator":"Exists"}]`})
			e.Copies["a"] = CopyAnswer{}
		}, v1beta1.CopyNone, ""},
		"no right to look": {func(e *Evidence) { e.Copies["a"] = CopyAnswer{Err: errors.New("forbidden")} }, v1beta1.CopyUnreadable, "forbidden"},
		"dead": {func(e *Evidence) {
			e.Copies["a"], e.Clusters[0] = CopyAnswer{Err: errors.New("refused")}, clusterAt("a", time.Minute)
		}, v1beta1.CopyUnreachable, "cluster is not ready for 60s: ClusterNotReachable: cluster is not reachable"},
	} {
		t.Run(name, func(t *testing.T) {
			e := evidenceOf(settings(), config, clusterAt("a", 0))
			e.Copies["a"] = CopyAnswer{Copy: e.desiredNow(e.Clusters[0]).Object.DeepCopy()}
			c.change(&e)
			if got := Explain(e).Clusters[0]; got.Copy != c.want || got.WaitsFor != c.waits {
				t.Errorf("%s, waits for %q; want %s, %q", got.Copy, got.WaitsFor, c.want, c.waits)
			}
		})
	}
}

// TestAFinishedJobWaitsForNothing: none of its replicas will be ready.
func TestAFinishedJobWaitsForNothing(t *testing.T) {
	job := fromJSON(t, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"default","name":"once","uid":"u"},"spec":{"parallelism":2}}`)
	job.SetAnnotations(map[string]string{v1beta1.PlacementAnnotation: `{"clusters":{"a":2}}`})
	e := evidenceOf(job, jobs, clusterAt("a", 0))
	copied := e.desiredNow(e.Clusters[0]).Object.DeepCopy()
	e.Copies["a"] = CopyAnswer{Copy: copied}
	if got := Explain(e).Clusters[0].WaitsFor; got != "2 replicas to get ready" {
		t.Errorf("one that works waits for %q", got)
	}
	_ = unstructured.SetNestedSlice(copied.Object, []any{map[string]any{"type": "Complete", "status": "True"}}, "status", "conditions")
	if got := Explain(e).Clusters[0].WaitsFor; got != "" {
		t.Errorf("one that is complete waits for %q", got)
	}
	e.Object.Object["status"], e.Copies["a"] = copied.Object["status"], CopyAnswer{}
	if c := Explain(e).Clusters[0]; c.WaitsFor != "" || c.Copy == v1beta1.CopyMissing {
		t.Errorf("one whose copy somebody deleted waits for %q", c.WaitsFor)
	}
}

// TestExplainAJobInRounds has a lost cluster, east-b, with 10 of 30 completions. The second round's copy is there in
// one cluster, yet to be made in the next, and waits for the first round's to go in the last.
func TestExplainAJobInRounds(t *testing.T) {
	job := func(annotations string) *unstructured.Unstructured {
		return fromJSON(t, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"default","name":"sums","uid":"u1","annotations":{
			"federation.kubernetes.io/placement":"{\"clusters\":{\"east-a\":2,\"west-a\":2,\"west-b\":1}}"`+annotations+`}},"spec":{"parallelism":5,"completions":30}}`)
	}
	e := evidenceOf(job(""), jobs, clusterAt("east-a", 0), clusterAt("east-b", time.Minute), clusterAt("west-a", 0), clusterAt("west-b", 0))
	e.Copies["east-b"] = CopyAnswer{Err: errors.New("refused")}
	made := func(cluster, status string) {
		i := slices.IndexFunc(e.Clusters, func(c *v1beta1.Cluster) bool { return c.Name == cluster })
		u := e.desiredNow(e.Clusters[i]).Object.DeepCopy()
		u.Object["status"] = fromJSON(t, status).Object
		e.Copies[cluster] = CopyAnswer{Copy: u}
	}
	made("east-a", `{"active":2,"ready":2,"succeeded":7}`)
	goldenJSON(t, "testdata/job.first.json", Explain(e))
	made("west-b", `{"succeeded":6,"conditions":[{"type":"Complete","status":"True"}]}`)
	delete(e.Copies, "east-a")
	e.Object = job(`,"federation.kubernetes.io/job-round":"{\"round\":2,\"succeeded\":20,\"failed\":1}"`)
	made("east-a", `{"active":2,"ready":2,"succeeded":1}`)
	goldenJSON(t, "testdata/job.second.json", Explain(e))
}

// TestACopyThatCannotBeMadeSaysWhy: an override does not apply, and there is no copy yet.
func TestACopyThatCannotBeMadeSaysWhy(t *testing.T) {
	settings := fromJSON(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"settings","annotations":{"federation.kubernetes.io/placement":"{\"clusters\":{\"a\":1},\"policy\":\"p\"}"}}}`)
	e := evidenceOf(settings, v1beta1.FederatedKindOf(schema.GroupResource{Resource: "configmaps"}).Resource, clusterAt("a", 0))
	e.Policies = []*v1beta1.PlacementPolicy{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: v1beta1.PlacementPolicySpec{
		ResourceSelectors: []v1beta1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}},
		Overrides:         []v1beta1.Override{{JSONPatch: []v1beta1.JSONPatchOperation{{Op: "remove", Path: "/data/none"}}}},
	}}}
	want := "policy p: spec.overrides[0].jsonPatch[0]: remove /data/none: there is nothing at that path"
	if c := Explain(e).Clusters[0]; c.Copy != v1beta1.CopyMissing || c.WaitsFor != want {
		t.Errorf("%s, waits for %q; want missing, %q", c.Copy, c.WaitsFor, want)
	}
}

// TestADefinitionGoesWhereAPolicyNamesItsKind also checks that explain names the missing permission of the federation.
func TestADefinitionGoesWhereAPolicyNamesItsKind(t *testing.T) {
	definition := fromJSON(t, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com","uid":"u"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"kind":"Widget","plural":"widgets"},"versions":[{"name":"v1","served":true}]},
		"status":{"conditions":[{"type":"Established","status":"True"}]}}`)
	e := evidenceOf(definition, schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, clusterAt("a", 0))
	if c := Explain(e).Clusters[0]; c.Desired != 0 || !strings.Contains(c.Reasons[0], "no policy names the kind") {
		t.Errorf("without a policy: %+v", c)
	}
	e.Policies = []*v1beta1.PlacementPolicy{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}, Spec: v1beta1.PlacementPolicySpec{
		ResourceSelectors: []v1beta1.ResourceSelector{{APIVersion: "example.com/v1", Kind: "Widget"}}}}}
	e.Copies["a"] = CopyAnswer{Copy: e.desiredNow(e.Clusters[0]).Object.DeepCopy()}
	if c := Explain(e).Clusters[0]; c.Copy != v1beta1.CopyInSync || c.Desired != 1 || !strings.Contains(c.Reasons[0], "a policy names the kind") {
		t.Errorf("with a policy: %+v", c)
	}
	e.Copies["a"] = CopyAnswer{}
	if c := Explain(e).Clusters[0]; c.Copy != v1beta1.CopyMissing || !strings.Contains(c.WaitsFor, "--custom-kinds widgets.example.com") {
		t.Errorf("not there yet: %s, waits for %q", c.Copy, c.WaitsFor)
	}
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	e = evidenceOf(fromJSON(t, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"shop","name":"w"}}`), widgets, clusterAt("a", 0))
	e.Copies["a"] = CopyAnswer{Err: apierrors.NewForbidden(widgets.GroupResource(), "w", errors.New(`User "system:serviceaccount:federation-system:federation-1"`))}
	if c := Explain(e).Clusters[0]; c.Copy != v1beta1.CopyUnreadable || !strings.Contains(c.WaitsFor, "--custom-kinds widgets.example.com") {
		t.Errorf("without the right: %s, waits for %q", c.Copy, c.WaitsFor)
	}
}

// TestTheFederationsAutoscalerDecides checks that its copies scale, though none of them has taken over the number yet.
func TestTheFederationsAutoscalerDecides(t *testing.T) {
	o := fromJSON(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":"web","uid":"u"},"spec":{"replicas":3}}`)
	o.SetAnnotations(map[string]string{v1beta1.PlacementAnnotation: `{"clusters":{"a":3}}`})
	e := evidenceOf(o, replicaSets, clusterAt("a", 0))
	e.Autoscalers = []*unstructured.Unstructured{fromJSON(t, `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"namespace":"default","name":"web"},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"web"}}}`)}
	e.at("a", 5, 5)
	e.at("a", 5, 5) // the present number is the desired one from now on
	if c := Explain(e).Clusters[0]; c.Copy != v1beta1.CopyInSync || !strings.Contains(strings.Join(c.Reasons, ";"), "5 there by the cluster's autoscaler") {
		t.Errorf("%s %q", c.Copy, c.Reasons)
	}
}

// TestWhyAnAutoscalerDoesNotScale: what scales for all clusters together says why it does not, asked for by its name or by that of its workload.
func TestWhyAnAutoscalerDoesNotScale(t *testing.T) {
	autoscaler := fromJSON(t, `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"namespace":"default","name":"all","annotations":{"federation.kubernetes.io/placement":"{\"clusters\":{},\"atFederation\":true}"}},
		"spec":{"scaleTargetRef":{"kind":"Deployment","name":"web"}},"status":{"conditions":[{"type":"AbleToScale","status":"True"},{"type":"ScalingActive","status":"False","reason":"FailedGetPodsMetric","message":"cluster a: none"}]}}`)
	workload := evidenceOf(fromJSON(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":"web"},"spec":{"replicas":3}}`), replicaSets, clusterAt("a", 0))
	workload.Autoscalers = []*unstructured.Unstructured{autoscaler}
	const want = "the HorizontalPodAutoscaler all does not scale: ScalingActive is False (FailedGetPodsMetric): cluster a: none"
	for _, e := range []Evidence{workload, evidenceOf(autoscaler, AutoscalerKind.Resource, clusterAt("a", 0))} {
		if notes := Explain(e).Notes; !slices.Contains(notes, want) {
			t.Errorf("%s: notes %q", e.Object.GetKind(), notes)
		}
	}
	autoscaler.SetAnnotations(nil)
	if notes := Explain(workload).Notes; slices.Contains(notes, want) {
		t.Error("it says so of one that is in clusters")
	}
}

func TestAnAutoscalersNumberIsInSync(t *testing.T) {
	e := evidenceOf(replicaSet(t, 3, &v1beta1.Placement{Clusters: map[string]int64{"a": 3}}), replicaSets, clusterAt("a", 0))
	e.at("a", 7, 7)
	e.Copies["a"].Copy.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "kube-controller-manager", Subresource: "scale", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
	}})
	if c := Explain(e).Clusters[0]; c.Copy != v1beta1.CopyInSync || !strings.Contains(strings.Join(c.Reasons, ";"), "7 there by the cluster's autoscaler") {
		t.Errorf("%s %q", c.Copy, c.Reasons)
	}
}

// TestWhatAWorkloadRefersToFollowsIt: the reasons name the workload that takes the object along.
func TestWhatAWorkloadRefersToFollowsIt(t *testing.T) {
	config := v1beta1.FederatedKindOf(schema.GroupResource{Resource: "configmaps"}).Resource
	o := fromJSON(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"settings","annotations":{"federation.kubernetes.io/placement":"{\"clusters\":{\"a\":1}}"}}}`)
	web := fromJSON(t, `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"namespace":"default","name":"web","annotations":{"federation.kubernetes.io/placement":"{\"clusters\":{\"a\":3}}"}},
		"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"c","envFrom":[{"configMapRef":{"name":"settings"}}]}]}}}}`)
	e := evidenceOf(o, config, clusterAt("a", 0), clusterAt("b", 0))
	e.Referrers = []*unstructured.Unstructured{web}
	e.Policies = []*v1beta1.PlacementPolicy{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: v1beta1.PlacementPolicySpec{
		ResourceSelectors: []v1beta1.ResourceSelector{{APIVersion: "apps/v1", Kind: "ReplicaSet"}}, PropagateReferences: true,
	}}}
	x := Explain(e)
	if got := strings.Join(x.Clusters[0].Reasons, ";"); !strings.Contains(got, "ReplicaSet web") || x.Clusters[0].Desired != 1 || x.Clusters[1].Desired != 0 {
		t.Errorf("%q %+v", got, x.Clusters)
	}
}

// TestASecretSaysWhyItIsWhereItIs checks that explain names its referrers, or that there are none.
func TestASecretSaysWhyItIsWhereItIs(t *testing.T) {
	secrets := v1beta1.FederatedKindOf(schema.GroupResource{Resource: "secrets"}).Resource
	daemon := fromJSON(t, `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"namespace":"default","name":"logs","annotations":{"federation.alpha.kubernetes.io/cluster-selector":"[{\"key\":\"tier\",\"operator\":\"In\",\"values\":[\"gold\"]}]"}},
		"spec":{"template":{"spec":{"imagePullSecrets":[{"name":"pass"}]}}}}`)
	for name, c := range map[string]struct {
		placement string
		referrers []*unstructured.Unstructured
		want      string
	}{
		"nothing refers to it": {`{\"clusters\":{}}`, nil, "a 0 nothing refers to it; a policy or --propagate-secrets=All would take it to clusters, b 0 nothing refers to it; a policy or --propagate-secrets=All would take it to clusters"},
		"everywhere":           {`{\"clusters\":{},\"everywhere\":true}`, []*unstructured.Unstructured{daemon}, "a 1 goes to every cluster, by --propagate-secrets=All, b 1 goes to every cluster, by --propagate-secrets=All"},
		"with a DaemonSet":     {`{\"clusters\":{\"a\":1}}`, []*unstructured.Unstructured{daemon}, "a 1 goes where its referrers go: DaemonSet logs, b 0 does not go there, because DaemonSet logs does not"},
	} {
		o := fromJSON(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"default","name":"pass","annotations":{"federation.kubernetes.io/placement":"`+c.placement+`"}}}`)
		gold := clusterAt("a", 0)
		gold.Labels = map[string]string{"tier": "gold"}
		e := evidenceOf(o, secrets, gold, clusterAt("b", 0))
		e.Referrers = c.referrers
		var got []string
		for _, one := range Explain(e).Clusters {
			got = append(got, fmt.Sprintf("%s %d %s", one.Name, one.Desired, strings.Join(one.Reasons, "; ")))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestEachClusterHasAReason covers a cluster that was away when the object was created, and an object whose policy
// names no clusters.
func TestEachClusterHasAReason(t *testing.T) {
	e := evidenceOf(replicaSet(t, 6, &v1beta1.Placement{Clusters: map[string]int64{"a": 3, "b": 3}}), replicaSets, clusterAt("a", 0), clusterAt("b", 0), clusterAt("c", 0))
	for _, c := range Explain(e).Clusters {
		if len(c.Reasons) == 0 || c.Name == "c" && !strings.Contains(c.Reasons[0], "stay there, as rebalance is off") {
			t.Errorf("%s: %q", c.Name, c.Reasons)
		}
	}
	reserved := clusterAt("b", 0)
	reserved.Spec.AllowedNamespaces = []string{"bank"}
	plain := fromJSON(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"settings"}}`)
	e = evidenceOf(plain, v1beta1.FederatedKindOf(schema.GroupResource{Resource: "configmaps"}).Resource, clusterAt("a", 0), reserved)
	if c := Explain(e).Clusters[1]; c.Desired != 0 || len(c.Reasons) == 0 || !strings.Contains(c.Reasons[0], "namespace default may not use cluster b") {
		t.Errorf("of a cluster that is for others: %d, %q", c.Desired, c.Reasons)
	}
	settings := fromJSON(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"settings","annotations":{"federation.kubernetes.io/placement":"{\"clusters\":{\"a\":1},\"policy\":\"p\"}"}}}`)
	e = evidenceOf(settings, v1beta1.FederatedKindOf(schema.GroupResource{Resource: "configmaps"}).Resource, clusterAt("a", 0))
	e.Policies = []*v1beta1.PlacementPolicy{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: v1beta1.PlacementPolicySpec{
		ResourceSelectors: []v1beta1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}}}}
	if c := Explain(e).Clusters[0]; len(c.Reasons) == 0 || !strings.Contains(c.Reasons[0], "every cluster") {
		t.Errorf("%q", c.Reasons)
	}
}
