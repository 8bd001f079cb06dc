package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

var reviewedAt = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// member returns a ready cluster at REGION/ZONE,ZONE with room for a number of pods; below 0: unknown.
func member(name, at string, room int64) *v1beta1.Cluster {
	region, zones, _ := strings.Cut(at, "/")
	before := metav1.NewTime(reviewedAt.Add(-time.Hour))
	c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1beta1.ClusterStatus{
		Region: region, Zones: strings.Split(zones, ","),
		Conditions: []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: corev1.ConditionTrue, LastTransitionTime: before}},
		Failover:   &v1beta1.ClusterFailover{Phase: v1beta1.PhaseServing, Since: before},
	}}
	if room >= 0 {
		pods := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(room, resource.DecimalSI)}
		c.Status.Capacity = &v1beta1.ClusterCapacity{ObservedAt: before, Nodes: 1, Free: []v1beta1.NodeClass{{Nodes: 1, Free: pods}}}
	}
	return c
}

// replicas returns a ReplicaSet with a placement, given as JSON.
func replicas(name, placed string, labels map[string]string) *unstructured.Unstructured {
	p := v1beta1.ParsePlacement(`{"clusters":` + placed + `}`)
	var sum int64
	for _, n := range p.Clusters {
		sum += n
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": map[string]any{"replicas": sum, "template": map[string]any{"spec": map[string]any{}}},
	}}
	u.SetNamespace("default")
	u.SetName(name)
	u.SetLabels(labels)
	u.SetAnnotations(map[string]string{v1beta1.PlacementAnnotation: p.String()})
	return u
}

// finishedJob returns a finished Job that was placed in east-a.
func finishedJob(parallelism int64) *unstructured.Unstructured {
	u := replicas("once", fmt.Sprintf(`{"east-a":%d}`, parallelism), nil)
	u.SetAPIVersion("batch/v1")
	u.SetKind("Job")
	u.Object["spec"] = map[string]any{"parallelism": parallelism}
	u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	return u
}

func service(name, ingresses string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "spec": map[string]any{"type": "LoadBalancer"}}}
	u.SetNamespace("default")
	u.SetName(name)
	u.SetAnnotations(map[string]string{v1beta1.ServiceIngressesAnnotation: ingresses})
	return u
}

func input(t *testing.T, clusters []*v1beta1.Cluster, objects ...*unstructured.Unstructured) Input {
	t.Helper()
	in := Input{
		Clusters: clusters, Now: reviewedAt,
		Info: &v1beta1.Info{Name: "fed", DNSZone: "example.test", DNSTTL: 15 * time.Second, FailoverMaxZones: 1},
	}
	for _, u := range objects {
		add := in.AddObject
		if u.GetKind() == "Service" {
			add = in.AddNamed
		}
		add(u)
	}
	return in
}

func three(room int64) []*v1beta1.Cluster {
	return []*v1beta1.Cluster{member("east-a", "east/a", room), member("east-b", "east/b", room), member("west-a", "west/a", room)}
}

// lines formats moves as "web: east-a 10→0, …; N unschedulable; why".
func lines(moves []v1beta1.ReplicaMove) (out []string) {
	for _, m := range moves {
		var words []string
		for _, c := range m.Clusters {
			words = append(words, fmt.Sprintf("%s %d→%d", c.Cluster, c.Before, c.After))
		}
		line := m.Name + ": " + strings.Join(words, ", ")
		if m.Unschedulable > 0 {
			line += fmt.Sprintf("; %d unschedulable", m.Unschedulable)
		}
		if m.Reason != "" {
			line += "; " + m.Reason
		}
		out = append(out, line)
	}
	return out
}

func policyFor(name string, spec v1beta1.PlacementPolicySpec) *v1beta1.PlacementPolicy {
	spec.ResourceSelectors = []v1beta1.ResourceSelector{{APIVersion: "apps/v1", Kind: "ReplicaSet", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"policy": name}}}}
	return &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec}
}

func TestReviewedMoves(t *testing.T) {
	web := replicas("web", `{"east-a":10,"east-b":5,"west-a":5}`, nil)
	important := func(name string) map[string]string { return map[string]string{"policy": name} }
	stays := policyFor("stays", v1beta1.PlacementPolicySpec{Failover: &v1beta1.FailoverPolicy{Disabled: true}})
	first := policyFor("first", v1beta1.PlacementPolicySpec{Priority: 10})
	patient := int32(3600)
	slow := policyFor("slow", v1beta1.PlacementPolicySpec{Failover: &v1beta1.FailoverPolicy{GracePeriodSeconds: &patient}})
	for name, c := range map[string]struct {
		room                    int64
		objects                 []*unstructured.Unstructured
		lost                    []string
		want                    []string
		replicas, unschedulable int64
	}{
		"what a cluster has goes to the others": {room: -1, objects: []*unstructured.Unstructured{web}, lost: []string{"east-a"},
			want: []string{"web: east-a 10→0, east-b 5→10, west-a 5→10"}, replicas: 10},
		"one that has nothing there is not in it": {room: -1, lost: []string{"east-a"},
			objects: []*unstructured.Unstructured{replicas("elsewhere", `{"west-a":3}`, nil)}},
		"a Job that is finished is not in it": {room: -1, objects: []*unstructured.Unstructured{finishedJob(4)}, lost: []string{"east-a"}},
		"what fits nowhere": {room: 2, objects: []*unstructured.Unstructured{web}, lost: []string{"east-a"},
			want: []string{"web: east-a 10→0, east-b 5→7, west-a 5→7; 6 unschedulable"}, replicas: 10, unschedulable: 6},
		"one ledger, by priority": {room: 2, lost: []string{"east-a"},
			objects: []*unstructured.Unstructured{replicas("a", `{"east-a":4}`, nil), replicas("z", `{"east-a":4}`, important("first"))},
			want:    []string{"z: east-a 4→0, east-b 0→2, west-a 0→2", "a: east-a 4→0; 4 unschedulable"}, replicas: 8, unschedulable: 4},
		"failover is disabled by policy": {room: -1, objects: []*unstructured.Unstructured{replicas("web", `{"east-a":4}`, important("stays"))}, lost: []string{"east-a"},
			want: []string{"web: ; 4 stay in east-a ("}},
		"a longer grace period is over too": {room: -1, objects: []*unstructured.Unstructured{replicas("web", `{"east-a":4,"west-a":0}`, important("slow"))}, lost: []string{"east-a", "east-b"},
			want: []string{"web: east-a 4→0, west-a 0→4"}, replicas: 4},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, three(c.room), c.objects...)
			in.Policies = []*v1beta1.PlacementPolicy{stays, first, slow}
			s, errs := Review(in, v1beta1.FailoverReviewSpec{Clusters: c.lost})
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			same := slices.EqualFunc(lines(s.Moves), c.want, func(got, want string) bool { return strings.HasPrefix(got, want) })
			if !same || s.ReplicasMoved != c.replicas || s.ReplicasUnschedulable != c.unschedulable {
				t.Errorf("got %q, %d replicas, %d unschedulable; want %q, %d, %d", lines(s.Moves), s.ReplicasMoved, s.ReplicasUnschedulable, c.want, c.replicas, c.unschedulable)
			}
		})
	}
}

// TestReviewedDrain checks that a drain moves what failover leaves, leaves what tolerates it, reports what may be
// nowhere else, and is never suspended.
func TestReviewedDrain(t *testing.T) {
	stays := policyFor("stays", v1beta1.PlacementPolicySpec{Failover: &v1beta1.FailoverPolicy{Disabled: true}})
	tolerant := policyFor("tolerant", v1beta1.PlacementPolicySpec{Tolerations: []corev1.Toleration{{Key: v1beta1.TaintDrain, Operator: corev1.TolerationOpExists}}})
	only := policyFor("only", v1beta1.PlacementPolicySpec{Clusters: &v1beta1.ClusterAffinity{Names: []string{"east-a"}}})
	in := input(t, three(-1), replicas("a", `{"east-a":4}`, map[string]string{"policy": "stays"}), replicas("c", `{"east-a":3}`, map[string]string{"policy": "only"}), replicas("b", `{"east-a":4}`, map[string]string{"policy": "tolerant"}),
		service("web", `{"items":[{"cluster":"east-a","items":[{"ip":"192.0.2.1"}]},{"cluster":"west-a","items":[{"ip":"203.0.113.1"}]}]}`))
	in.Policies, in.Info.FailoverMaxZones = []*v1beta1.PlacementPolicy{stays, tolerant, only}, 0
	s, errs := Review(in, v1beta1.FailoverReviewSpec{Clusters: []string{"east-a"}, Drained: true})
	if got := strings.Join(lines(s.Moves), "\n"); len(errs) > 0 || s.SuspendedReason != "" || s.ReplicasMoved != 4 || s.ReplicasUnschedulable != 3 || len(s.Records) == 0 ||
		!strings.HasPrefix(got, "a: east-a 4→0, ") || !strings.Contains(got, "\nb: ; 4 stay in east-a (") || !strings.Contains(got, "\nc: ; 3 unschedulable; 3 stay in east-a (") {
		t.Errorf("%s\n%+v %v", got, s, errs)
	}
}

func TestReviewedChangesNothing(t *testing.T) {
	in := input(t, three(-1), replicas("web", `{"east-a":10}`, nil))
	before := in.Clusters[0].DeepCopy()
	first, _ := Review(in, v1beta1.FailoverReviewSpec{Clusters: []string{"east-a"}})
	second, _ := Review(in, v1beta1.FailoverReviewSpec{Clusters: []string{"east-a"}})
	if !reflect.DeepEqual(first, second) || !reflect.DeepEqual(before, in.Clusters[0]) {
		t.Errorf("a review changed what it looked at: %v, then %v", first, second)
	}
}

func TestReviewedRecords(t *testing.T) {
	clusters := three(-1)
	serving := service("web", `{"items":[{"cluster":"east-a","items":[{"ip":"192.0.2.1"}]},{"cluster":"west-a","items":[{"ip":"203.0.113.1"}]}]}`)
	s, _ := Review(input(t, clusters, serving), v1beta1.FailoverReviewSpec{Clusters: []string{"east-a"}})
	var got []string
	for _, r := range s.Records {
		got = append(got, fmt.Sprintf("%s %s %v→%v", strings.TrimSuffix(strings.TrimPrefix(r.Name, "web.default.fed.svc."), "example.test."), r.Type, r.Before, r.After))
	}
	want := []string{
		"a.east. A [192.0.2.1]→[]", "a.east. CNAME []→[web.default.fed.svc.east.example.test.]",
		"east. A [192.0.2.1]→[]", "east. CNAME []→[web.default.fed.svc.example.test.]",
		" A [192.0.2.1 203.0.113.1]→[203.0.113.1]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	none := input(t, clusters, serving)
	none.Info = nil
	if s, _ := Review(none, v1beta1.FailoverReviewSpec{Clusters: []string{"east-a"}}); s.Records != nil {
		t.Errorf("records of a federation whose zone is not known: %v", s.Records)
	}
}

func TestReviewedIsHeldByTheLimits(t *testing.T) {
	four := append(three(-1), member("west-b", "west/b", -1), member("north-a", "north/a", -1))
	for _, c := range []struct {
		lost     []string
		maxZones int
		want     string
	}{
		{[]string{"east-a"}, 1, ""},
		{[]string{"east-a", "east-b"}, 1, "as many zones are failed over as may be at once (1)"},
		{[]string{"east-a", "east-b"}, 2, ""},
		{[]string{"east-a"}, 0, "failover is turned off"},
		{[]string{"east-a", "east-b", "west-a"}, 9, "most clusters vanished"},
	} {
		in := input(t, four)
		in.Info.FailoverMaxZones = c.maxZones
		s, errs := Review(in, v1beta1.FailoverReviewSpec{Clusters: c.lost})
		if len(errs) > 0 || (c.want == "") != (s.SuspendedReason == "") || !strings.Contains(s.SuspendedReason, c.want) {
			t.Errorf("%v with at most %d zones: held %q, want %q", c.lost, c.maxZones, s.SuspendedReason, c.want)
		}
	}
}

func TestLostClusters(t *testing.T) {
	clusters := append(three(-1), member("wide", "west/a,b", -1))
	for _, c := range []struct {
		spec      v1beta1.FailoverReviewSpec
		want, err string
	}{
		{v1beta1.FailoverReviewSpec{Clusters: []string{"west-a", "east-a"}}, "east-a west-a", ""},
		{v1beta1.FailoverReviewSpec{Zones: []string{"a"}}, "east-a west-a", ""},
		{v1beta1.FailoverReviewSpec{Zones: []string{"west/a"}}, "west-a", ""},
		{v1beta1.FailoverReviewSpec{Zones: []string{"west/a", "b"}}, "east-b west-a wide", ""},
		{v1beta1.FailoverReviewSpec{Regions: []string{"west"}}, "west-a wide", ""},
		{v1beta1.FailoverReviewSpec{Regions: []string{"east"}, Clusters: []string{"west-a"}}, "east-a east-b west-a", ""},
		{v1beta1.FailoverReviewSpec{Clusters: []string{"nope"}}, "", `spec.clusters[0]: Invalid value: "nope": must be the name of a cluster`},
		{v1beta1.FailoverReviewSpec{Zones: []string{"east/z"}}, "", `spec.zones[0]: Invalid value: "east/z": must be REGION/ZONE`},
		{v1beta1.FailoverReviewSpec{Regions: []string{"east", "south"}}, "", `spec.regions[1]: Invalid value: "south"`},
	} {
		got, errs := Lost(clusters, c.spec)
		if c.err != "" {
			if !strings.Contains(fmt.Sprint(errs.ToAggregate()), c.err) {
				t.Errorf("%+v: error %v, want %q", c.spec, errs, c.err)
			}
			continue
		}
		if strings.Join(got, " ") != c.want || len(errs) > 0 {
			t.Errorf("%+v: %q %v, want %q", c.spec, got, errs, c.want)
		}
	}
}
