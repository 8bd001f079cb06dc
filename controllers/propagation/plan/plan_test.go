package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return u
}

func kind(t *testing.T, name string) *Kind {
	t.Helper()
	for i := range Kinds {
		if Kinds[i].Kind == name {
			return &Kinds[i]
		}
	}
	t.Fatalf("no row for %s", name)
	return nil
}

var east = Target{Cluster: cluster("east-a", map[string]string{"tier": "gold"}), Federation: "uid-1"}

func cluster(name string, labels map[string]string) *v1beta1.Cluster {
	c := &v1beta1.Cluster{}
	c.Name, c.Labels = name, labels
	return c
}

// source returns an object with the placement in its annotation, and no policy.
func source(k *Kind, federated *unstructured.Unstructured) Source {
	s := Source{Kind: k, Object: federated}
	if federated != nil {
		s.Placement = Read(federated)
	}
	return s
}

const web = `
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web
  namespace: default
  uid: u1
  resourceVersion: "7"
  generation: 3
  creationTimestamp: "2026-01-01T00:00:00Z"
  finalizers: [federation.kubernetes.io/delete-from-underlying-clusters, orphan]
  labels: {app: web}
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    federation.kubernetes.io/replica-set-preferences: "{}"
    federation.kubernetes.io/placement: '{"clusters":{"east-a":20,"west-a":10}}'
    team: shop
spec:
  replicas: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {creationTimestamp: null, labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
status: {replicas: 1}
`

const service = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default, uid: u2}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, protocol: TCP, targetPort: 8080}]}
`

func TestDesireSendsWhatSpeaksOfTheCopy(t *testing.T) {
	d := Desire(source(kind(t, "ReplicaSet"), parse(t, web)), east)
	want := parse(t, `
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web
  namespace: default
  labels: {app: web, federation.kubernetes.io/managed-by: uid-1, federation.kubernetes.io/shard: "`+strconv.Itoa(v1beta1.Shard("default", "web"))+`"}
  annotations: {team: shop, federation.kubernetes.io/applied-hash: `+d.Hash+`, federation.kubernetes.io/copy-of: ReplicaSet.apps/default/web, federation.kubernetes.io/source-uid: u1}
spec:
  replicas: 20
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
`)
	if d.Presence != Present || !reflect.DeepEqual(asJSON(d.Object), asJSON(want)) {
		t.Errorf("presence %d\ngot  %s\nwant %s", d.Presence, asJSON(d.Object), asJSON(want))
	}
}

func asJSON(v any) string { b, _ := json.Marshal(v); return string(b) }

const finishedJob = `{apiVersion: batch/v1, kind: Job, metadata: {name: once, annotations: {federation.kubernetes.io/placement: '{"clusters":{"east-a":2}}'}},
  spec: {parallelism: 2}, status: {conditions: [{type: Complete, status: "True"}]}}`

func TestPresence(t *testing.T) {
	for _, c := range []struct {
		name, kind, object string
		change             func(*unstructured.Unstructured)
		want               Presence
	}{
		{"placed", "ReplicaSet", web, nil, Present},
		{"no replicas fall to it", "ReplicaSet", web, annotate(v1beta1.PlacementAnnotation, `{"clusters":{"west-a":30}}`), IfThere},
		{"it is a Job that is finished", "Job", finishedJob, nil, IfThere},
		{"not placed yet", "ReplicaSet", web, annotate(v1beta1.PlacementAnnotation, ``), Undecided},
		{"selected", "Service", service, annotate(v1beta1.ClusterSelectorAnnotation, `[{"key":"tier","operator":"In","values":["gold"]}]`), Present},
		{"not selected", "Service", service, annotate(v1beta1.ClusterSelectorAnnotation, `[{"key":"tier","operator":"NotIn","values":["gold"]}]`), Absent},
		{"a selector that cannot be read selects nothing", "Service", service, annotate(v1beta1.ClusterSelectorAnnotation, `{`), Absent},
		{"being deleted", "Service", service, deleting(), Absent},
		{"being orphaned", "Service", service, deleting(v1beta1.OrphanMarkFinalizer), Released},
		{"being orphaned, and our mark is off already", "Service", service, deleting(v1beta1.OrphanFinalizer), Released},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := parse(t, c.object)
			if c.change != nil {
				c.change(u)
			}
			if got := Desire(source(kind(t, c.kind), u), east); got.Presence != c.want || got.Reason == "" {
				t.Errorf("presence %d (%s), want %d", got.Presence, got.Reason, c.want)
			}
		})
	}
}

// A namespace gets no new objects in a cluster that is not for it, and not the namespace itself either.
func TestTargetIsForNamespaces(t *testing.T) {
	everywhere := annotate(v1beta1.PlacementAnnotation, `{"everywhere":true}`)
	chosen := annotate(v1beta1.ClusterSelectorAnnotation, `[{"key":"tier","operator":"In","values":["gold"]}]`)
	namespace := `{apiVersion: v1, kind: Namespace, metadata: {name: default}}`
	for name, c := range map[string]struct {
		kind, object string
		change       func(*unstructured.Unstructured)
		not          Presence // where it may not be
	}{
		"placed": {"ReplicaSet", web, nil, IfThere}, "goes everywhere": {"Service", service, nil, Absent}, "placed everywhere": {"Service", service, everywhere, Absent},
		"selected": {"Service", service, chosen, Absent}, "the namespace": {"Namespace", namespace, nil, IfThere},
	} {
		u := parse(t, c.object)
		if c.change != nil {
			c.change(u)
		}
		for only, want := range map[string]Presence{"bank": c.not, "default": Present} {
			there := east
			there.Cluster = cluster("east-a", map[string]string{"tier": "gold"})
			there.Cluster.Spec.AllowedNamespaces = []string{"shop", only}
			presence, number, reason := source(kind(t, c.kind), u).Wanted(there)
			if number != nil && (*number == 0) != (only == "bank") {
				t.Errorf("%s, in a cluster for %s: %d replicas", name, only, *number)
			}
			if presence != want || want == Absent && reason != "namespace default may not use cluster east-a: its spec.allowedNamespaces does not name it" {
				t.Errorf("%s, in a cluster for %s: presence %d (%s), want %d", name, only, presence, reason, want)
			}
		}
	}
}

func annotate(key, value string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		a := u.GetAnnotations()
		if a == nil {
			a = map[string]string{}
		}
		a[key] = value
		u.SetAnnotations(a)
	}
}

func deleting(finalizers ...string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")
		u.SetFinalizers(finalizers)
	}
}

// asApplied returns the copy as a member has it: with defaults and the fields it owns.
func asApplied(d Desired) *unstructured.Unstructured {
	u := d.Object.DeepCopy()
	u.SetUID("copy")
	u.SetResourceVersion("5")
	_ = unstructured.SetNestedField(u.Object, "10.0.0.7", "spec", "clusterIP")
	return u
}

func TestOperate(t *testing.T) {
	k := kind(t, "Service")
	d := Desire(source(k, parse(t, service)), east)
	gone := Desire(source(k, nil), east)
	for _, c := range []struct {
		name     string
		want     Desired
		observed func() *unstructured.Unstructured
		verb     Verb
	}{
		{"missing", d, nil, Create},
		{"as applied, with what the member owns", d, func() *unstructured.Unstructured { return asApplied(d) }, Nothing},
		{"a value drifted", d, func() *unstructured.Unstructured {
			u := asApplied(d)
			_ = unstructured.SetNestedField(u.Object, "ClusterIP", "spec", "type")
			return u
		}, Update},
		{"our label is another's", d, func() *unstructured.Unstructured {
			u := asApplied(d)
			u.SetLabels(map[string]string{v1beta1.ManagedByLabel: "uid-2"})
			return u
		}, Update},
		{"something else was applied last", d, func() *unstructured.Unstructured {
			u := asApplied(d)
			u.SetAnnotations(map[string]string{v1beta1.AppliedHashAnnotation: "older"})
			return u
		}, Update},
		{"on its way out", d, func() *unstructured.Unstructured { u := asApplied(d); deleting()(u); return u }, Wait},
		{"of an object that was deleted and made anew", Desire(source(k, parse(t, strings.ReplaceAll(service, "uid: u2", "uid: u3"))), east), func() *unstructured.Unstructured { return asApplied(d) }, Delete},
		{"from before copies named their source", d, func() *unstructured.Unstructured {
			u := asApplied(d)
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations", v1beta1.SourceAnnotation)
			return u
		}, Update},
		{"to go", gone, func() *unstructured.Unstructured { return asApplied(d) }, Delete},
		{"gone", gone, nil, Nothing},
		{"to be released", Desired{Presence: Released}, func() *unstructured.Unstructured { return asApplied(d) }, Release},
		{"undecided", Desired{}, func() *unstructured.Unstructured { return asApplied(d) }, Nothing},
		{"no new copy without replicas", Desired{Presence: IfThere, configuration: d.configuration}, nil, Nothing},
	} {
		t.Run(c.name, func(t *testing.T) {
			var have *unstructured.Unstructured
			if c.observed != nil {
				have = c.observed()
			}
			if got := Operate(c.want, have, ""); got != c.verb {
				t.Errorf("got %q, want %q", got, c.verb)
			}
		})
	}
}

// A member whose admission changes what we send must not be written to for ever.
func TestOperateSettlesWithAMemberThatChangesThings(t *testing.T) {
	d := Desire(source(kind(t, "ReplicaSet"), parse(t, web)), east)
	have := d.Object.DeepCopy()
	containers, _, _ := unstructured.NestedSlice(have.Object, "spec", "template", "spec", "containers")
	containers[0].(map[string]any)["image"] = "mirror/web:1"
	containers = append(containers, map[string]any{"name": "sidecar", "image": "proxy:1"})
	_ = unstructured.SetNestedSlice(have.Object, containers, "spec", "template", "spec", "containers")
	if got := Operate(d, have, ""); got != Update {
		t.Fatalf("an unexpected image: got %q, want an update", got)
	}
	settled := Settle(d, have)
	if got := Operate(d, have, settled); got != Nothing {
		t.Errorf("the member did the same again: got %q, want nothing", got)
	}
	containers[0].(map[string]any)["image"] = "evil:1"
	_ = unstructured.SetNestedSlice(have.Object, containers, "spec", "template", "spec", "containers")
	if got := Operate(d, have, settled); got != Update {
		t.Errorf("another drift on top: got %q, want an update", got)
	}
}

func TestReplicaSetStatusSums(t *testing.T) {
	copies := []Copy{
		{Cluster: "east-a", State: Synced, Looked: 3, Object: parse(t, copyWith(20, 18))},
		{Cluster: "east-b", State: Unreachable, Message: "the cluster is not reachable"},
		{Cluster: "west-a", State: Synced, Looked: 3, Object: parse(t, copyWith(5, 5))},
	}
	s := Summarize(kind(t, "ReplicaSet"), parse(t, web), copies, "2026-01-02T00:00:00Z")
	for field, want := range map[string]int64{"replicas": 25, "readyReplicas": 23, "observedGeneration": 3} {
		if s.Status[field] != want {
			t.Errorf("%s: got %v, want %d", field, s.Status[field], want)
		}
	}
	c := s.Status["conditions"].([]any)[0].(map[string]any)
	if c["type"] != v1beta1.ConditionPropagated || c["status"] != "False" || c["reason"] != "Unreachable" || !strings.Contains(c["message"].(string), "east-b") {
		t.Errorf("condition %v", c)
	}
}

func copyWith(replicas, ready int) string {
	return fmt.Sprintf("{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web, generation: 2}, status: {observedGeneration: 2, replicas: %d, readyReplicas: %d}}", replicas, ready)
}

func lb(address string) string {
	return `{apiVersion: v1, kind: Service, metadata: {name: web}, status: {loadBalancer: {ingress: [{ip: ` + address + `}]}}}`
}

func TestServiceSummaryIsWhatDNSReads(t *testing.T) {
	federated := parse(t, service)
	copies := []Copy{
		{Cluster: "east-a", State: Synced, Object: parse(t, lb("192.0.2.9")), ReadyEndpoints: true},
		{Cluster: "east-b", State: Synced, Object: parse(t, lb("192.0.2.1"))},
		{Cluster: "west-a", State: Synced, Object: parse(t, `{apiVersion: v1, kind: Service, metadata: {name: web}}`), ReadyEndpoints: true},
	}
	s := Summarize(kind(t, "Service"), federated, copies, "2026-01-02T00:00:00Z")
	want := `{"items":[{"cluster":"east-a","items":[{"ip":"192.0.2.9"}]},{"cluster":"east-b","items":null}]}`
	if got := s.Annotations[v1beta1.ServiceIngressesAnnotation]; got != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
	if got := asJSON(s.Status["loadBalancer"]); got != `{"ingress":[{"ip":"192.0.2.1"},{"ip":"192.0.2.9"}]}` {
		t.Errorf("load balancer %s", got)
	}

	// No cluster has an address any more: a merge patch takes the last ones away by a null.
	addressed := federated.DeepCopy()
	addressed.Object["status"] = map[string]any{"loadBalancer": s.Status["loadBalancer"]}
	gone := Summarize(kind(t, "Service"), addressed, []Copy{{Cluster: "east-a", State: Conflict}}, "2026-01-02T00:00:00Z")
	merged, err := jsonpatch.MergePatch([]byte(asJSON(addressed.Object)), []byte(asJSON(gone.Patch())))
	if err != nil || !strings.Contains(string(merged), `"loadBalancer":{}`) {
		t.Errorf("the addresses stay: %s, %v", merged, err)
	}

	// east-a is lost: what was known of it stays in the annotation; DNS knows that it is away.
	annotate(v1beta1.ServiceIngressesAnnotation, want)(federated)
	copies[0] = Copy{Cluster: "east-a", State: Unreachable}
	s = Summarize(kind(t, "Service"), federated, copies, "2026-01-02T00:00:00Z")
	if len(s.Annotations) > 0 {
		t.Errorf("the annotation changed to %v", s.Annotations)
	}
}

// TestWhatOnlyWeDoNotSee checks that the state of a cluster that only others reach is marked as stale until it is seen
// again.
func TestWhatOnlyWeDoNotSee(t *testing.T) {
	federated := parse(t, service)
	seen := `{"items":[{"cluster":"east-a","items":[{"ip":"192.0.2.9"}]},{"cluster":"west-a","items":null,"seen":false}]}`
	unseen := `{"items":[{"cluster":"east-a","items":[{"ip":"192.0.2.9"}],"seen":false},{"cluster":"west-a","items":null,"seen":false}]}`
	for _, step := range []struct {
		copy Copy
		want any
		has  string
	}{
		{Copy{State: Synced, Object: parse(t, lb("192.0.2.9")), ReadyEndpoints: true}, seen, seen},
		{Copy{State: Unreachable}, nil, seen},
		{Copy{State: Unreachable, Alone: true}, unseen, unseen},
		{Copy{State: Unreachable, Alone: true}, nil, unseen},
		{Copy{State: Unreachable}, nil, unseen}, // it is lost for all now, or its Cluster says so for a moment
		{Copy{State: Synced, Object: parse(t, lb("192.0.2.9")), ReadyEndpoints: true}, seen, seen},
	} {
		step.copy.Cluster = "east-a"
		// west-a is unreachable, and has never been seen.
		s := Summarize(kind(t, "Service"), federated, []Copy{step.copy, {Cluster: "west-a", State: Unreachable, Alone: true}}, "2026-01-02T00:00:00Z")
		if got := s.Annotations[v1beta1.ServiceIngressesAnnotation]; got != step.want {
			t.Errorf("got  %v\nwant %v", got, step.want)
		}
		annotate(v1beta1.ServiceIngressesAnnotation, step.has)(federated)
	}
}

// TestWhatCannotBeListedKeepsItsAddresses checks that a missing permission to list does not count as an empty list.
func TestWhatCannotBeListedKeepsItsAddresses(t *testing.T) {
	const before = `{"items":[{"cluster":"east-a","items":[{"ip":"192.0.2.9"}]},{"cluster":"east-b","items":null}]}`
	for name, c := range map[string]struct {
		copies []Copy
		want   string
	}{
		"endpoints: as ready as they were, at the addresses of now": {
			[]Copy{{Cluster: "east-a", State: Synced, Object: parse(t, lb("192.0.2.7")), EndpointsUnknown: true}, {Cluster: "east-b", State: Synced, Object: parse(t, lb("192.0.2.1")), EndpointsUnknown: true}},
			`{"items":[{"cluster":"east-a","items":[{"ip":"192.0.2.7"}]},{"cluster":"east-b","items":null}]}`,
		},
		"endpoints of a cluster of which nothing was known": {
			[]Copy{{Cluster: "east-a", State: Unreachable}, {Cluster: "west-a", State: Synced, Object: parse(t, lb("192.0.2.3")), EndpointsUnknown: true}},
			`{"items":[{"cluster":"east-a","items":[{"ip":"192.0.2.9"}]}]}`,
		},
		"a copy that cannot be seen": {[]Copy{{Cluster: "east-a", State: Rejected, Unlisted: true}, {Cluster: "east-b", State: Pending, Unlisted: true}}, before},
	} {
		t.Run(name, func(t *testing.T) {
			federated := parse(t, service)
			annotate(v1beta1.ServiceIngressesAnnotation, before)(federated)
			want := any(c.want)
			if c.want == before {
				want = nil // no change
			}
			if got := Summarize(kind(t, "Service"), federated, c.copies, "2026-01-02T00:00:00Z").Annotations[v1beta1.ServiceIngressesAnnotation]; got != want {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}

func TestASecondSummaryIsEmpty(t *testing.T) {
	for _, c := range []struct{ kind, object, copy string }{
		{"ReplicaSet", web, copyWith(3, 2)}, {"Deployment", strings.ReplaceAll(web, "ReplicaSet", "Deployment"), copyWith(3, 2)},
		{"Service", service, lb("192.0.2.1")}, {"Ingress", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}}`, lb("192.0.2.1")},
		{"ConfigMap", `{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}`},
	} {
		t.Run(c.kind, func(t *testing.T) {
			federated, copies := parse(t, c.object), []Copy{{Cluster: "east-a", State: Synced, Object: parse(t, c.copy), ReadyEndpoints: true}}
			first := Summarize(kind(t, c.kind), federated, copies, "2026-01-02T00:00:00Z")
			if status, _ := federated.Object["status"].(map[string]any); status == nil {
				federated.Object["status"] = map[string]any{}
			}
			for key, value := range first.Status {
				federated.Object["status"].(map[string]any)[key] = value
			}
			for key, value := range first.Annotations {
				annotate(key, value.(string))(federated)
			}
			if second := Summarize(kind(t, c.kind), federated, copies, "2026-03-03T00:00:00Z"); !second.Empty() {
				t.Errorf("the second summary changes %v", second.Patch())
			}
		})
	}
}

func TestSameSource(t *testing.T) {
	a := parse(t, web)
	b := a.DeepCopy()
	_ = unstructured.SetNestedField(b.Object, int64(9), "status", "replicas")
	annotate(v1beta1.ServiceIngressesAnnotation, "x")(b)
	if !SameSource(a, b) {
		t.Error("a changed status counts as a change of what is asked")
	}
	for name, change := range map[string]func(*unstructured.Unstructured){
		"hash": annotate(v1beta1.AppliedHashAnnotation, "x"), "source": annotate(v1beta1.SourceAnnotation, "x"), "placement": annotate(v1beta1.PlacementAnnotation, `{}`), "annotation": annotate("team", "bank"), "deletion": deleting(a.GetFinalizers()...),
		"generation": func(u *unstructured.Unstructured) { u.SetGeneration(4) },
		"generation and spec": func(u *unstructured.Unstructured) {
			u.SetGeneration(4)
			_ = unstructured.SetNestedField(u.Object, int64(1), "spec", "replicas")
		},
	} {
		c := a.DeepCopy()
		change(c)
		if SameSource(a, c) {
			t.Errorf("a change of %s goes unnoticed", name)
		}
	}
}

// Copies have only the federation's annotations for node agents. A pending address is left out.
func TestAnnotationsForMembers(t *testing.T) {
	service := func(value string) *unstructured.Unstructured {
		return parse(t, `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop, uid: u1, annotations: {team: shop,
			federation.kubernetes.io/service-ingresses: "{}", federation.kubernetes.io/fallback: "true", federation.kubernetes.io/fallback-below: "50%", federation.kubernetes.io/clusterset-ip: "`+value+`"}}}`)
	}
	want := map[string]string{"team": "shop", v1beta1.FallbackAnnotation: "true", v1beta1.FallbackBelowAnnotation: "50%"}
	if got := passedOn(service("auto").GetAnnotations()); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	want[v1beta1.ClusterSetIPAnnotation] = "10.0.0.1"
	if got := passedOn(service("10.0.0.1").GetAnnotations()); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if SameSource(service("auto"), service("10.0.0.1")) {
		t.Error("members are not told when the address is given")
	}
}

// TestTheFederationsClassStaysAtTheFederation: members serve the copies by their own class, and their addresses are not the Service's.
func TestTheFederationsClassStaysAtTheFederation(t *testing.T) {
	k := kind(t, "Service")
	for class, want := range map[string]string{v1beta1.LoadBalancerClassName: "", "example.com/lb": "example.com/lb"} {
		u := parse(t, service)
		_ = unstructured.SetNestedField(u.Object, "LoadBalancer", "spec", "type")
		_ = unstructured.SetNestedField(u.Object, class, "spec", "loadBalancerClass")
		if got, _, _ := unstructured.NestedString(Desire(source(k, u), east).Object.Object, "spec", "loadBalancerClass"); got != want {
			t.Errorf("class %q: the copy has %q, want %q", class, got, want)
		}
		if _, reports := serviceStatus(u, nil)["loadBalancer"]; reports != (want != "") {
			t.Errorf("class %q: the members' addresses are in the status: %t", class, reports)
		}
	}
}
