package plan

import (
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"federation/apiserver/apis/federation/v1beta1"
)

func op(verb, path, value string) v1beta1.JSONPatchOperation {
	o := v1beta1.JSONPatchOperation{Op: verb, Path: path}
	if value != "" {
		o.Value = &apiextensionsv1.JSON{Raw: []byte(value)}
	}
	return o
}

func governed(s Source, overrides ...v1beta1.Override) Source {
	s.Policy = &v1beta1.PlacementPolicy{Spec: v1beta1.PlacementPolicySpec{Overrides: overrides}}
	s.Policy.Name = "shop"
	return s
}

func TestOverrides(t *testing.T) {
	const image = "/spec/template/spec/containers/0/image"
	here, elsewhere := &v1beta1.ClusterAffinity{Names: []string{"east-a"}}, &v1beta1.ClusterAffinity{Names: []string{"west-a"}}
	for _, c := range []struct {
		name      string
		overrides []v1beta1.Override
		image     string
		refusal   string
	}{
		{"for this cluster", []v1beta1.Override{{Clusters: here, JSONPatch: []v1beta1.JSONPatchOperation{op("replace", image, `"mirror/web:1"`)}}}, "mirror/web:1", ""},
		{"for another", []v1beta1.Override{{Clusters: elsewhere, JSONPatch: []v1beta1.JSONPatchOperation{op("replace", image, `"mirror/web:1"`)}}}, "web:1", ""},
		{"for all, in order", []v1beta1.Override{
			{JSONPatch: []v1beta1.JSONPatchOperation{op("replace", image, `"a"`), op("test", image, `"a"`)}},
			{Clusters: here, JSONPatch: []v1beta1.JSONPatchOperation{op("replace", image, `"b"`)}},
		}, "b", ""},
		{"one that does not apply", []v1beta1.Override{
			{Clusters: elsewhere, JSONPatch: []v1beta1.JSONPatchOperation{op("remove", "/spec/nothing", "")}},
			{Clusters: here, JSONPatch: []v1beta1.JSONPatchOperation{op("add", "/metadata/labels/a", `"b"`), op("remove", "/spec/nothing", "")}},
		}, "", "policy shop: spec.overrides[1].jsonPatch[1]: remove /spec/nothing: "},
		{"the number is the placement's", []v1beta1.Override{{JSONPatch: []v1beta1.JSONPatchOperation{op("replace", "/spec/replicas", `7`)}}}, "", "/spec/replicas may not be overridden"},
		{"the kind", []v1beta1.Override{{JSONPatch: []v1beta1.JSONPatchOperation{op("replace", "/kind", `"Pod"`)}}}, "", "/kind may not be overridden"},
		{"the name", []v1beta1.Override{{JSONPatch: []v1beta1.JSONPatchOperation{op("replace", "/metadata/name", `"x"`)}}}, "", "only labels and annotations"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Desire(governed(source(kind(t, "ReplicaSet"), parse(t, web)), c.overrides...), east)
			if c.refusal != "" {
				if d.Presence != Undecided || !strings.Contains(d.Refusal, c.refusal) || d.Object != nil {
					t.Errorf("presence %d, refusal %q, want %q", d.Presence, d.Refusal, c.refusal)
				}
				return
			}
			containers, _, _ := unstructured.NestedSlice(d.Object.Object, "spec", "template", "spec", "containers")
			if got := containers[0].(map[string]any)["image"]; got != c.image || d.Refusal != "" {
				t.Errorf("image %v, want %s; refusal %q", got, c.image, d.Refusal)
			}
			if n, _, _ := unstructured.NestedInt64(d.Object.Object, "spec", "replicas"); n != 20 {
				t.Errorf("%d replicas", n)
			}
		})
	}
}

// An operation applies only as RFC 6902 allows.
func TestOperationsOfAnOverride(t *testing.T) {
	const doc = `{"a": {"b": 1, "null": null, "x/y~z": 2}, "list": [1, 2]}`
	for _, c := range []struct {
		op, path, from, value string
		want, refusal         string
	}{
		{"add", "/a/c", "", `3`, `{"a":{"b":1,"c":3,"null":null,"x/y~z":2},"list":[1,2]}`, ""},
		{"add", "/list/-", "", `3`, `{"a":{"b":1,"null":null,"x/y~z":2},"list":[1,2,3]}`, ""},
		{"add", "/list/2", "", `3`, `{"a":{"b":1,"null":null,"x/y~z":2},"list":[1,2,3]}`, ""},
		{"add", "/list/3", "", `3`, "", "there is nothing"},
		{"add", "/list/-1", "", `3`, "", `index "-1": must be`},
		{"add", "/list/01", "", `3`, "", `index "01": must be`},
		{"add", "/none/c", "", `3`, "", "there is nothing"},
		{"replace", "/a/b", "", `3`, `{"a":{"b":3,"null":null,"x/y~z":2},"list":[1,2]}`, ""},
		{"replace", "/a/x~1y~0z", "", `3`, `{"a":{"b":1,"null":null,"x/y~z":3},"list":[1,2]}`, ""},
		{"replace", "/a/none", "", `3`, "", "there is nothing"},
		{"replace", "/list/2", "", `3`, "", "there is nothing"},
		{"replace", "/list/-1", "", `3`, "", "must be"},
		{"remove", "/a/b", "", "", `{"a":{"null":null,"x/y~z":2},"list":[1,2]}`, ""},
		{"remove", "/a/none", "", "", "", "there is nothing"},
		{"remove", "/a/b/c", "", "", "", "there is nothing"},
		{"remove", "/list/-1", "", "", "", "must be"},
		{"test", "/a/b", "", `1`, `{"a":{"b":1,"null":null,"x/y~z":2},"list":[1,2]}`, ""},
		{"test", "/a/b", "", `2`, "", "another value"},
		{"test", "/a/null", "", `null`, `{"a":{"b":1,"null":null,"x/y~z":2},"list":[1,2]}`, ""},
		{"test", "/a/none", "", `null`, "", "there is nothing"},
		{"copy", "/a/c", "/a/b", "", `{"a":{"b":1,"c":1,"null":null,"x/y~z":2},"list":[1,2]}`, ""},
		{"copy", "/a/c", "/a/none", "", "", "there is nothing"},
		{"move", "/a/c", "/a/b", "", `{"a":{"c":1,"null":null,"x/y~z":2},"list":[1,2]}`, ""},
		{"move", "/a/c", "/a/none", "", "", "there is nothing"},
		{"move", "/a/b/c", "/a/b", "", "", "nothing"},
	} {
		t.Run(c.op+" "+c.path+" "+c.from+" "+c.value, func(t *testing.T) {
			o := op(c.op, c.path, c.value)
			o.From = c.from
			var root any
			if err := json.Unmarshal([]byte(doc), &root); err != nil {
				t.Fatal(err)
			}
			p := newPatch(root)
			err := p.apply(o)
			got := JSON(p.root)
			if c.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), c.refusal) {
					t.Errorf("%s, error %v, want %q", got, err, c.refusal)
				}
				return
			}
			if err != nil || string(got) != c.want {
				t.Errorf("%s, error %v", got, err)
			}
		})
	}
}

// Overrides cannot remove our own labels: without them, the copy would not be found again.
func TestOverridesLeaveOurMarks(t *testing.T) {
	d := Desire(governed(source(kind(t, "ReplicaSet"), parse(t, web)), v1beta1.Override{JSONPatch: []v1beta1.JSONPatchOperation{op("replace", "/metadata/labels", `{}`)}}), east)
	if d.Object.GetLabels()[v1beta1.ManagedByLabel] != "uid-1" {
		t.Errorf("labels %v", d.Object.GetLabels())
	}
}

func TestPlacementOfWhatIsNotDivided(t *testing.T) {
	for value, want := range map[string]Presence{
		"":                          Present,
		v1beta1.PlacementPending:    Undecided,
		`{`:                         Undecided,
		`{"clusters":{"east-a":1}}`: Present,
		`{"clusters":{"west-a":1}}`: Absent,
		`{"clusters":{"east-a":0}}`: Absent,
		`{"clusters":{"east-a":1},"policy":"not-seen-yet"}`: Undecided,
	} {
		u := parse(t, service)
		if value != "" {
			annotate(v1beta1.PlacementAnnotation, value)(u)
		}
		if d := Desire(source(kind(t, "Service"), u), east); d.Presence != want {
			t.Errorf("%q: presence %d (%s), want %d", value, d.Presence, d.Reason, want)
		}
	}
}

func TestAutoscalersOwnTheNumber(t *testing.T) {
	k := kind(t, "Deployment")
	deployment := strings.ReplaceAll(web, "ReplicaSet", "Deployment")
	for _, c := range []struct {
		name      string
		placement string
		scaledBy  string
		scaled    bool
		was       bool  // an autoscaler of the federation has scaled it
		has, want int64 // want −1: the number is not sent
	}{
		{"no autoscaler", `{"clusters":{"east-a":20}}`, "", false, false, 33, 20},
		{"the member's owns it", `{"clusters":{"east-a":20}}`, "kube-controller-manager", false, false, 33, -1},
		{"the federation's, which is there", `{"clusters":{"east-a":20}}`, "kube-controller-manager", true, true, 33, -1},
		{"the federation's, which is gone", `{"clusters":{"east-a":20}}`, "kube-controller-manager", false, true, 33, 20},
		{"the federation's has not taken it up there", `{"clusters":{"east-a":20}}`, "", true, false, 33, 33},
		{"none are there yet: the placement says how many", `{"clusters":{"east-a":20}}`, "kube-controller-manager", true, false, 0, 20},
		{"none are to be there", `{"clusters":{"west-a":20}}`, "kube-controller-manager", true, false, 33, 0},
	} {
		u := parse(t, deployment)
		annotate(v1beta1.PlacementAnnotation, c.placement)(u)
		s, target := source(k, u), east
		target.Have, target.Scaled = parse(t, deployment), c.scaled
		_ = unstructured.SetNestedField(target.Have.Object, c.has, "spec", "replicas")
		if c.scaledBy != "" {
			annotate(v1beta1.ScaledByAnnotation, c.scaledBy)(target.Have)
		}
		if c.was {
			annotate(AutoscaledAnnotation, "true")(target.Have)
		}
		desired := Desire(s, target).Object
		if marked := desired.GetAnnotations()[AutoscaledAnnotation] != ""; marked != (c.scaled || c.was) {
			t.Errorf("%s: marked as autoscaled: %t", c.name, marked)
		}
		got, sent, _ := unstructured.NestedInt64(desired.Object, "spec", "replicas")
		if !sent {
			got = -1
		}
		if got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func autoscaler(t *testing.T, annotations ...string) Source {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	for i := 0; i < len(annotations); i += 2 {
		annotate(annotations[i], annotations[i+1])(u)
	}
	return source(kind(t, "HorizontalPodAutoscaler"), u)
}

// TestAutoscalersComeWhereTheyGo checks that in other clusters the placement decides the number.
func TestAutoscalersComeWhereTheyGo(t *testing.T) {
	silver, gold := `[{"key":"tier","operator":"In","values":["silver"]}]`, `[{"key":"tier","operator":"In","values":["gold"]}]`
	leaving := autoscaler(t, v1beta1.ClusterSelectorAnnotation, silver)
	leaving.Object.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	for name, c := range map[string]struct {
		autoscaler Source
		want       bool
	}{
		"goes there by its selector":      {autoscaler(t, v1beta1.ClusterSelectorAnnotation, gold), true},
		"goes elsewhere by its selector":  {autoscaler(t, v1beta1.ClusterSelectorAnnotation, silver), false},
		"goes there by its placement":     {autoscaler(t, v1beta1.PlacementAnnotation, `{"clusters":{"east-a":1}}`), true},
		"goes elsewhere by its placement": {autoscaler(t, v1beta1.PlacementAnnotation, `{"clusters":{"west-a":1}}`), false},
		"may have left others not yet":    {leaving, true},
	} {
		if got := c.autoscaler.Comes(east); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func TestMayUpdate(t *testing.T) {
	done := func(name string) Turn {
		return Turn{Cluster: name, Reachable: true, Holds: true, Updated: true, Healthy: true}
	}
	old := func(name string) Turn { return Turn{Cluster: name, Reachable: true, Holds: true, Healthy: true} }
	under := func(name string) Turn { return Turn{Cluster: name, Reachable: true, Holds: true, Updated: true} }
	dead := func(name string) Turn { return Turn{Cluster: name, Holds: true} }
	oneByOne := v1beta1.RolloutPolicy{Strategy: v1beta1.RolloutOneClusterAtATime}
	ordered, paused := oneByOne, oneByOne
	ordered.Order, paused.Paused = []string{"c", "nobody", "b"}, true
	for _, c := range []struct {
		name   string
		turns  []Turn
		who    string
		policy v1beta1.RolloutPolicy
		waits  string
	}{
		{"all at once", []Turn{old("a"), old("b")}, "b", v1beta1.RolloutPolicy{}, ""},
		{"the first", []Turn{old("a"), old("b")}, "a", oneByOne, ""},
		{"the second waits for the first", []Turn{old("b"), old("a")}, "b", oneByOne, "after a"},
		{"until it is healthy", []Turn{under("a"), old("b")}, "b", oneByOne, "a is not healthy"},
		{"and then goes", []Turn{done("a"), old("b")}, "b", oneByOne, ""},
		{"a dead cluster is passed over", []Turn{dead("a"), old("b")}, "b", oneByOne, ""},
		{"but when it is back it waits for who is under way", []Turn{old("a"), under("b")}, "a", oneByOne, "b is not healthy"},
		{"one without a copy is passed over", []Turn{{Cluster: "a", Reachable: true}, old("b")}, "b", oneByOne, ""},
		{"in the policy's order", []Turn{old("a"), old("b"), old("c")}, "a", ordered, "after c"},
		{"names that are not in it come last", []Turn{old("a"), done("b"), done("c")}, "a", ordered, ""},
		{"paused", []Turn{old("a")}, "a", paused, "paused"},
	} {
		may, why := MayUpdate(c.turns, c.who, &c.policy)
		if may != (c.waits == "") || !strings.Contains(why, c.waits) {
			t.Errorf("%s: %v %q, want %q", c.name, may, why, c.waits)
		}
	}
}

// A copy that waits for its turn keeps its pod template. Its number still changes, and without a change it is not
// written.
func TestACopyKeepsItsTemplateUntilItsTurn(t *testing.T) {
	k := kind(t, "Deployment")
	before := source(k, parse(t, strings.ReplaceAll(web, "ReplicaSet", "Deployment")))
	have := asApplied(Desire(before, east))
	after := source(k, parse(t, strings.ReplaceAll(strings.ReplaceAll(web, "ReplicaSet", "Deployment"), "web:1", "web:2")))
	after.Policy = &v1beta1.PlacementPolicy{Spec: v1beta1.PlacementPolicySpec{Rollout: &v1beta1.RolloutPolicy{Strategy: v1beta1.RolloutOneClusterAtATime}}}
	target := east
	target.Have = have
	if d := Desire(after, target); Updated(d, have) || Operate(d, have, "") != Update {
		t.Fatal("the change goes unnoticed")
	}
	target.Template, _, _ = unstructured.NestedMap(have.Object, "spec", "template")
	if d := Desire(after, target); !d.Kept || Operate(d, have, "") != Nothing {
		t.Errorf("kept %v, operation %q", d.Kept, Operate(d, have, ""))
	}
	after.Placement.Clusters["east-a"] = 25
	d := Desire(after, target)
	if Operate(d, have, "") != Update || !strings.Contains(asJSON(d.Object), `"replicas":25`) || !strings.Contains(asJSON(d.Object), "web:1") {
		t.Errorf("%s", asJSON(d.Object))
	}
	target.Template = nil
	d = Desire(after, target)
	if have := asApplied(d); !Updated(d, have) || Operate(d, have, "") != Nothing {
		t.Error("with the new template the copy is not taken for updated")
	}
}

func TestCompletionsAreWhatIsLeft(t *testing.T) {
	k := kind(t, "Job")
	job := func(placement string) Source {
		return source(k, parse(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: sums, annotations: {`+v1beta1.PlacementAnnotation+`: '`+placement+`'}}, spec: {parallelism: 6, completions: 10}}`))
	}
	copyOf := func(completions, succeeded int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"completions": completions}, "status": map[string]any{"succeeded": succeeded}}}
	}
	for _, c := range []struct {
		name, placement string
		siblings        map[string]*unstructured.Unstructured
		want            int64
	}{
		{"in proportion", `{"clusters":{"east-a":2,"east-b":2,"west-a":2}}`, nil, 4},
		{"whoever is first", `{"clusters":{"east-a":2,"east-b":2,"west-a":2}}`, map[string]*unstructured.Unstructured{"east-b": copyOf(3, 0), "west-a": copyOf(3, 0)}, 4},
		{"what a lost cluster had", `{"clusters":{"east-a":3,"west-a":3}}`, map[string]*unstructured.Unstructured{"west-a": copyOf(3, 1)}, 7},
		{"less what was done where no more is", `{"clusters":{"east-a":3,"west-a":3}}`, map[string]*unstructured.Unstructured{"west-a": copyOf(3, 1), "east-b": copyOf(4, 2)}, 5},
	} {
		target := east
		target.Siblings = c.siblings
		if got, _, _ := unstructured.NestedInt64(Desire(job(c.placement), target).Object.Object, "spec", "completions"); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// Unknown fields and defaults of a newer member are never overwritten.
func TestFieldsOfANewerMemberStay(t *testing.T) {
	for i := range Kinds {
		k := &Kinds[i]
		_, _, parts := sections(t, "testdata/rows/"+strings.ToLower(k.Kind)+".txt")
		d := Desire(source(k, parse(t, parts["federated"])), east)
		have := asApplied(d)
		_ = unstructured.SetNestedField(have.Object, "new", "spec", "fromTheFuture")
		_ = unstructured.SetNestedField(have.Object, map[string]any{"a": []any{"b"}}, "alsoNew")
		if verb := Operate(d, have, ""); verb != Nothing || Settle(d, have) != "" {
			t.Errorf("%s: operation %q", k.Kind, verb)
		}
	}
}

// Completions that are missing when all copies are complete are divided again among all that have a share; of the
// earlier round only its results count.
func TestWhatAJobLacksIsAnotherRound(t *testing.T) {
	k := kind(t, "Job")
	job := func(annotations, spec string) *unstructured.Unstructured {
		return parse(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: sums, uid: u1, resourceVersion: "7", annotations: {`+v1beta1.PlacementAnnotation+`: '{"clusters":{"east-a":2,"west-a":1}}'`+annotations+`}}, spec: {parallelism: 3`+spec+`}}`)
	}
	const second = `, federation.kubernetes.io/job-round: '{"round":2,"succeeded":20,"failed":1}'`
	copyOf := func(cluster, source, status string) Copy {
		return Copy{Cluster: cluster, State: Synced, Object: parse(t, `{apiVersion: batch/v1, kind: Job, metadata: {annotations: {`+v1beta1.SourceAnnotation+`: `+source+`}}, status: {startTime: "2026-01-01T00:00:00Z", `+status+`}}`)}
	}
	const complete = `conditions: [{type: Complete, status: "True"}]`
	for _, c := range []struct {
		name, annotations, spec string
		copies                  []Copy
		round                   any
		succeeded               int64
		end                     bool
	}{
		{"missing", "", ", completions: 30", []Copy{copyOf("east-a", "u1", "succeeded: 12, failed: 1, "+complete), copyOf("west-a", "u1", "succeeded: 8, "+complete)}, `{"round":2,"succeeded":20,"failed":1}`, 20, false},
		{"a drained cluster has done the rest", "", ", completions: 30", []Copy{copyOf("east-a", "u1", "succeeded: 12, "+complete), copyOf("east-b", "u1", "succeeded: 10"), copyOf("west-a", "u1", "succeeded: 8, "+complete)}, nil, 30, true},
		{"a part of it still runs", "", ", completions: 30", []Copy{copyOf("east-a", "u1", "succeeded: 12, "+complete), copyOf("east-b", "u1", "active: 1"), copyOf("west-a", "u1", "succeeded: 8, "+complete)}, nil, 20, false},
		{"one goes on", "", ", completions: 30", []Copy{copyOf("east-a", "u1", "succeeded: 12, "+complete), copyOf("west-a", "u1", "succeeded: 7")}, nil, 19, false},
		{"copies of the round before", second, ", completions: 30", []Copy{copyOf("east-a", "u1", "succeeded: 12, "+complete), copyOf("west-a", "u1/2", "succeeded: 3, "+complete)}, nil, 23, false},
		{"the second round is through", second, ", completions: 30", []Copy{copyOf("east-a", "u1/2", "succeeded: 7, "+complete), copyOf("west-a", "u1/2", "succeeded: 3, "+complete)}, nil, 30, true},
		{"a cluster was lost in the second round too", second, ", completions: 30", []Copy{copyOf("east-a", "u1/2", "succeeded: 6, failed: 2, "+complete), copyOf("west-a", "u1/2", "succeeded: 3, "+complete)}, `{"round":3,"succeeded":29,"failed":3}`, 29, false},
		{"no number of completions", "", "", []Copy{copyOf("east-a", "u1", "succeeded: 1, "+complete), copyOf("west-a", "u1", "succeeded: 1, "+complete)}, nil, 2, true},
		{"a success policy", "", ", completions: 30, successPolicy: {rules: [{succeededCount: 1}]}", []Copy{copyOf("east-a", "u1", "succeeded: 1, "+complete), copyOf("west-a", "u1", "succeeded: 1, "+complete)}, nil, 2, true},
		{"failed", "", ", completions: 30", []Copy{copyOf("east-a", "u1", "succeeded: 12, "+complete), copyOf("west-a", "u1", `conditions: [{type: Failed, status: "True"}]`)}, nil, 12, true},
	} {
		federated := job(c.annotations, c.spec)
		s := Summarize(k, federated, c.copies, "2026-01-03T00:00:00Z")
		federated.Object["status"] = s.Status
		if got := s.Annotations[v1beta1.JobRoundAnnotation]; got != c.round || statusOf(federated, "succeeded") != c.succeeded || (v1beta1.JobEnd(federated) != "") != c.end {
			t.Errorf("%s: round %v, %v", c.name, got, s.Status)
		}
		if of, _, _ := unstructured.NestedString(Summarize(k, federated, c.copies, "2026-01-03T00:00:00Z").Patch(), "metadata", "resourceVersion"); c.round != nil && of != "7" {
			t.Errorf("%s: the round is written to version %q, want 7, which it was decided from: another process may have begun a later one", c.name, of)
		}
	}
	target := east
	target.Siblings = map[string]*unstructured.Unstructured{"west-a": copyOf("west-a", "u1", "succeeded: 8, "+complete).Object}
	target.Have = copyOf("east-a", "u1", "succeeded: 12, "+complete).Object
	s := source(k, job(second, ", completions: 30"))
	if d := Desire(s, target); Operate(d, target.Have, "") != Delete {
		t.Error("the copy of the first round stays in the second")
	}
	target.Have = nil
	d := Desire(s, target)
	if got, _, _ := unstructured.NestedInt64(d.Object.Object, "spec", "completions"); got != 7 || d.Object.GetAnnotations()[v1beta1.SourceAnnotation] != "u1/2" {
		t.Errorf("%d completions of source %s, want 7 of the 10 that are left", got, d.Object.GetAnnotations()[v1beta1.SourceAnnotation])
	}
}
