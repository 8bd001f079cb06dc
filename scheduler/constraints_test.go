package scheduler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler/apportion"
)

// inRegions returns clusters named REGION-ZONE, one for each name.
func inRegions(names ...string) (all []*v1beta1.Cluster) {
	for _, name := range names {
		c := cluster(name, 0)
		region, zone, _ := strings.Cut(name, "-")
		c.Status.Region, c.Status.Zones = region, []string{zone}
		all = append(all, c)
	}
	return all
}

// A divided object has replicas in as many groups as its constraints require, if it has so many replicas and clusters that can have them, and in
// no more than they allow. Where the lower bounds cannot be met it says so.
func TestDecide_MeetsSpreadConstraints(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		clusters := inRegions([]string{"east-a", "east-b", "north-a", "south-a", "west-a", "west-b"}[:2+random.IntN(5)]...)
		prefs := &v1beta1.ReplicaPreferences{Rebalance: random.IntN(2) == 0, Clusters: map[string]v1beta1.ClusterPreferences{"*": {Weight: 1}}}
		able := map[string]bool{}
		for _, c := range clusters {
			switch able[c.Name] = true; random.IntN(6) {
			case 0:
				able[c.Name], c.Status.Capacity = false, &v1beta1.ClusterCapacity{}
			case 1:
				able[c.Name], prefs.Clusters[c.Name] = false, v1beta1.ClusterPreferences{Weight: 1, MaxReplicas: new(int64(0))}
			case 2:
				prefs.Clusters[c.Name] = v1beta1.ClusterPreferences{Weight: 100}
			}
		}
		by := []v1beta1.SpreadBy{v1beta1.SpreadByRegion, v1beta1.SpreadByCluster}[random.IntN(2)]
		least, most := int32(random.IntN(4)), int32(0)
		if random.IntN(2) == 0 {
			most = max(least, 1) + int32(random.IntN(2))
		}
		p := governed(v1beta1.PlacementPolicySpec{ReplicaPreferences: prefs, SpreadConstraints: []v1beta1.SpreadConstraint{groups(by, least, most)}})
		o := replicaSet(random.Int64N(9), nil)
		d := Decide(o, NewWorld(clusters, []*v1beta1.PlacementPolicy{p}), now)
		used, can := map[string]bool{}, map[string]bool{}
		for _, c := range clusters {
			if group := apportion.GroupOf(c, by); d.Placement.Clusters[c.Name] > 0 {
				used[group] = true
			} else if able[c.Name] {
				can[group] = true
			}
		}
		maps.Copy(can, used)
		asked := min(int(least), int(o.Replicas))
		if len(used) < min(asked, len(can)) || most > 0 && len(used) > int(most) {
			t.Fatalf("%d replicas in %v, from %d to %d groups by %s, and %v can be used", o.Replicas, d.Placement.Clusters, least, most, by,
				slices.Sorted(maps.Keys(can)))
		}
		if noted := strings.Contains(strings.Join(d.Notes, "; "), "that the spread constraint asks for can be used"); noted != (len(can) < asked && asked > 1) {
			t.Fatalf("%d groups can be used, and %d are asked for: notes %q", len(can), asked, d.Notes)
		}
	}
}

// Whether constraints are met, and by what, is among the reasons of the clusters.
func TestDecide_ReasonsOfSpreadConstraints(t *testing.T) {
	prefs := &v1beta1.ReplicaPreferences{Rebalance: true, Clusters: map[string]v1beta1.ClusterPreferences{"east-a": {Weight: 100}, "*": {Weight: 1}}}
	p := governed(v1beta1.PlacementPolicySpec{ReplicaPreferences: prefs, SpreadConstraints: []v1beta1.SpreadConstraint{groups(v1beta1.SpreadByRegion, 2, 2)}})
	d := Decide(replicaSet(6, nil), NewWorld(inRegions("east-a", "west-a"), []*v1beta1.PlacementPolicy{p}), now)
	if !maps.Equal(d.Placement.Clusters, numbers{"east-a": 5, "west-a": 1}) || strings.Join(d.Reasons["west-a"],
		"; ") != "at least 1 by the spread constraint; 1 by minReplicas" {
		t.Errorf("%v, for %q", d.Placement.Clusters, d.Reasons)
	}
	d = Decide(replicaSet(6, nil), NewWorld(inRegions("east-a", "east-b"), []*v1beta1.PlacementPolicy{p}), now)
	if want := "only 1 of 2 regions that the spread constraint asks for can be used"; !slices.Contains(d.Notes, want) ||
		!slices.Contains(d.Placement.Notes, want) {
		t.Errorf("notes %q, want %q", d.Notes, want)
	}
}

// What has volumes stays in a cluster that has left the federation, and says so, until a policy asks for failover. All else goes elsewhere.
func TestDecide_DepartedClusters(t *testing.T) {
	const stays = "4 replicas stay in cluster gone, which has left the federation: the volumes are there, and no policy with spec.failover governs it"
	for name, c := range map[string]struct {
		volumes bool
		policy  *v1beta1.FailoverPolicy
		want    numbers
		note    string
	}{
		"with volumes":               {true, nil, numbers{"a": 2, "b": 2, "gone": 4}, stays},
		"without":                    {false, nil, numbers{"a": 4, "b": 4}, ""},
		"with volumes, and failover": {true, &v1beta1.FailoverPolicy{}, numbers{"a": 4, "b": 4}, ""},
		"with volumes, failover is off": {true, &v1beta1.FailoverPolicy{Disabled: true}, numbers{"a": 2, "b": 2, "gone": 4},
			"4 replicas stay in cluster gone, which has left the federation: the policy disables failover"},
		"without volumes, failover, off": {false, &v1beta1.FailoverPolicy{Disabled: true}, numbers{"a": 4, "b": 4}, ""},
	} {
		o := replicaSet(8, numbers{"a": 2, "b": 2, "gone": 4})
		o.Volumes = c.volumes
		var policies []*v1beta1.PlacementPolicy
		if c.policy != nil {
			policies = append(policies, governed(v1beta1.PlacementPolicySpec{Failover: c.policy}))
		}
		w := NewWorld([]*v1beta1.Cluster{cluster("a", 0), cluster("b", 0)}, policies)
		o.Current.Inputs = Decide(o, w, now).Placement.Inputs
		d := Decide(o, w, now)
		if !maps.Equal(d.Placement.Clusters, c.want) || strings.Join(d.Notes, "; ") != c.note || (len(d.Reasons["gone"]) > 0) != (c.note != "") {
			t.Errorf("%s: %v, notes %q, want %v, %q; for %q", name, d.Placement.Clusters, d.Notes, c.want, c.note, d.Reasons["gone"])
		}
	}
}

// An object that is created while a cluster returns gets its share there as the cluster returns, like those that were there before.
func TestDecide_CreatedWhileAClusterReturns(t *testing.T) {
	for _, failback := range []v1beta1.Failback{v1beta1.FailbackStaged, v1beta1.FailbackNever} {
		s := newStory(t, replicaSet(40, nil), "a", "b")
		s.policy = governed(v1beta1.PlacementPolicySpec{Failover: &v1beta1.FailoverPolicy{Failback: failback}})
		s.phase("a", v1beta1.PhaseFailingBack, 10)
		d := s.decide()
		if failback == v1beta1.FailbackNever {
			if !maps.Equal(d.Placement.Clusters, numbers{"a": 20, "b": 20}) || d.Placement.Home != nil {
				t.Errorf("%s: %v, home %v", failback, d.Placement.Clusters, d.Placement.Home)
			}
			continue
		}
		if !maps.Equal(d.Placement.Clusters, numbers{"a": 2, "b": 38}) || !maps.Equal(d.Placement.Home, numbers{"a": 20, "b": 20}) {
			t.Errorf("at 10 %%: %v, home %v", d.Placement.Clusters, d.Placement.Home)
		}
		s.phase("a", v1beta1.PhaseFailingBack, 50)
		d = s.expect(numbers{"a": 10, "b": 30}, "cluster a failing back, 50 %")
		if got := d.Reasons["b"]; !slices.Contains(got, "gives replicas back to clusters that fail back") {
			t.Errorf("b gives 8 back, for %q", got)
		}
		if got := s.decide().Reasons["b"]; !slices.Contains(got, "keeps more than its share until clusters have failed back") {
			t.Errorf("b keeps 10 more, for %q", got)
		}
		s.phase("a", v1beta1.PhaseServing, 0)
		if d = s.expect(numbers{"a": 20, "b": 20}, "cluster a failed back"); d.Placement.Home != nil {
			t.Errorf("home is still %v", d.Placement.Home)
		}
	}
}

// cutGains takes from what clusters gain, so much in sum, or all of it; what does not gain keeps what it has.
func TestCutGains(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	for range 2000 {
		goal, base := map[string]int64{}, map[string]int64{}
		gains := int64(0)
		for _, name := range []string{"a", "b", "c"} {
			goal[name], base[name] = random.Int64N(9), random.Int64N(9)
			gains += max(0, goal[name]-base[name])
		}
		n, was := random.Int64N(20), maps.Clone(goal)
		if cutGains(goal, base, n); sum(goal) != sum(was)-min(n, gains) {
			t.Fatalf("%d of %v over %v are cut to %v", n, was, base, goal)
		}
		for name := range goal {
			if goal[name] > was[name] || goal[name] < was[name] && goal[name] < base[name] {
				t.Fatalf("%d of %v over %v are cut to %v: %s", n, was, base, goal, name)
			}
		}
	}
}

// While no cluster can be used, replicas that should leave are counted and stay. What a decision keeps only since it was there is said too.
func TestDecide_StrandedAndKept(t *testing.T) {
	for name, c := range map[string]struct {
		rebalance bool
		last      numbers
		change    func(a, b *v1beta1.Cluster)
		stranded  int64
		keeps     bool
		note      string
	}{
		"all is well":              {false, numbers{"a": 3, "b": 3}, func(_, _ *v1beta1.Cluster) {}, 0, true, ""},
		"it moves as it likes":     {true, numbers{"a": 3, "b": 3}, func(_, _ *v1beta1.Cluster) {}, 0, false, ""},
		"no more than the minimum": {false, numbers{"a": 1}, func(_, _ *v1beta1.Cluster) {}, 0, false, ""},
		"new":                      {false, nil, func(_, _ *v1beta1.Cluster) {}, 0, false, ""},
		"both are drained": {true, numbers{"a": 4, "b": 2}, func(a, b *v1beta1.Cluster) {
			a.Spec.Taints, b.Spec.Taints = tainted("NoExecute"),
				tainted("NoExecute")
		}, 6, false, "no cluster can be used: all stays where it is"},
		"one is drained, one cordoned": {true, numbers{"a": 4, "b": 2}, func(a, b *v1beta1.Cluster) {
			a.Spec.Taints, b.Spec.Taints = tainted("NoExecute"), tainted("NoSchedule")
		}, 4, false, "no cluster can be used: all stays where it is"},
	} {
		a, b := cluster("a", 0), cluster("b", 0)
		c.change(a, b)
		o := replicaSet(6, c.last)
		o.Preferences = &v1beta1.ReplicaPreferences{Rebalance: c.rebalance, Clusters: map[string]v1beta1.ClusterPreferences{"*": {Weight: 1, MinReplicas: 1}}}
		d := Decide(o, NewWorld([]*v1beta1.Cluster{a, b}, nil), now)
		if d.Stranded != c.stranded || d.KeepsReplicas != c.keeps || strings.Join(d.Notes, "; ") != c.note || slices.Contains(d.Placement.Notes, c.note) {
			t.Errorf("%s: stranded %d, keeps %t, notes %q of %q; want %d, %t, %q", name, d.Stranded, d.KeepsReplicas, d.Notes, d.Placement.Notes,
				c.stranded, c.keeps, c.note)
		}
		if c.stranded > 0 && !maps.Equal(d.Placement.Clusters, c.last) {
			t.Errorf("%s: %v, want all where it is", name, d.Placement.Clusters)
		}
	}
}

// What a cluster can hold is what runs there and its free room. What was requested beyond that counts as running once it has had time to be
// reported as unschedulable, and is not.
func TestApplyCapacity_OverTime(t *testing.T) {
	for _, c := range []struct {
		name     string
		age      time.Duration
		overflow int64
		stuck    int32
		room     int64 // free
		want     int64 // the most of it
		until    time.Duration
	}{
		{"nothing was requested beyond", time.Second, 0, 0, 3, 7, 0},
		{"it may still be on its way", time.Second, 2, 0, 3, 7, 74 * time.Second},
		{"it may be so until then", overflowSettles - time.Second, 2, 0, 3, 7, time.Second},
		{"it runs", overflowSettles, 2, 0, 3, 9, 0},
		{"it is unschedulable", overflowSettles, 2, 2, 3, 4, 0},
		{"and so is some of the rest", overflowSettles, 2, 5, 3, 1, 0},
		{"more than all of it", overflowSettles, 2, 50, 3, 0, 0},
		{"a report that may be older", reportSettles - time.Second, 2, 5, 3, 4, time.Second},
		{"a report that is not", reportSettles, 2, 5, 3, 1, 0},
	} {
		a := cluster("a", 0)
		a.Status.Capacity = &v1beta1.ClusterCapacity{Free: []v1beta1.NodeClass{{Nodes: 1, Free: corev1.ResourceList{"pods": *resource.NewQuantity(c.room,
			resource.DecimalSI)}}}}
		if c.stuck > 0 {
			a.Status.Capacity.Unschedulable = []v1beta1.UnschedulablePods{{Kind: "ReplicaSet", Namespace: "default", Name: "web", Pods: c.stuck}}
		}
		o := replicaSet(9, numbers{"a": 4})
		o.Current.Overflow, o.Current.History = numbers{"a": c.overflow}, []v1beta1.PlacementDecision{{At: metav1.NewTime(now.Add(-c.age))}}
		w := NewWorld([]*v1beta1.Cluster{a}, nil)
		all := &seating{question: &question{o: &o, w: w, now: now}}
		s := candidate{cluster: a, last: 4}
		if all.applyCapacity(&s, w.Ledger.Demand(nil)); s.room == nil || *s.room != c.want || s.until != c.until {
			t.Errorf("%s: at most %v, look again in %s, want %d, %s", c.name, *s.room, s.until, c.want, c.until)
		}
	}
}

// Read takes the number of an object however it is written, knows which pods have volumes in their cluster, and names an annotation that it
// cannot read.
func TestRead_FieldsAndErrors(t *testing.T) {
	for name, c := range map[string]struct {
		kind     string
		spec     map[string]any
		replicas int64
		volumes  bool
	}{
		"none":                       {"Deployment", nil, 1, false},
		"of JSON":                    {"Deployment", map[string]any{"replicas": int64(7)}, 7, false},
		"of a typed object":          {"Deployment", map[string]any{"replicas": int32(7)}, 7, false},
		"a float":                    {"Deployment", map[string]any{"replicas": 7.0}, 7, false},
		"zero":                       {"Deployment", map[string]any{"replicas": int64(0)}, 0, false},
		"claims of a StatefulSet":    {"StatefulSet", map[string]any{"volumeClaimTemplates": []any{map[string]any{}}}, 1, true},
		"no claims of a StatefulSet": {"StatefulSet", map[string]any{"volumeClaimTemplates": []any{}}, 1, false},
		"a claim of the template":    {"Deployment", podVolumes("emptyDir", "persistentVolumeClaim"), 1, true},
		"no claim of the template":   {"Deployment", podVolumes("emptyDir", "configMap"), 1, false},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": c.kind, "spec": c.spec}}
		if o, err := Read(u); err != nil || o.Replicas != c.replicas || o.Volumes != c.volumes || !o.Divided {
			t.Errorf("%s: %d replicas, volumes %t, %v; want %d, %t", name, o.Replicas, o.Volumes, err, c.replicas, c.volumes)
		}
	}
	job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": podVolumes("persistentVolumeClaim")}}
	if o, err := Read(job); err != nil || o.Volumes {
		t.Errorf("a Job starts over anywhere: volumes %t, %v", o.Volumes, err)
	}
	for annotation, pending := range map[string]bool{"": false, v1beta1.PlacementPending: true, `{"clusters":{"a":1}}`: false} {
		job.SetAnnotations(map[string]string{v1beta1.PlacementAnnotation: annotation})
		if o, err := Read(job); err != nil || o.Pending != pending || (o.Current != nil) != strings.HasPrefix(annotation, "{") {
			t.Errorf("placement %q: pending %t, %v, %v", annotation, o.Pending, o.Current, err)
		}
	}
	for _, annotation := range []string{v1beta1.JobPreferencesAnnotation, v1beta1.ClusterSelectorAnnotation} {
		job.SetAnnotations(map[string]string{annotation: "{"})
		if _, err := Read(job); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("metadata.annotations[%s]", annotation)) {
			t.Errorf("what is wrong in %s: %v", annotation, err)
		}
	}
}

// podVolumes returns a spec whose pods have volumes of these sorts.
func podVolumes(sorts ...string) map[string]any {
	var volumes []any
	for _, sort := range sorts {
		volumes = append(volumes, map[string]any{"name": sort, sort: map[string]any{}})
	}
	return map[string]any{"template": map[string]any{"spec": map[string]any{"volumes": volumes}}}
}
