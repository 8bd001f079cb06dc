package scheduler

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
)

// object decodes an object from YAML.
func object(t *testing.T, text string) Object {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	o, err := Read(u)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestWhichPolicyGoverns(t *testing.T) {
	named := func(name string, priority int32, s v1beta1.ResourceSelector) *v1beta1.PlacementPolicy {
		return &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: v1beta1.PlacementPolicySpec{Priority: priority, ResourceSelectors: []v1beta1.ResourceSelector{s}}}
	}
	all := v1beta1.ResourceSelector{APIVersion: "apps/v1", Kind: "ReplicaSet"}
	gold := all
	gold.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	other := all
	other.Names = []string{"other"}
	elsewhere := named("aa", 99, all)
	elsewhere.Namespace = "elsewhere"
	w := NewWorld(nil, []*v1beta1.PlacementPolicy{named("b", 1, all), named("a", 1, all), named("gold", 5, gold), named("other", 9, other), elsewhere})
	o := replicaSet(1, nil)
	if p := w.Policy(&o); p == nil || p.Name != "a" {
		t.Errorf("of equal priority governs %v, want a", p)
	}
	o.Labels = map[string]string{"tier": "gold"}
	if p := w.Policy(&o); p == nil || p.Name != "gold" {
		t.Errorf("by labels governs %v, want gold", p)
	}
	o.Kind = "Deployment"
	if p := w.Policy(&o); p != nil {
		t.Errorf("a Deployment is governed by %s", p.Name)
	}
}

// Users choose clusters by policy or annotation; operators choose which namespaces a cluster is for.
func TestWantsRefusesNamespaces(t *testing.T) {
	a, b := cluster("a", 0), cluster("b", 0)
	b.Spec.AllowedNamespaces = []string{"shop"}
	p := &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: v1beta1.PlacementPolicySpec{
		ResourceSelectors: []v1beta1.ResourceSelector{{APIVersion: "apps/v1", Kind: "ReplicaSet"}}, Clusters: &v1beta1.ClusterAffinity{Names: []string{"a", "b"}}}}
	for name, policies := range map[string][]*v1beta1.PlacementPolicy{"no policy": nil, "a policy that names it": {p}} {
		d := Decide(replicaSet(6, numbers{"a": 3, "b": 3}), NewWorld([]*v1beta1.Cluster{a, b}, policies), now)
		if !maps.Equal(d.Placement.Clusters, numbers{"a": 6}) || len(d.Reasons["b"]) == 0 || !strings.Contains(d.Reasons["b"][0], "namespace default may not use cluster b") {
			t.Errorf("%s: %v, for %q", name, d.Placement.Clusters, d.Reasons["b"])
		}
	}
	if Usability(b) == Usability(cluster("b", 0)) {
		t.Error("nothing is decided again where it changes whom a cluster is for")
	}
	p.Spec.Clusters.Names = []string{"b"}
	if reason, why := Impossible(p, []*v1beta1.Cluster{a, b}); reason != "NoClusterSelected" || !strings.Contains(why, "is for namespace default") {
		t.Errorf("the policy says %s: %s", reason, why)
	}
	p.Namespace = v1beta1.FederationNamespace
	if reason, why := Impossible(p, []*v1beta1.Cluster{a, b}); reason != "NamespaceNotFederated" || !strings.Contains(why, "nothing in federation-system goes to clusters") {
		t.Errorf("a policy of the federation's own namespace says %s: %s", reason, why)
	}
}

func TestTheAnnotationWinsAndSaysSo(t *testing.T) {
	o := object(t, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web, namespace: default, annotations: {
  federation.alpha.kubernetes.io/cluster-selector: '[{"key":"name","operator":"In","values":["a","b"]}]',
  federation.kubernetes.io/replica-set-preferences: '{"clusters":{"a":{"weight":3},"b":{"weight":1}}}'}}, spec: {replicas: 4}}`)
	p := governed(v1beta1.PlacementPolicySpec{Clusters: &v1beta1.ClusterAffinity{Names: []string{"c"}},
		ReplicaPreferences: &v1beta1.ReplicaPreferences{Clusters: map[string]v1beta1.ClusterPreferences{"c": {Weight: 1}}}})
	d := Decide(o, NewWorld([]*v1beta1.Cluster{cluster("a", 0), cluster("b", 0), cluster("c", 0)}, []*v1beta1.PlacementPolicy{p}), now)
	if !maps.Equal(d.Placement.Clusters, numbers{"a": 3, "b": 1}) || d.Policy != "p" || len(d.Notes) != 2 {
		t.Errorf("got %v by policy %q, notes %q", d.Placement.Clusters, d.Policy, d.Notes)
	}
	for name, want := range map[string]string{
		"a": "selected by the cluster selector annotation; named in the preferences of the annotation; 3 by weight 3 of 4",
		"c": "not selected by the cluster selector annotation",
	} {
		if got := strings.Join(d.Reasons[name], "; "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestWhatHasNoReplicasMovesForNoRoom checks that room does not matter to an undivided object.
func TestWhatHasNoReplicasMovesForNoRoom(t *testing.T) {
	o := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: conf, namespace: default, annotations: {
  federation.kubernetes.io/placement: '{"clusters":{"a":1},"policy":"p"}'}}}`)
	p := governed(v1beta1.PlacementPolicySpec{})
	p.Spec.ResourceSelectors = []v1beta1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}
	d := Decide(o, NewWorld([]*v1beta1.Cluster{cluster("a", 0), cluster("b", 0)}, []*v1beta1.PlacementPolicy{p}), now)
	if d.Moved != "b 0→1" || d.Cause != "the clusters that it may use changed" {
		t.Errorf("%s (%s)", d.Moved, d.Cause)
	}
}

func TestTaintsAndTolerations(t *testing.T) {
	added := metav1.NewTime(now.Add(-time.Minute))
	seconds := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		taint      corev1.Taint
		toleration *corev1.Toleration
		use        use
		lookAgain  time.Duration
	}{
		{corev1.Taint{Key: "k", Effect: "NoSchedule"}, nil, keeps, 0},
		{corev1.Taint{Key: "k", Effect: "NoExecute"}, nil, out, 0},
		{corev1.Taint{Key: "k", Value: "v", Effect: "NoExecute"}, &corev1.Toleration{Key: "k", Value: "v"}, usable, 0},
		{corev1.Taint{Key: "k", Value: "v", Effect: "NoExecute"}, &corev1.Toleration{Key: "k", Value: "x"}, out, 0},
		{corev1.Taint{Key: "k", Value: "v", Effect: "NoExecute"}, &corev1.Toleration{Key: "k", Operator: "Exists"}, usable, 0},
		{corev1.Taint{Key: "k", Effect: "NoExecute"}, &corev1.Toleration{Operator: "Exists"}, usable, 0},
		{corev1.Taint{Key: "k", Effect: "NoExecute"}, &corev1.Toleration{Operator: "Exists", Effect: "NoSchedule"}, out, 0},
		{corev1.Taint{Key: "k", Effect: "NoExecute", TimeAdded: &added}, &corev1.Toleration{Operator: "Exists", TolerationSeconds: seconds(90)}, usable, 30 * time.Second},
		{corev1.Taint{Key: "k", Effect: "NoExecute", TimeAdded: &added}, &corev1.Toleration{Operator: "Exists", TolerationSeconds: seconds(60)}, out, 0},
		{corev1.Taint{Key: "k", Effect: "NoExecute"}, &corev1.Toleration{Operator: "Exists", TolerationSeconds: seconds(60)}, out, 0},
	} {
		rules := &useRules{wants: &wants{}, now: now}
		if c.toleration != nil {
			rules.wants.tolerations = []corev1.Toleration{*c.toleration}
		}
		s := candidate{cluster: cluster("a", 0)}
		s.cluster.Spec.Taints = []corev1.Taint{c.taint}
		rules.apply(&s)
		if s.use != c.use || s.until != c.lookAgain {
			t.Errorf("%s with toleration %+v: use %d, look again in %s; want %d, %s", c.taint.ToString(), c.toleration, s.use, s.until, c.use, c.lookAgain)
		}
	}
}

// TestWhatIsToleratedIsAmongTheReasons checks that the reasons of a tainted cluster name the toleration.
func TestWhatIsToleratedIsAmongTheReasons(t *testing.T) {
	minute, added := int64(60), metav1.NewTime(now.Add(-20*time.Second))
	p := governed(v1beta1.PlacementPolicySpec{Tolerations: []corev1.Toleration{
		{Key: "maintenance", Operator: "Exists"}, {Key: "gone", Operator: "Exists", TolerationSeconds: &minute},
	}})
	tainted, alien := cluster("a", 0), cluster("b", 0)
	tainted.Spec.Taints = []corev1.Taint{
		{Key: "maintenance", Effect: "NoSchedule"}, {Key: "maintenance", Effect: "PreferNoSchedule"}, {Key: "gone", Value: "x", Effect: "NoExecute", TimeAdded: &added},
	}
	alien.Spec.Taints = []corev1.Taint{{Key: "other", Effect: "NoSchedule"}}
	d := Decide(replicaSet(4, nil), NewWorld([]*v1beta1.Cluster{tainted, alien}, []*v1beta1.PlacementPolicy{p}), now)
	for name, want := range map[string]string{
		"a": "tolerates taint maintenance:NoSchedule; tolerates taint gone=x:NoExecute for 40s; 4 by weight 1 of 2",
		"b": "taint other:NoSchedule; at most 0: taint other:NoSchedule",
	} {
		if got := strings.Join(d.Reasons[name], "; "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestRequestsAndReferences(t *testing.T) {
	o := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {template: {spec: {
  overhead: {cpu: 10m}, serviceAccountName: runner, imagePullSecrets: [{name: pull}],
  volumes: [{name: v, configMap: {name: files}}, {name: p, projected: {sources: [{secret: {name: part}}]}}],
  initContainers: [{name: i, resources: {requests: {cpu: "1", memory: 10Mi}}}, {name: side, restartPolicy: Always, resources: {requests: {cpu: 100m}}}],
  containers: [{name: a, resources: {requests: {cpu: 200m}, limits: {cpu: "2", memory: 64Mi}}, env: [{name: X, valueFrom: {secretKeyRef: {name: key, key: k}}}]},
    {name: b, resources: {requests: {cpu: 300m}}, envFrom: [{configMapRef: {name: env}}]}]}}}}`)
	for name, want := range map[corev1.ResourceName]string{"cpu": "1010m", "memory": "64Mi"} {
		if got := o.Requests()[name]; got.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("requests %s of %s, want %s", got.String(), name, want)
		}
	}
	if got := fmt.Sprint(o.References()); got != "[{ConfigMap env} {ConfigMap files} {Secret key} {Secret part} {Secret pull} {ServiceAccount runner}]" {
		t.Errorf("refers to %s", got)
	}
	if o.Replicas != 1 {
		t.Errorf("without spec.replicas there are %d", o.Replicas)
	}
}

// TestAMassFailoverSharesTheRoom checks that of many objects that lose their cluster, those of high priority find room,
// and no cluster gets more than fits.
func TestAMassFailoverSharesTheRoom(t *testing.T) {
	room := func(name string, cpus int64) *v1beta1.Cluster {
		c := cluster(name, 0)
		c.Status.Capacity = &v1beta1.ClusterCapacity{Free: []v1beta1.NodeClass{{Nodes: 1, Free: corev1.ResourceList{
			"cpu": *resource.NewQuantity(cpus, resource.DecimalSI), "pods": resource.MustParse("110")}}}}
		return c
	}
	lost := room("a", 0)
	lost.Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseFailedOver}
	urgent := governed(v1beta1.PlacementPolicySpec{Priority: 10})
	urgent.Spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"urgent": "yes"}}
	w := NewWorld([]*v1beta1.Cluster{lost, room("b", 20), room("c", 5)}, []*v1beta1.PlacementPolicy{urgent})
	var objects []Object
	for i := range 20 {
		o := object(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-%d, namespace: default}, spec: {replicas: 2,
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}}}`, i))
		o.Current = &v1beta1.Placement{Clusters: numbers{"a": 2}}
		if i%4 == 3 {
			o.Labels = map[string]string{"urgent": "yes"}
		}
		objects = append(objects, o)
	}
	got := numbers{}
	for i, d := range DecideAll(objects, w, now) {
		for name, n := range d.Placement.Clusters {
			got[name] += n
		}
		got["nowhere"] += d.Placement.Unschedulable
		if objects[i].Labels != nil && d.Placement.Unschedulable > 0 {
			t.Errorf("%s is urgent and finds no room", objects[i].Name)
		}
	}
	if !maps.Equal(got, numbers{"b": 20, "c": 5, "nowhere": 15}) {
		t.Errorf("in sum %v", got)
	}
	if free, _ := w.Ledger.Room("b", w.Ledger.Demand(objects[0].Requests())); free != 20 {
		t.Errorf("the world's own ledger was changed: %d left", free)
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{3, 100, 1000, 10000} {
		var clusters []*v1beta1.Cluster
		for i := range n {
			clusters = append(clusters, cluster(fmt.Sprint("cluster-", i), 0))
		}
		w := NewWorld(clusters, nil)
		w.Terse = true
		o := replicaSet(int64(7*n), nil)
		first := Decide(o, w, now)
		o.Current = &first.Placement
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				Decide(o, w, now)
			}
		})
	}
}

// TestAMistypedClusterIsNamed: replicas that fit nowhere because the preferences name a cluster that has not joined; and only then.
func TestAMistypedClusterIsNamed(t *testing.T) {
	o := replicaSet(4, nil)
	o.Preferences = &v1beta1.ReplicaPreferences{Clusters: map[string]v1beta1.ClusterPreferences{"eats-a": {Weight: 1}}}
	clusters := []*v1beta1.Cluster{cluster("east-a", 0)}
	d := Decide(o, NewWorld(clusters, nil), now)
	if d.Placement.Unschedulable != 4 || len(d.Placement.Notes) != 1 || !strings.Contains(d.Placement.Notes[0], `preferences.clusters`) || !strings.Contains(d.Placement.Notes[0], "eats-a") {
		t.Errorf("%d unschedulable, notes %q", d.Placement.Unschedulable, d.Placement.Notes)
	}
	o.Preferences.Clusters["east-a"] = v1beta1.ClusterPreferences{Weight: 1}
	if d := Decide(o, NewWorld(clusters, nil), now); d.Placement.Unschedulable != 0 || len(d.Placement.Notes) > 0 {
		t.Errorf("%d unschedulable, notes %q", d.Placement.Unschedulable, d.Placement.Notes)
	}
}

// TestWhatWasThereBeforeItsPolicy: an object without replicas that went everywhere is not created by the policy that now governs it.
func TestWhatWasThereBeforeItsPolicy(t *testing.T) {
	p := &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "east"}, Spec: v1beta1.PlacementPolicySpec{
		ResourceSelectors: []v1beta1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}, Clusters: &v1beta1.ClusterAffinity{Names: []string{"a"}}}}
	o := Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "settings"}
	w := NewWorld([]*v1beta1.Cluster{cluster("a", 0), cluster("b", 0)}, []*v1beta1.PlacementPolicy{p})
	if d := Decide(o, w, now); d.Cause != "policy east governs it" {
		t.Errorf("cause %q", d.Cause)
	}
	o.Pending = true // a new one waits for its policy
	if d := Decide(o, w, now); d.Cause != "created" {
		t.Errorf("cause %q of a new one", d.Cause)
	}
}
