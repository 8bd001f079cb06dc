package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestReportAsksForNoWriteWhenOnlyTimePassed(t *testing.T) {
	inv := &Inventory{Zones: []string{"a"}, Region: "east", Version: "v1.36.3"}
	s := Judge(State{}, words["ok"], DefaultPolicy(), start).State
	first, changed := Report(v1beta1.ClusterStatus{}, nil, s, inv)
	if !changed {
		t.Error("the first status is no change")
	}
	s = Judge(s, words["ok"], DefaultPolicy(), start.Add(time.Hour)).State
	if _, changed := Report(first, nil, s, inv); changed {
		t.Error("a second good check is a change")
	}
	if _, changed := Report(first, nil, s, &Inventory{Zones: []string{"a", "b"}, Region: "east", Version: "v1.36.3"}); !changed {
		t.Error("a new zone is no change")
	}
	inv.Forbidden = []string{"widgets.example.com"}
	if forbids, changed := Report(first, nil, s, inv); !changed || !slices.Equal(forbids.InaccessibleResources, inv.Forbidden) {
		t.Errorf("what it forbids is no change: %v", forbids.InaccessibleResources)
	}
}

// Missing fences are a condition that keeps its time, also while the cluster is away, and goes with them.
func TestReportSaysThatFencesAreMissing(t *testing.T) {
	s := Judge(State{}, words["ok"], DefaultPolicy(), start).State
	first, _ := Report(v1beta1.ClusterStatus{}, nil, s, &Inventory{Unfenced: true})
	c := findCondition(first.Conditions, v1beta1.ClusterFencesMissing)
	if c == nil || c.Status != "True" || c.Reason != v1beta1.ReasonNotRefused || c.LastTransitionTime.Time != start {
		t.Fatalf("%+v", first.Conditions)
	}
	later := Judge(s, words["ok"], DefaultPolicy(), start.Add(time.Hour)).State
	if again, changed := Report(first, nil, later, &Inventory{Unfenced: true}); changed || findCondition(again.Conditions, v1beta1.ClusterFencesMissing).LastTransitionTime != c.LastTransitionTime {
		t.Errorf("changed: %t, %+v", changed, again.Conditions)
	}
	if away, _ := Report(first, nil, later, nil); findCondition(away.Conditions, v1beta1.ClusterFencesMissing) == nil {
		t.Error("it is forgotten while the cluster is away")
	}
	if fenced, changed := Report(first, nil, later, &Inventory{}); !changed || findCondition(fenced.Conditions, v1beta1.ClusterFencesMissing) != nil {
		t.Errorf("with fences: %+v", fenced.Conditions)
	}
}

// An apply keeps items of a list where they were: NodeHeartbeatsStale comes to stand after TopologyMismatch. Compared in order, each probe would write.
func TestReportComparesConditionsByType(t *testing.T) {
	lies, west := &Inventory{Region: "east"}, &v1beta1.ClusterTopology{Region: "west"}
	s := Judge(State{}, words["ok"], DefaultPolicy(), start).State
	silent := condition(v1beta1.ClusterNodeHeartbeatsStale, "True", v1beta1.ReasonLeasesNotRenewed, "1 of 2")
	s.Heartbeats = &silent
	stored, _ := Report(v1beta1.ClusterStatus{}, west, s, lies)
	if len(stored.Conditions) != 4 {
		t.Fatalf("%+v", stored.Conditions)
	}
	for range stored.Conditions {
		stored.Conditions = append(stored.Conditions[1:], stored.Conditions[0])
		if _, changed := Report(stored, west, s, lies); changed {
			t.Errorf("it is written again with %s first", stored.Conditions[0].Type)
		}
	}
	stored.Conditions[2] = stored.Conditions[1]
	if _, changed := Report(stored, west, s, lies); !changed {
		t.Error("one is missing, another there twice, and that is no change")
	}
}

func TestReportKeepsTheInventoryOfAnUnreachableCluster(t *testing.T) {
	prev := v1beta1.ClusterStatus{Zones: []string{"a"}, Region: "east", KubernetesVersion: "v1.36.3", InaccessibleResources: []string{"widgets.example.com"}}
	s := State{Failures: 1}
	s = Judge(s, words["refused"], DefaultPolicy(), start).State
	got, changed := Report(prev, nil, s, nil)
	if !changed || !slices.Equal(got.Zones, prev.Zones) || got.Region != "east" || got.KubernetesVersion != "v1.36.3" || !slices.Equal(got.InaccessibleResources, prev.InaccessibleResources) {
		t.Errorf("status %+v, changed %v; want zones, region and version of %+v", got, changed, prev)
	}
}

// What others know of a cluster changes nothing of what a check found; another cluster, or another who checked, does.
func TestStillHolds(t *testing.T) {
	s := Judge(State{}, words["ok"], DefaultPolicy(), start).State
	status, _ := Report(v1beta1.ClusterStatus{}, nil, s, &Inventory{})
	status.UID = "u"
	checked := &v1beta1.Cluster{Status: status}
	for name, tc := range map[string]struct {
		change func(*v1beta1.Cluster)
		holds  bool
	}{
		"nothing": {func(*v1beta1.Cluster) {}, true},
		"a condition of others": {func(c *v1beta1.Cluster) {
			c.Status.Conditions = append(c.Status.Conditions, v1beta1.ClusterCondition{Type: v1beta1.ClusterPartiallyReachable})
		}, true},
		"its room":              {func(c *v1beta1.Cluster) { c.Status.Capacity = &v1beta1.ClusterCapacity{} }, true},
		"an annotation":         {func(c *v1beta1.Cluster) { c.Annotations = map[string]string{"a": "b"} }, true},
		"another Cluster":       {func(c *v1beta1.Cluster) { c.UID = "other" }, false},
		"another address":       {func(c *v1beta1.Cluster) { c.Spec.SecretRef = &corev1.LocalObjectReference{Name: "other"} }, false},
		"another cluster":       {func(c *v1beta1.Cluster) { c.Status.UID = "other" }, false},
		"another one's verdict": {func(c *v1beta1.Cluster) { findCondition(c.Status.Conditions, v1beta1.ClusterReady).Status = "False" }, false},
	} {
		is := checked.DeepCopy()
		if tc.change(is); StillHolds(checked, is) != tc.holds {
			t.Errorf("with %s changed, it holds: %t", name, !tc.holds)
		}
	}
}

func TestTopology(t *testing.T) {
	const newZone, newRegion = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
	const oldZone, oldRegion = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
	for name, test := range map[string]struct {
		nodes  []map[string]string
		zones  []string
		region string
	}{
		"no nodes":               {},
		"sorted, once each":      {[]map[string]string{{newZone: "b", newRegion: "east"}, {newZone: "a", newRegion: "east"}, {newZone: "b", newRegion: "east"}}, []string{"a", "b"}, "east"},
		"an unlabelled node":     {[]map[string]string{{}, nil, {newZone: "a", newRegion: "east"}}, []string{"a"}, "east"},
		"old labels":             {[]map[string]string{{oldZone: "a", oldRegion: "east"}}, []string{"a"}, "east"},
		"new labels win":         {[]map[string]string{{oldZone: "x", newZone: "a", oldRegion: "y", newRegion: "east"}}, []string{"a"}, "east"},
		"region of most nodes":   {[]map[string]string{{newRegion: "east"}, {newRegion: "west"}, {newRegion: "west"}}, nil, "west"},
		"a tie goes by the name": {[]map[string]string{{newRegion: "west"}, {newRegion: "east"}}, nil, "east"},
		"no labels":              {[]map[string]string{{newZone: "a b", newRegion: "\x1b[2J"}, {newZone: strings.Repeat("a", 64), newRegion: "east/1"}}, nil, ""},
		"zone without a region":  {[]map[string]string{{newZone: "a"}}, []string{"a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			zones, region := Topology(test.nodes)
			if !slices.Equal(zones, test.zones) || region != test.region {
				t.Errorf("got %v %q, want %v %q", zones, region, test.zones, test.region)
			}
		})
	}
}

// Zones are names in DNS: a cluster could ask for any number of them.
func TestZonesAreBounded(t *testing.T) {
	var nodes []map[string]string
	for i := range 1000 {
		nodes = append(nodes, map[string]string{"topology.kubernetes.io/zone": fmt.Sprintf("zone-%03d", i)})
	}
	if zones, _ := Topology(nodes); len(zones) != 16 || zones[15] != "zone-015" {
		t.Errorf("%d zones: %v", len(zones), zones)
	}
}

// What a cluster answers is shown to people and stored.
func TestDetailsAreBounded(t *testing.T) {
	for answer := range Misconfigured + 1 {
		for _, c := range conditions(Evidence{Answer: answer, Detail: "\x1b[2J" + strings.Repeat("x", 16<<10)}) {
			if len(c.Message) > 256 || strings.Contains(c.Message, "\x1b") {
				t.Errorf("%d: %d bytes", answer, len(c.Message))
			}
		}
	}
}

// What an operator has pinned is so: a cluster could say that it is in another region, and be in the answers of names there.
func TestPinnedTopology(t *testing.T) {
	at := func(s State) State { return Judge(s, words["ok"], DefaultPolicy(), start).State }
	lies := &Inventory{Zones: []string{"east-1a", "west-1a"}, Region: "east"}
	west := &v1beta1.ClusterTopology{Region: "west", Zones: []string{"west-1b", "west-1a"}}
	got, _ := Report(v1beta1.ClusterStatus{}, west, at(State{}), lies)
	if got.Region != "west" || !slices.Equal(got.Zones, []string{"west-1a", "west-1b"}) {
		t.Errorf("region %s, zones %v", got.Region, got.Zones)
	}
	c := findCondition(got.Conditions, v1beta1.ClusterTopologyMismatch)
	if c == nil || c.Reason != "NodeLabelsDiffer" || c.LastTransitionTime.IsZero() || !strings.Contains(c.Message, `region "east" is not "west", zone "east-1a" is not among`) {
		t.Fatalf("%v", c)
	}
	if _, changed := Report(got, west, at(State{}), lies); changed {
		t.Error("the same again is a change")
	}
	if away, _ := Report(got, west, State{}, nil); findCondition(away.Conditions, v1beta1.ClusterTopologyMismatch) == nil || away.Region != "west" {
		t.Errorf("while it is away: %+v", away)
	}
	if s := Restore(got.Conditions); findCondition(s.Conditions, v1beta1.ClusterTopologyMismatch) != nil {
		t.Error("it would be there for ever")
	}
	honest, changed := Report(got, west, at(State{}), &Inventory{Zones: []string{"west-1a"}, Region: "west"})
	if !changed || findCondition(honest.Conditions, v1beta1.ClusterTopologyMismatch) != nil || len(honest.Zones) != 2 {
		t.Errorf("%+v", honest)
	}
	if free, _ := Report(got, nil, at(State{}), lies); free.Region != "east" || len(free.Zones) != 2 || findCondition(free.Conditions, v1beta1.ClusterTopologyMismatch) != nil {
		t.Errorf("not pinned: %+v", free)
	}
	if silent, _ := Report(v1beta1.ClusterStatus{}, west, at(State{}), &Inventory{}); silent.Region != "west" || findCondition(silent.Conditions, v1beta1.ClusterTopologyMismatch) != nil {
		t.Errorf("nodes without labels: %+v", silent)
	}
}

// Times are stored in seconds: a check in the same second cannot be told from the one before.
func TestCheckedLater(t *testing.T) {
	at := time.Unix(1000, 0)
	status := func(ready corev1.ConditionStatus, after time.Duration) v1beta1.ClusterStatus {
		return v1beta1.ClusterStatus{Conditions: []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: ready, LastProbeTime: metav1.NewTime(at.Add(after))}}}
	}
	was := status(corev1.ConditionTrue, 0)
	for name, test := range map[string]struct {
		is   v1beta1.ClusterStatus
		want bool
	}{
		"a second later":      {status(corev1.ConditionTrue, time.Second), true},
		"in the same second":  {status(corev1.ConditionTrue, 900*time.Millisecond), false},
		"later, and not good": {status(corev1.ConditionFalse, time.Minute), false},
		"never":               {v1beta1.ClusterStatus{}, false},
	} {
		if got := CheckedLater(test.is, was); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !CheckedLater(was, v1beta1.ClusterStatus{}) {
		t.Error("the first check is not later than none")
	}
}
