package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	k8stesting "k8s.io/client-go/testing"

	"federation/apiserver/apis/federation/v1beta1"
	drainplan "federation/controllers/drain/plan"
	"federation/controllers/explain"
	explainplan "federation/controllers/explain/plan"
)

func roomy(name string, at string) *v1beta1.Cluster {
	c := clusterAt(name, 0)
	region, zone, _ := strings.Cut(at, "/")
	c.Status.Region, c.Status.Zones = region, []string{zone}
	amounts := func(cpu, memory, pods string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse(pods)}
	}
	c.Status.Capacity = &v1beta1.ClusterCapacity{Nodes: 3, Allocatable: amounts("96", "768Gi", "330"), Requested: amounts("1500m", "96Gi", "31")}
	return c
}

// statusOf makes a status of Clusters and of ReplicaSets with a condition Propagated.
func statusOf(t *testing.T, clusters []*v1beta1.Cluster, conditions ...string) *explainplan.Status {
	s := &explainplan.Status{Name: "prod", DNSZone: "example.com"}
	for _, c := range clusters {
		s.Clusters = append(s.Clusters, explainplan.ClusterStatusOf(c))
	}
	k := explainplan.KindStatus{Kind: "ReplicaSet"}
	for i, c := range conditions {
		state, message, _ := strings.Cut(c, " ")
		since := seenAt.Add(-time.Duration(i+1) * time.Minute).Format(time.RFC3339)
		u := fromJSON(t, fmt.Sprintf(`{"metadata":{"namespace":"default","name":"web-%03d"},"status":{"conditions":[{"type":"Propagated","status":%q,"reason":"Rejected","message":%q,"lastTransitionTime":%q}]}}`,
			i, state, message, since))
		s.Add(&k, u, explainplan.ConditionOf(u, v1beta1.ConditionPropagated))
	}
	s.Kinds = append(s.Kinds, k)
	s.Summarize()
	return s
}

func TestStatusOnAScreen(t *testing.T) {
	drained, lost := roomy("east-b", "east/b"), clusterAt("west-a", 5*time.Minute)
	drainplan.Begin(drained, drainedAt)
	drainplan.AddTaint(drained, drainplan.Taint)
	drained.Status.Drain = &v1beta1.ClusterDrainStatus{Phase: v1beta1.DrainEvicting, Objects: 2}
	lost.Status.Failover.Phase, lost.Status.Failover.Message = v1beta1.PhaseFailoverSuspended, "as many zones are failed over as may be at once (1)"
	out := clusterAt("west-c", 5*time.Minute)
	out.Status.Failover.Phase, out.Status.Failover.Message = v1beta1.PhaseFailedOver, "its replicas are placed elsewhere"
	returning := roomy("west-b", "west/b")
	returning.Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseFailingBack, Percent: 10, Since: metav1.NewTime(seenAt.Add(-time.Minute)), Message: "ready again: gets 10 %"}
	crowded := roomy("east-a", "east/a")
	crowded.Status.Capacity.Unschedulable = []v1beta1.UnschedulablePods{{Kind: "ReplicaSet", Name: "web", Pods: 3}}
	s := statusOf(t, []*v1beta1.Cluster{crowded, drained, lost, out, returning}, "True 4 clusters are as desired", "False east-a: exceeded quota: compute", "False west-a: cluster cannot be reached")
	if s.Healthy {
		t.Error("all is said to be well")
	}
	var screen strings.Builder
	printStatus(&screen, s, extent{maxRows, true}, seenAt)
	golden(t, "testdata/status.table", screen.String())
}

// A cluster whose deletions wait for approval serves, and is not well; a pipe has whole messages.
func TestStatusInAPipe(t *testing.T) {
	lost := clusterAt("west-a", time.Minute)
	long := strings.Repeat("as many zones are failed over as may be at once ", 4) + "(1)"
	lost.Status.Failover.Phase, lost.Status.Failover.Message = v1beta1.PhaseFailoverSuspended, long
	s := statusOf(t, []*v1beta1.Cluster{roomy("east-a", "east/a"), lost}, "False "+long)
	s.Clusters[0].DeletionsPendingApproval = 16
	var out strings.Builder
	printStatus(&out, s, extent{rows: maxRows}, seenAt)
	if !strings.Contains(out.String(), "1 of 2 clusters serve") || strings.Count(out.String(), long) != 2 {
		t.Error(out.String())
	}
}

func TestStatusIsBounded(t *testing.T) {
	var clusters []*v1beta1.Cluster
	for i := range 1000 {
		clusters = append(clusters, clusterAt(fmt.Sprintf("cluster-%03d", i), 0))
	}
	clusters[700] = clusterAt("cluster-700", time.Minute)
	s := statusOf(t, clusters, slices.Repeat([]string{"False nothing works"}, 300)...)
	var out strings.Builder
	printStatus(&out, s, extent{maxRows, true}, seenAt)
	text := out.String()
	for _, want := range []string{"cluster-700", "and 980 clusters more", "300 Rejected", "replicaset/web-299 -n default   5h", "and 280 objects more"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if lines := strings.Count(text, "\n"); lines > 60 {
		t.Errorf("%d lines", lines)
	}
}

func TestStatusIsWell(t *testing.T) {
	if s := statusOf(t, []*v1beta1.Cluster{roomy("east-a", "east/a")}, "True 1 clusters are as desired"); !s.Healthy {
		t.Errorf("%+v", s)
	}
}

func TestStatusOfNoClusters(t *testing.T) {
	var out strings.Builder
	printStatus(&out, statusOf(t, nil), extent{maxRows, true}, seenAt)
	if text := out.String(); !strings.Contains(text, "kubectl federation join") || strings.Contains(text, "CLUSTER ") {
		t.Errorf("a table without rows, or no word of what to do:\n%s", text)
	}
}

func TestReviewOnAScreen(t *testing.T) {
	s := &v1beta1.FailoverReviewStatus{
		Clusters: []string{"east-a"}, SuspendedReason: "as many zones are failed over as may be at once (1)", ReplicasMoved: 24, ReplicasUnschedulable: 4,
		Moves: []v1beta1.ReplicaMove{
			{Kind: "Deployment", Namespace: "shop", Name: "web", Clusters: []v1beta1.ReplicaChange{{Cluster: "east-a", Before: 20}, {Cluster: "east-b", Before: 5, After: 15}, {Cluster: "west-a", Before: 5, After: 11}}, Unschedulable: 4},
			{Kind: "StatefulSet", Namespace: "shop", Name: "db", Clusters: []v1beta1.ReplicaChange{}, Reason: "3 stay in east-a (failover is off by policy)"},
		},
		Records: []v1beta1.RecordChange{
			{Name: "web.shop.prod.svc.a.east.example.com.", Type: "A", Before: []string{"192.0.2.1"}},
			{Name: "web.shop.prod.svc.a.east.example.com.", Type: "CNAME", After: []string{"web.shop.prod.svc.east.example.com."}},
		},
		Routes:            []v1beta1.RouteLoss{{Namespace: "shop", Ingress: "front", Service: "admin", Host: "www.example.com", Path: "/admin"}, {Namespace: "shop", Ingress: "front", Service: "db"}},
		LoadBalancers:     []v1beta1.LoadBalancerLoss{{Name: "east-1", Region: "east", Zone: "a", Addresses: []string{"192.0.2.80", "2001:db8::80"}}, {Name: "east-2", Region: "east", Addresses: []string{"192.0.2.81"}}},
		LoadBalancersLeft: new(int64),
	}
	var out strings.Builder
	printReview(&out, s, maxRows)
	tell(&out, "\n--- at most one row of each\n\n")
	printReview(&out, s, 1)
	tell(&out, "\n--- nothing\n\n")
	printReview(&out, &v1beta1.FailoverReviewStatus{Clusters: []string{"east-a"}}, maxRows)
	golden(t, "testdata/review.table", out.String())
}

// TestRefusedReview checks that the message has the error, not the object around it.
func TestRefusedReview(t *testing.T) {
	w := newWorld(t)
	refused := apierrors.NewInvalid(v1beta1.SchemeGroupVersion.WithKind("FailoverReview").GroupKind(), "", field.ErrorList{
		field.Invalid(field.NewPath("spec", "clusters").Index(0), "nope", "must be the name of a cluster of this federation"),
	})
	want := `spec.clusters[0]: Invalid value: "nope": must be the name of a cluster of this federation; there are: east-a (no region), west-a (no region)`
	if got := withKnownClusters(t.Context(), w.f, refused); got.Error() != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}

func TestCompletion(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	if got := withPrefix("e", clusterNames(ctx, w.f, nil)); !slices.Equal(got, []string{"east-a"}) {
		t.Errorf("clusters that begin with e: %v", got)
	}
	if got := clusterNames(ctx, w.f, []string{"east-a"}); !slices.Equal(got, []string{"west-a"}) {
		t.Errorf("clusters beside east-a: %v", got)
	}
	if got := oneCluster(ctx, w.f, []string{"east-a"}); got != nil {
		t.Errorf("a second cluster for a command that takes one: %v", got)
	}
	if got := withPrefix("deploy", completeObjects(ctx, w.f, nil, "deploy")); !slices.Equal(got, []string{"deployment/"}) {
		t.Errorf("kinds that begin with deploy: %v", got)
	}
	if got := withPrefix("", completeObjects(ctx, w.f, nil, "")); !slices.Contains(got, "ingress/") || !slices.Contains(got, "networkpolicy/") {
		t.Errorf("kinds: %v", got)
	}
	if got := commandArguments([]string{"/usr/bin/kubectl_complete-federation", "drain", "e"}); !slices.Equal(got, []string{"__complete", "drain", "e"}) {
		t.Errorf("what kubectl asks for: %v", got)
	}
	if got := commandArguments([]string{"kubectl-federation", "drain", "e"}); !slices.Equal(got, []string{"drain", "e"}) {
		t.Errorf("what people ask for: %v", got)
	}
}

func TestWrongFlags(t *testing.T) {
	for args, want := range map[string]string{
		"cordon":                            "give the NAME of at least one cluster",
		"cordon a --dry-run=maybe":          `--dry-run "maybe": must be none, client or server`,
		"drain":                             "give one NAME of a cluster, not 0",
		"drain a --timeout -1s":             "--timeout -1s: must not be negative",
		"drain a --ttl -1s":                 "--ttl -1s: must not be negative",
		"drain a b":                         "not 2",
		"explain":                           `give one KIND/NAME, as replicaset/web, not ""`,
		"explain web":                       `give one KIND/NAME, as replicaset/web, not "web"`,
		"explain rs/web -o wide":            `--output "wide": must be table, json or yaml`,
		"explain rs/web --member-timeout 0": "--member-timeout 0s: must be more than 0",
		"status -o xml":                     `--output "xml": must be table, json or yaml`,
		"status web":                        `unknown command "web"`,
		"plan failover":                     "at least one of the flags in the group [cluster zone region] is required",
		"status --kubeconfig /no/file":      "the federation (--kubeconfig, --context)",
	} {
		if _, err := run(strings.Fields(args)...); !strings.Contains(err, want) {
			t.Errorf("%s: error %q, want one with %q", args, err, want)
		}
	}
}

// A user who may not list Clusters learns which role permits it; one who may not list some kind sees the others.
func TestWhoMayNotSeeAllIsToldWhatIsMissing(t *testing.T) {
	w := newWorld(t)
	refuse := func(group, resource string) k8stesting.ReactionFunc {
		return func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, "", errors.New(`User "jane" cannot list it`))
		}
	}
	w.f.Metadata.(*metadatafake.FakeMetadataClient).PrependReactor("list", "secrets", refuse("", "secrets"))
	s, err := explain.ReadStatus(t.Context(), w.f)
	if err != nil || len(s.NotCounted) != 1 || s.NotCounted[0] != "Secret" || s.Healthy {
		t.Fatalf("%+v, %v", s, err)
	}
	var screen strings.Builder
	printStatus(&screen, s, extent{maxRows, true}, seenAt)
	if want := "Not counted, because you may not list them in all namespaces: Secret\n"; !strings.Contains(screen.String(), want) {
		t.Errorf("%s\nlacks %q", screen.String(), want)
	}
	w.f.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("*", "clusters", refuse(v1beta1.GroupName, "clusters"))
	_, fromList := explain.ReadStatus(t.Context(), w.f)
	_, fromGet := w.f.Cluster(t.Context(), "east-a")
	for _, err := range []error{fromList, fromGet} {
		if err == nil || !strings.Contains(err.Error(), "jane") || !strings.Contains(err.Error(), "--clusterrole federation-cluster-viewer") {
			t.Errorf("%v", err)
		}
	}
}
