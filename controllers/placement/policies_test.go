package placement

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
)

// apply creates an object from YAML.
func (f *fleet) apply(resource schema.GroupVersionResource, text string) {
	f.t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.client.Resource(resource).Namespace(u.GetNamespace()).Create(f.t.Context(), u, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	f.settle()
}

// annotation returns the placement annotation of an object in the namespace shop.
func (f *fleet) annotation(resource schema.GroupVersionResource, name string) string {
	f.t.Helper()
	u, err := f.client.Resource(resource).Namespace("shop").Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return u.GetAnnotations()[v1beta1.PlacementAnnotation]
}

// clustersOf returns the clusters in the placement annotation, or "none".
func (f *fleet) clustersOf(resource schema.GroupVersionResource, name string) string {
	f.t.Helper()
	value := f.annotation(resource, name)
	if value == "" {
		return "none"
	}
	p := v1beta1.ParsePlacement(value)
	if p == nil {
		return value
	}
	return strings.Join(slices.Sorted(maps.Keys(p.Clusters)), " ")
}

var configMaps = referable["ConfigMap"]

const configMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: conf, namespace: shop, uid: c1, annotations: {federation.kubernetes.io/placement: pending}}}`

func policy(spec string) string {
	return "{apiVersion: federation/v1beta1, kind: PlacementPolicy, metadata: {name: p, namespace: shop, uid: p1, generation: 1}, spec: " + spec + "}"
}

func TestAConfigMapGoesWhereItsPolicySaysAndEverywhereWithoutOne(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.cluster("east-a", "True")
		f.cluster("west-a", "True")
		f.apply(v1beta1.PoliciesResource, policy(`{resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], clusters: {names: [west-a]}}`))
		f.apply(configMaps, configMap)
		if got := f.clustersOf(configMaps, "conf"); got != "west-a" {
			t.Errorf("placed on %s", got)
		}
		u, err := f.client.Resource(v1beta1.PoliciesResource).Namespace("shop").Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f.settle()
		p := readPolicy(u)
		if p.Status.Objects != 1 || len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Status != metav1.ConditionTrue {
			t.Errorf("status of the policy: %+v", p.Status)
		}
		if err := f.client.Resource(v1beta1.PoliciesResource).Namespace("shop").Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.settle()
		if got := f.clustersOf(configMaps, "conf"); got != "none" {
			t.Errorf("without a policy it is placed on %s", got)
		}
	})
}

// TestAPolicyThatGovernsNothingAnyMoreSaysSo checks that a count of 0 is written.
func TestAPolicyThatGovernsNothingAnyMoreSaysSo(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.cluster("east-a", "True")
		f.apply(v1beta1.PoliciesResource, policy(`{resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}`))
		f.apply(configMaps, configMap)
		if err := f.client.Resource(configMaps).Namespace("shop").Delete(t.Context(), "conf", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.settle()
		time.Sleep(2 * statusPause)
		f.settle()
		u, err := f.client.Resource(v1beta1.PoliciesResource).Namespace("shop").Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n := readPolicy(u).Status.Objects; n != 0 {
			t.Errorf("it says that it governs %d objects", n)
		}
	})
}

func TestPendingEndsWithoutAPolicy(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.cluster("east-a", "True")
		f.apply(configMaps, configMap)
		if got := f.clustersOf(configMaps, "conf"); got != "none" {
			t.Errorf("it is %s", got)
		}
	})
}

const workload = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web, namespace: shop, uid: u1}, spec: {replicas: 1, template: {spec: {
  containers: [{name: c, envFrom: [{configMapRef: {name: conf}}]}]}}}}`

func TestReferencesGoWhereTheWorkloadGoes(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.cluster("east-a", "True")
		f.cluster("west-a", "True")
		f.apply(v1beta1.PoliciesResource, policy(`{resourceSelectors: [{apiVersion: apps/v1, kind: ReplicaSet}], clusters: {names: [west-a]}, propagateReferences: true}`))
		conf := strings.Replace(configMap, "uid: c1", "uid: c1, creationTimestamp: "+time.Now().UTC().Format(`"2006-01-02T15:04:05Z"`), 1)
		f.apply(configMaps, conf)
		if got := f.clustersOf(configMaps, "conf"); got != "pending" {
			t.Errorf("before the workload is there it is %s", got)
		}
		f.apply(replicaSets, workload)
		if got := f.clustersOf(configMaps, "conf"); got != "west-a" {
			t.Errorf("placed on %s", got)
		}
		if err := f.client.Resource(replicaSets).Namespace("shop").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.settle()
		if got := f.clustersOf(configMaps, "conf"); got != "none" {
			t.Errorf("when nothing refers to it, it is %s", got)
		}
	})
}

func TestACustomKindIsPlacedWhenAPolicyNamesIt(t *testing.T) {
	databases := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "databases"}
	var served atomic.Bool
	inFleetWith(t, func(o *Options) {
		o.Definitions = o.Informers(definitions)
		o.Resolve = func(apiVersion, kind string) (schema.GroupVersionResource, bool, error) {
			if !served.Load() || apiVersion != "example.com/v1" || kind != "Database" {
				return schema.GroupVersionResource{}, false, errors.New("there is no such kind")
			}
			return databases, true, nil
		}
	}, func(f *fleet) {
		f.cluster("east-a", "True")
		f.cluster("west-a", "True")
		f.apply(v1beta1.PoliciesResource, policy(`{resourceSelectors: [{apiVersion: example.com/v1, kind: Database}], clusters: {names: [west-a]}}`))
		f.apply(databases, `{apiVersion: example.com/v1, kind: Database, metadata: {name: db, namespace: shop, uid: d1}}`)
		time.Sleep(5 * time.Second)
		u, err := f.client.Resource(v1beta1.PoliciesResource).Namespace("shop").Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if c := readPolicy(u).Status.Conditions; len(c) != 1 || c[0].Reason != "KindNotServed" || !strings.Contains(c[0].Message, "example.com/v1 Database: there is no such kind") {
			t.Errorf("conditions %+v", c)
		}
		served.Store(true)
		time.Sleep(time.Minute)
		if got := f.clustersOf(databases, "db"); got != "west-a" {
			t.Errorf("placed on %s", got)
		}
		for _, c := range []struct {
			forbids []string // it goes to west-a only
			reason  string
			says    string
		}{
			{[]string{"east-a"}, "Accepted", "all kinds can be spread"},
			{[]string{"east-a", "west-a"}, "KindForbidden", "spec.resourceSelectors[0]: example.com/v1 Database: forbidden by west-a: join again with --custom-kinds databases.example.com"},
		} {
			for _, name := range c.forbids {
				f.forbid(name, "databases.example.com")
			}
			time.Sleep(2 * statusPause)
			if got := f.accepted(); got.Reason != c.reason || got.Message != c.says {
				t.Errorf("%v forbid it: %s %q", c.forbids, got.Reason, got.Message)
			}
		}
		f.forbid("west-a")
		time.Sleep(2 * statusPause)
		if got := f.accepted(); got.Reason != "Accepted" {
			t.Errorf("west-a allows it again: %s %q", got.Reason, got.Message)
		}
		served.Store(false)
		f.apply(definitions, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: databases.example.com}, spec: {group: example.com, names: {kind: Database}}}`)
		if err := f.client.Resource(definitions).Delete(t.Context(), "databases.example.com", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * statusPause)
		if got := f.accepted(); got.Reason != "KindNotServed" {
			t.Errorf("its definition is deleted: %s %q", got.Reason, got.Message)
		}
	})
}

// TestAcceptedSaysWhatCannotBe checks the condition for names of clusters that do not exist.
func TestAcceptedSaysWhatCannotBe(t *testing.T) {
	for _, c := range []struct{ spec, reason, says string }{
		{`clusters: {names: [west-a]}`, "Accepted", "all kinds can be spread"},
		{`clusters: {names: [mars, west-a]}`, "Accepted", `all kinds can be spread; spec.clusters.names[0]: no cluster "mars" has joined`},
		{`clusters: {names: [mars]}`, "NoClusterSelected", `spec.clusters: no cluster is selected; spec.clusters.names[0]: no cluster "mars" has joined`},
		{`clusters: {regions: [north]}`, "NoClusterSelected", `spec.clusters: no cluster is selected; spec.clusters.regions[0]: no cluster is in region "north"`},
		{`clusters: {zones: [z]}`, "NoClusterSelected", `spec.clusters: no cluster is selected; spec.clusters.zones[0]: no cluster is in zone "z"`},
		{`clusters: {names: [west-a], regions: [east]}`, "NoClusterSelected", "spec.clusters: no cluster is selected"},
		{`replicaPreferences: {clusters: {mars: {weight: 1}}}`, "NoClusterSelected",
			`spec.replicaPreferences.clusters: none of the selected clusters gets replicas; spec.replicaPreferences.clusters[mars]: no cluster "mars" has joined`},
		{`spreadConstraints: [{spreadBy: Zone, minGroups: 9}]`, "SpreadConstraintsUnsatisfiable", "spec.spreadConstraints[0].minGroups: 9 zones are asked for, and the selected clusters are in 2"},
		{`rollout: {strategy: OneClusterAtATime, order: [mars]}`, "Accepted", `all kinds can be spread; spec.rollout.order[0]: no cluster "mars" has joined`},
		{`overrides: [{clusters: {names: [mars]}, jsonPatch: []}]`, "Accepted", `all kinds can be spread; spec.overrides[0].clusters.names[0]: no cluster "mars" has joined`},
		{`dns: {clusters: {mars: {weight: 1}, "*": {weight: 2}}}`, "Accepted", `all kinds can be spread; spec.dns.clusters[mars]: no cluster "mars" has joined`},
	} {
		inFleet(t, func(f *fleet) {
			f.cluster("east-a", "True")
			f.cluster("west-a", "True")
			for name, region := range map[string]string{"east-a": "east", "west-a": "west"} {
				f.status(name, "region", region)
				f.status(name, "zones", []any{"a"})
			}
			f.apply(v1beta1.PoliciesResource, policy(`{resourceSelectors: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: apps/v1, kind: ReplicaSet}], `+c.spec+`}`))
			time.Sleep(2 * statusPause)
			if got := f.accepted(); got.Reason != c.reason || got.Message != c.says || (got.Status == "True") != (c.reason == "Accepted") {
				t.Errorf("%s: %s %s %q, want %s %q", c.spec, got.Status, got.Reason, got.Message, c.reason, c.says)
			}
		})
	}
}

// TestAcceptedFollowsTheClusters checks that the condition changes when the named cluster joins.
func TestAcceptedFollowsTheClusters(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.cluster("east-a", "True")
		f.apply(v1beta1.PoliciesResource, policy(`{resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], clusters: {regions: [west]}}`))
		for _, want := range []string{"NoClusterSelected", "Accepted"} {
			time.Sleep(2 * statusPause)
			if got := f.accepted(); got.Reason != want {
				t.Errorf("%s %q, want %s", got.Reason, got.Message, want)
			}
			f.status("east-a", "region", "west")
		}
	})
}

// TestAPolicyThatGovernsNothingLeavesALostClusterInTime checks that where a policy keeps all together follows its cluster's loss, which
// time alone completes, and its return, though no object is decided.
func TestAPolicyThatGovernsNothingLeavesALostClusterInTime(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.cluster("east-a", "True")
		f.cluster("west-a", "True")
		f.apply(v1beta1.PoliciesResource, policy(`{resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], workloadAffinity: Required}`))
		f.settle()
		first := f.together()
		if len(first) != 1 {
			t.Fatalf("it keeps all that it governs together in %v", first)
		}
		f.cluster(first[0], "False")
		if got := f.together(); !slices.Equal(got, first) {
			t.Errorf("it leaves %v for %v within the grace period", first, got)
		}
		time.Sleep(grace)
		f.settle()
		if got := f.together(); len(got) != 1 || got[0] == first[0] {
			t.Errorf("after the grace period it is in %v, of which %s is lost", got, first[0])
		}
		f.cluster(first[0], "True")
		time.Sleep(10 * time.Minute) // failback is paced
		if got := f.together(); !slices.Equal(got, first) {
			t.Errorf("it does not go back to %v when that returns, it is in %v", first, got)
		}
	})
}

// together returns where the policy says it keeps all that it governs.
func (f *fleet) together() []string {
	f.t.Helper()
	u, err := f.client.Resource(v1beta1.PoliciesResource).Namespace("shop").Get(f.t.Context(), "p", metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return readPolicy(u).Status.Clusters
}

// status changes a field of a Cluster's status.
func (f *fleet) status(cluster, field string, value any) {
	f.t.Helper()
	clusters := f.client.Resource(v1beta1.ClustersResource)
	u, err := clusters.Get(f.t.Context(), cluster, metav1.GetOptions{})
	if err == nil {
		err = unstructured.SetNestedField(u.Object, value, "status", field)
	}
	if err == nil {
		_, err = clusters.Update(f.t.Context(), u, metav1.UpdateOptions{})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// forbid sets which kinds a cluster forbids.
func (f *fleet) forbid(cluster string, kinds ...string) {
	f.t.Helper()
	clusters := f.client.Resource(v1beta1.ClustersResource)
	u, err := clusters.Get(f.t.Context(), cluster, metav1.GetOptions{})
	if err == nil {
		err = unstructured.SetNestedStringSlice(u.Object, kinds, "status", "inaccessibleResources")
	}
	if err == nil {
		_, err = clusters.Update(f.t.Context(), u, metav1.UpdateOptions{})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// accepted returns the condition of the policy.
func (f *fleet) accepted() metav1.Condition {
	f.t.Helper()
	u, err := f.client.Resource(v1beta1.PoliciesResource).Namespace("shop").Get(f.t.Context(), "p", metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return readPolicy(u).Status.Conditions[0]
}
