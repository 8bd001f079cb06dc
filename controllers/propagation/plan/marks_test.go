package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
)

// copyOf returns a copy that names a source; "": none.
func copyOf(t *testing.T, source string) *unstructured.Unstructured {
	u := parse(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, annotations: {team: shop}}")
	if source != "" {
		annotate(v1beta1.SourceAnnotation, source)(u)
	}
	return u
}

// A copy is of the object that it names, in any round of a Job; without a name it is of whatever has its name. Only a copy of the very same
// round has not outlived it.
func TestSourceOfACopy(t *testing.T) {
	first := parse(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: web, uid: u1}")
	second := first.DeepCopy()
	annotate(v1beta1.JobRoundAnnotation, `{"round":2,"succeeded":3}`)(second)
	broken := first.DeepCopy()
	annotate(v1beta1.JobRoundAnnotation, `{"round"`)(broken)
	for _, c := range []struct {
		federated         *unstructured.Unstructured
		source            string
		another, outlived bool
	}{
		{first, "", false, false}, {first, "u1", false, false}, {first, "u2", true, true}, {first, "u1/2", false, true},
		{second, "", false, false}, {second, "u1", false, true}, {second, "u1/2", false, false}, {second, "u1/3", false, true}, {second, "u2/2", true, true},
		{broken, "u1", false, false}, {parse(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: web}"), "u1", true, false},
	} {
		have := copyOf(t, c.source)
		if another, outlived := OfAnother(c.federated, have), Outlived(SourceOf(c.federated), have); another != c.another || outlived != c.outlived {
			t.Errorf("%s and a copy of %q: of another %t, outlived %t; want %t, %t", SourceOf(c.federated), c.source, another, outlived, c.another, c.outlived)
		}
		if uid, _, _ := strings.Cut(c.source, "/"); SourceUID(have) != types.UID(uid) {
			t.Errorf("a copy of %q is of the UID %q", c.source, SourceUID(have))
		}
	}
}

// An adopted copy has all but its source, and the one in the cache stays as it is.
func TestAdoptedLeavesTheCacheAlone(t *testing.T) {
	have, was := copyOf(t, "u1"), copyOf(t, "u1")
	if got := Adopted(have); !reflect.DeepEqual(got, copyOf(t, "")) || Outlived("u2", got) {
		t.Errorf("got %v", got.Object)
	}
	if !reflect.DeepEqual(have, was) {
		t.Errorf("the copy is now %v", have.Object)
	}
}

// Two versions of an object without a generation are the same if all but metadata and status is.
func TestSameSourceWithoutGeneration(t *testing.T) {
	was := parse(t, service)
	for change, same := range map[string]bool{"metadata: {resourceVersion: '9'}": true, "status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}": true,
		"spec: {type: ClusterIP}": false, "data: {a: b}": false} {
		is := parse(t, service)
		for key, value := range parse(t, "apiVersion: v1\nkind: Service\n"+change).Object {
			if meta, ok := value.(map[string]any); ok && key == "metadata" {
				maps.Copy(is.Object["metadata"].(map[string]any), meta)
			} else {
				is.Object[key] = value
			}
		}
		if got := SameSource(was, is); got != same {
			t.Errorf("with %s: same %t, want %t", change, got, same)
		}
	}
}

// A resource has the row of its kind in whatever version; names of objects are those of informers' stores.
func TestKindOfAndKeys(t *testing.T) {
	for resource, want := range map[string]string{"deployments.v1.apps": "Deployment", "deployments.v1beta9.apps": "Deployment",
		"deployments.v1.extensions": "", "services.v1.": "Service",
		"customresourcedefinitions.v1beta1.apiextensions.k8s.io": "CustomResourceDefinition", "pods.v1.": ""} {
		gvr, _ := schema.ParseResourceArg(resource)
		if gvr == nil {
			gvr = &schema.GroupVersionResource{Version: "v1", Resource: strings.TrimSuffix(resource, ".v1.")}
		}
		got := ""
		if k := KindOf(*gvr); k != nil {
			got = k.Kind
		}
		if got != want {
			t.Errorf("%s is %q, want %q", resource, got, want)
		}
	}
	for i := range Kinds {
		if KindOf(Kinds[i].Resource) != &Kinds[i] {
			t.Errorf("%s is not found by its resource", Kinds[i].Kind)
		}
		if notes := Kinds[i].Notes(); notes != (Kinds[i].Status == nil || slices.Contains([]string{"CronJob", "Ingress"}, Kinds[i].Kind)) {
			t.Errorf("%s notes what is wrong in an annotation: %t", Kinds[i].Kind, notes)
		}
	}
	for _, c := range []struct{ namespace, text, store string }{{"shop", "Service shop/web", "shop/web"}, {"", "Service /web", "web"}} {
		k := Key{kind(t, "Service"), types.NamespacedName{Namespace: c.namespace, Name: "web"}}
		if k.String() != c.text || k.StoreKey() != c.store {
			t.Errorf("got %q, %q, want %q, %q", k, k.StoreKey(), c.text, c.store)
		}
	}
	widget := CustomKind(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, "Widget")
	if !widget.Custom || !widget.ByPolicy || !widget.Notes() || widget.GroupKind() != (schema.GroupKind{Group: "example.com", Kind: "Widget"}) {
		t.Errorf("a custom kind: %+v", widget)
	}
}

// Whether a Cluster is ready, reached and heard of follows from its conditions as a person reads them.
func TestStateOfACluster(t *testing.T) {
	for _, c := range []struct {
		conditions             string
		ready, reached, silent bool
	}{
		{"", false, false, true},
		{"{type: Ready, status: 'True'}", true, true, false},
		{"{type: Ready, status: Unknown}", false, false, true},
		{"{type: Ready, status: 'True'}, {type: NodeHeartbeatsStale, status: 'True'}", true, true, true},
		{"{type: Ready, status: 'True'}, {type: NodeHeartbeatsStale, status: 'False'}", true, true, false},
		{"{type: Ready, status: 'False'}, {type: PartiallyReachable, status: 'True', reason: " + v1beta1.ReasonReachableByMajority + "}", false, true, true},
		{"{type: Ready, status: 'False'}, {type: PartiallyReachable, status: 'False', reason: " + v1beta1.ReasonReachableByMajority + "}", false, false, true},
		{"{type: Ready, status: 'False'}, {type: PartiallyReachable, status: 'True', reason: Other}", false, false, true},
	} {
		u := parse(t, "apiVersion: federation/v1beta1\nkind: Cluster\nstatus: {conditions: ["+c.conditions+"]}")
		if ready, reached, silent := IsReady(u), IsReached(u), IsSilent(u); ready != c.ready || reached != c.reached || silent != c.silent {
			t.Errorf("%s: ready %t, reached %t, silent %t; want %t, %t, %t", c.conditions, ready, reached, silent, c.ready, c.reached, c.silent)
		}
	}
}

// The condition Propagated has the worst of the reasons, names who is not as desired, and otherwise says where autoscalers own the number.
func TestPropagatedCondition(t *testing.T) {
	scaled := copyOf(t, "")
	annotate(v1beta1.ScaledByAnnotation, "kube-controller-manager")(scaled)
	ours := copyOf(t, "")
	annotate(AutoscaledAnnotation, "yes")(ours)
	for _, c := range []struct {
		unschedulable int
		copies        []Copy
		want          string
	}{
		{0, nil, "True AllClusters 0 clusters are as desired"},
		{0, []Copy{{Cluster: "a", State: Synced, Object: copyOf(t, "")}, {Cluster: "b", State: Synced}}, "True AllClusters 2 clusters are as desired"},
		{0, []Copy{{Cluster: "a", State: Synced, Object: scaled}, {Cluster: "b", State: Synced, Object: ours}, {Cluster: "c", State: Synced, Object: copyOf(t, "")}},
			"True AllClusters 3 clusters are as desired; autoscalers own the number of replicas in a, b: spec.replicas is not asked for there"},
		{0, []Copy{{Cluster: "a", State: Pending, Message: "m"}, {Cluster: "b", State: Synced}}, "False Pending a: m"},
		{0, []Copy{{Cluster: "a", State: Pending, Message: "m"}, {Cluster: "b", State: Rejected, Message: "n"}, {Cluster: "c", State: Unreachable,
			Message: "o"}}, "False Rejected a: m; b: n; c: o"},
		{3, []Copy{{Cluster: "a", State: Synced}}, "False InsufficientCapacity 3 replicas fit in no cluster"},
		{3, []Copy{{Cluster: "a", State: Conflict, Message: "m"}}, "False Conflict a: m; 3 replicas fit in no cluster"},
		{3, []Copy{{Cluster: "a", State: Unreachable, Message: "m"}}, "False InsufficientCapacity a: m; 3 replicas fit in no cluster"},
	} {
		federated := parse(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}")
		annotate(v1beta1.PlacementAnnotation, fmt.Sprintf(`{"clusters":{"a":1},"unschedulable":%d}`, c.unschedulable))(federated)
		is := propagatedCondition(federated, c.copies)
		if got := fmt.Sprint(is["status"], " ", is["reason"], " ", is["message"]); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// The worse of two reasons is so in whatever order they come, and of three in whatever grouping.
func TestWorseReasonIsAnOrder(t *testing.T) {
	all := []string{string(Rejected), string(Conflict), string(AddressRejected), "InsufficientCapacity", string(Unreachable), string(Progressing),
		string(Pending), ""}
	for i, a := range all {
		for j, b := range all {
			if got := worseReason(a, b); got != all[min(i, j)] {
				t.Errorf("of %q and %q %q is worse", a, b, got)
			}
		}
	}
}

// What a condition says beside its status stays what others noted: its generation, and others' conditions.
func TestMergeConditionsKeepsWhatOthersNoted(t *testing.T) {
	federated := parse(t, `{apiVersion: apps/v1, kind: ReplicaSet, status: {conditions: [{type: Theirs, status: "True"}, {type: Reconciling, status: "True"},
		{type: Ours, status: "True", observedGeneration: 7, lastTransitionTime: then, message: old}]}}`)
	got := kind(t, "ReplicaSet").mergeConditions(federated, []any{newCondition("Ours", true, "Yes", "No", ""), newCondition("New", false, "Yes", "No",
		"why")}, "now")
	want := []any{map[string]any{"type": "Theirs", "status": "True"},
		map[string]any{"type": "Ours", "status": "True", "reason": "Yes", "observedGeneration": int64(7), "lastTransitionTime": "then"},
		map[string]any{"type": "New", "status": "False", "reason": "No", "message": "why", "lastTransitionTime": "now"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// The records that expire are found one by one: those that nothing needs any more, and the oldest of what is too much of each fate. Others' are left alone.
func TestExpiredOneByOne(t *testing.T) {
	chance := rand.New(rand.NewPCG(81, 1))
	for range 30 {
		records, away := map[string]string{}, chance.IntN(2) == 0
		byFate := map[Fate][]string{}
		at := map[string]int{}
		var want []string
		for i := range chance.IntN(1600) {
			key, fate, days := fmt.Sprintf("%04d", i), []Fate{Deleted, Orphaned, Orphaned}[chance.IntN(3)], chance.IntN(45)
			switch records[key] = (Deletion{fate, monday.Add(-time.Duration(days) * 24 * time.Hour), "ConfigMap shop/web"}).String(); {
			case chance.IntN(50) == 0:
				records[key] = "2026-11-23T08:00:00Z Lost x"
			case !away && (fate == Deleted || days > 30):
				want = append(want, key)
			default:
				byFate[fate], at[key] = append(byFate[fate], key), days
			}
		}
		for fate, keys := range byFate {
			for len(keys) > map[Fate]int{Deleted: 300, Orphaned: 1000}[fate] {
				oldest := 0
				for i, key := range keys { // keys are in order of their names
					if at[key] > at[keys[oldest]] {
						oldest = i
					}
				}
				want, keys = append(want, keys[oldest]), slices.Delete(keys, oldest, oldest+1)
			}
		}
		slices.Sort(want)
		if got := Expired(records, away, monday); !slices.Equal(got, want) {
			t.Fatalf("%d records, away %t: %d expire, want %d", len(records), away, len(got), len(want))
		}
	}
}

// A copy that is deleted again and again is made at most as often as the pauses allow, and a pause is never longer than five minutes.
func TestRemovalsBoundWrites(t *testing.T) {
	chance := rand.New(rand.NewPCG(82, 1))
	var r Removals
	now := time.Unix(1000, 0)
	inARow := 0
	for range 2000 {
		lasted := time.Duration(chance.IntN(400)) * time.Second // until it is deleted, from its creation on
		now = now.Add(max(0, r.Left(now)) + lasted)
		if lasted > lastedLongAgain {
			inARow = 0
		}
		inARow++
		r.Add(now)
		want := time.Duration(0)
		if inARow > 3 {
			want = min(5*time.Second<<min(inARow-4, 10), 5*time.Minute)
		}
		if got := r.Left(now); got != want || !strings.HasPrefix(r.Reason(), fmt.Sprintf("somebody else deleted it %d times in a row: ", inARow)) {
			t.Fatalf("deleted %d times in a row: waits for %s, want %s; %s", inARow, got, want, r.Reason())
		}
	}
}

// What pods need leaves where it should not be any more, and only that: not what is deleted, or an earlier object's, or of a kind that pods do not need.
func TestLeavesIsForWhatPodsNeed(t *testing.T) {
	placed := func(kind, clusters string) string {
		about := "{name: web, namespace: shop, uid: u1, annotations: {federation.kubernetes.io/placement: '{\"clusters\":{\"" + clusters + "\":1}}'}}"
		return "apiVersion: v1\nkind: " + kind + "\nmetadata: " + about
	}
	deleted := parse(t, placed("ConfigMap", "west-a"))
	deleting(v1beta1.DeleteFromClustersFinalizer)(deleted)
	for name, c := range map[string]struct {
		s    Source
		have *unstructured.Unstructured
		want bool
	}{
		"it is placed elsewhere":        {source(kind(t, "ConfigMap"), parse(t, placed("ConfigMap", "west-a"))), copyOf(t, "u1"), true},
		"it is placed there":            {source(kind(t, "ConfigMap"), parse(t, placed("ConfigMap", "east-a"))), copyOf(t, "u1"), false},
		"there is no copy":              {source(kind(t, "ConfigMap"), parse(t, placed("ConfigMap", "west-a"))), nil, false},
		"an earlier object's copy":      {source(kind(t, "ConfigMap"), parse(t, placed("ConfigMap", "west-a"))), copyOf(t, "u0"), false},
		"it is being deleted":           {source(kind(t, "ConfigMap"), deleted), copyOf(t, "u1"), false},
		"it is deleted":                 {source(kind(t, "ConfigMap"), nil), copyOf(t, "u1"), false},
		"a kind that pods do not need":  {source(kind(t, "CronJob"), parse(t, placed("CronJob", "west-a"))), copyOf(t, "u1"), false},
		"a Service, which they do need": {source(kind(t, "Service"), parse(t, placed("Service", "west-a"))), copyOf(t, "u1"), true},
	} {
		if got := c.s.Leaves(Target{Cluster: east.Cluster, Have: c.have}); got != c.want {
			t.Errorf("%s: leaves %t, want %t", name, got, c.want)
		}
	}
	for _, ready := range []bool{false, true} {
		for address, serves := range map[string]bool{"": false, "192.0.2.1": true} {
			c := Copy{Object: parse(t, strings.Replace(lbs(address), "{ip: ''}, ", "", 1)), ReadyEndpoints: ready}
			if got := c.Serves(kind(t, "Service")); got != (serves && ready) || c.Serves(kind(t, "Ingress")) != serves {
				t.Errorf("address %q, endpoints ready %t: a Service serves %t, an Ingress %t", address, ready, got, c.Serves(kind(t, "Ingress")))
			}
		}
	}
}
