package plan

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler"
)

// fleet is a random federation: clusters in zones with little room, and objects that were placed before the world
// changed a little.
type fleet struct {
	rng   *rand.Rand
	scale int64 // of the room in clusters
	Input
}

func newFleet(seed int64) *fleet {
	f := &fleet{rng: rand.New(rand.NewSource(seed)), scale: []int64{1, 3, 10, 40}[seed%4]}
	f.Now = reviewedAt
	f.Info = &v1beta1.Info{Name: "fed", DNSZone: "example.test", DNSTTL: 15 * time.Second, FailoverMaxZones: 1}
	for i := range 2 + f.rng.Intn(8) {
		at := fmt.Sprintf("%s/%c", []string{"east", "west"}[f.rng.Intn(2)], 'a'+rune(f.rng.Intn(3)))
		f.Clusters = append(f.Clusters, member(fmt.Sprintf("c%d", i), at, -1))
		f.room(i)
	}
	for i := range f.rng.Intn(6) {
		f.Policies = append(f.Policies, f.policy(fmt.Sprint("p", i)))
	}
	for i := range 3 + f.rng.Intn(14) {
		f.AddObject(f.workload(fmt.Sprintf("w%02d", i)))
	}
	f.settle()
	if f.one(2) { // some have been lost, and some of these are back
		f.change()
		f.settle()
		f.change()
	}
	for i := range f.rng.Intn(14) {
		f.AddNamed(f.service(fmt.Sprint("s", i)))
	}
	for range f.rng.Intn(5) {
		f.change()
	}
	return f
}

// one returns true with a chance of one in n.
func (f *fleet) one(n int) bool { return f.rng.Intn(n) == 0 }

// room sets a cluster's capacity; one cluster in five reports none.
func (f *fleet) room(i int) {
	c := &f.Clusters[i].Status
	c.Capacity = nil
	if f.one(5) {
		return
	}
	c.Capacity = &v1beta1.ClusterCapacity{}
	for range 1 + f.rng.Intn(3) {
		c.Capacity.Free = append(c.Capacity.Free, v1beta1.NodeClass{Nodes: int32(1 + f.rng.Intn(3)), Free: corev1.ResourceList{
			"cpu": *resource.NewMilliQuantity(f.rng.Int63n(6000*f.scale), resource.DecimalSI), "pods": *resource.NewQuantity(f.rng.Int63n(12*f.scale), resource.DecimalSI)}})
	}
	if f.one(4) {
		c.Capacity.Unschedulable = []v1beta1.UnschedulablePods{{Kind: "ReplicaSet", Namespace: "default", Name: fmt.Sprintf("w%02d", f.rng.Intn(20)), Pods: int32(1 + f.rng.Intn(4))}}
	}
}

func (f *fleet) policy(name string) *v1beta1.PlacementPolicy {
	spec := v1beta1.PlacementPolicySpec{Priority: int32(f.rng.Intn(3))}
	if f.one(2) {
		spec.ReplicaPreferences = &v1beta1.ReplicaPreferences{Rebalance: f.one(3), Clusters: map[string]v1beta1.ClusterPreferences{"*": {Weight: 1}}}
		most, one := f.rng.Int63n(12), f.Clusters[f.rng.Intn(len(f.Clusters))].Name
		spec.ReplicaPreferences.Clusters[one] = v1beta1.ClusterPreferences{Weight: f.rng.Int63n(4), MaxReplicas: &most, MinReplicas: min(most, f.rng.Int63n(4))}
		if f.one(4) {
			delete(spec.ReplicaPreferences.Clusters, "*")
		}
	}
	if f.one(3) {
		spec.Clusters = &v1beta1.ClusterAffinity{}
		for _, c := range f.Clusters {
			if f.one(2) {
				spec.Clusters.Names = append(spec.Clusters.Names, c.Name)
			}
		}
	}
	for _, by := range []v1beta1.SpreadBy{v1beta1.SpreadByRegion, v1beta1.SpreadByZone, v1beta1.SpreadByCluster} {
		if f.one(4) {
			c := v1beta1.SpreadConstraint{SpreadBy: by, MinGroups: int32(f.rng.Intn(3))}
			if f.one(2) {
				most := max(c.MinGroups, int32(1+f.rng.Intn(3)))
				c.MaxGroups = &most
			}
			spec.SpreadConstraints = append(spec.SpreadConstraints, c)
		}
	}
	if f.one(3) {
		spec.Failover = &v1beta1.FailoverPolicy{Disabled: f.one(3), Failback: []v1beta1.Failback{"", v1beta1.FailbackImmediate, v1beta1.FailbackNever}[f.rng.Intn(3)]}
	}
	if f.one(3) {
		spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
	}
	return policyFor(name, spec)
}

func (f *fleet) workload(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": map[string]any{
		"replicas": f.rng.Int63n(15),
		"template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": fmt.Sprintf("%dm", 100*f.rng.Intn(12))}}}}}},
	}}}
	if f.one(8) {
		u.SetAPIVersion("batch/v1")
		u.SetKind("Job")
		u.Object["spec"] = map[string]any{"parallelism": 1 + f.rng.Int63n(5), "completions": int64(9), "completionMode": []string{"Indexed", "NonIndexed"}[f.rng.Intn(2)]}
	}
	u.SetNamespace("default")
	u.SetName(name)
	u.SetLabels(map[string]string{"policy": fmt.Sprint("p", f.rng.Intn(12))})
	if f.one(8) {
		u.SetAnnotations(map[string]string{scheduler.Preferences(u.GroupVersionKind().GroupKind()): fmt.Sprintf(
			`{"rebalance":%t,"clusters":{"*":{"weight":1,"minReplicas":%d}}}`, f.one(2), f.rng.Intn(2))})
	}
	return u
}

func (f *fleet) service(name string) *unstructured.Unstructured {
	var all v1beta1.ServiceIngresses
	for i, c := range f.Clusters {
		one := v1beta1.ClusterServiceIngress{Cluster: c.Name}
		if f.one(4) {
			one.Items = []corev1.LoadBalancerIngress{}
		} else if f.one(2) {
			one.Items = []corev1.LoadBalancerIngress{{IP: fmt.Sprintf("192.0.2.%d", i+1)}}
		}
		if f.one(2) {
			all.Items = append(all.Items, one)
		}
	}
	text, _ := json.Marshal(all)
	u := service(name, string(text))
	if f.one(3) {
		a := u.GetAnnotations()
		a[v1beta1.DNSAnnotation] = fmt.Sprintf(`{"strategy":%q,"hosts":["h%d.example.test"]}`, []string{"Weighted", "Nearest", "Failover"}[f.rng.Intn(3)], f.rng.Intn(4))
		u.SetAnnotations(a)
	}
	return u
}

// settle places all objects, some for the first time, and then all again.
func (f *fleet) settle() {
	for range 2 {
		w := scheduler.NewWorld(f.Clusters, f.Policies)
		for i, d := range scheduler.DecideAll(f.Objects, w, f.Now.Add(-time.Hour)) {
			if o := &f.Objects[i]; !f.one(30) {
				next := d.Placement
				o.Current = &next
			}
		}
	}
}

// change changes something of the world.
func (f *fleet) change() {
	i := f.rng.Intn(len(f.Clusters))
	c := f.Clusters[i]
	switch f.rng.Intn(7) {
	case 0:
		f.room(i)
	case 1:
		c.Spec.Taints = []corev1.Taint{{Key: "k", Effect: []corev1.TaintEffect{corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule}[f.rng.Intn(2)]}}
	case 2:
		long := metav1.NewTime(f.Now.Add(-time.Hour))
		c.Status.Conditions[0].Status = corev1.ConditionTrue
		c.Status.Failover = &v1beta1.ClusterFailover{Phase: []v1beta1.FailoverPhase{v1beta1.PhaseFailedOver, v1beta1.PhaseGracePeriod, v1beta1.PhaseFailoverSuspended, v1beta1.PhaseFailingBack}[f.rng.Intn(4)],
			Percent: []int32{0, 10, 50}[f.rng.Intn(3)], Since: long, LostAt: &long}
		if c.Status.Failover.Phase != v1beta1.PhaseFailingBack {
			c.Status.Conditions[0].Status = corev1.ConditionFalse
		}
	case 3:
		if len(f.Policies) > 0 {
			f.Policies[f.rng.Intn(len(f.Policies))] = f.policy(fmt.Sprint("p", f.rng.Intn(6)))
		}
	case 4:
		f.Clusters = append(f.Clusters[:i:i], f.Clusters[i+1:]...)
		if len(f.Clusters) == 0 {
			f.Clusters = []*v1beta1.Cluster{c}
		}
	default:
		f.Objects[f.rng.Intn(len(f.Objects))].Replicas = f.rng.Int63n(15)
	}
}

// losses returns questions for a review: a zone, a region, and a drained cluster.
func (f *fleet) losses() (all []v1beta1.FailoverReviewSpec) {
	seen := map[string]bool{}
	for _, c := range f.Clusters {
		zone := c.Status.Region + "/" + strings.Join(c.Status.Zones, "")
		for _, spec := range []v1beta1.FailoverReviewSpec{{Zones: []string{zone}}, {Regions: []string{c.Status.Region}}} {
			if key := fmt.Sprint(spec); !seen[key] {
				seen[key] = true
				all = append(all, spec)
			}
		}
	}
	f.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return append(all[:min(len(all), 1)], v1beta1.FailoverReviewSpec{Clusters: []string{f.Clusters[f.rng.Intn(len(f.Clusters))].Name}, Drained: true})
}
