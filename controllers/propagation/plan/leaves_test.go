package plan

import (
	"testing"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestWhatPodsNeedLeavesAfterThem(t *testing.T) {
	config := parse(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}")
	here := map[string]int64{"a": 3}
	for _, c := range []struct {
		name     string
		policy   string
		workload v1beta1.Placement
		refers   string
		justNow  bool
		want     bool
	}{
		{name: "one policy moves both", policy: "p", workload: v1beta1.Placement{Policy: "p"}, want: true},
		{name: "the workload stays", policy: "p", workload: v1beta1.Placement{Policy: "p", Clusters: here}},
		{name: "the workload's move is not decided yet", policy: "p", workload: v1beta1.Placement{Policy: "p", Clusters: here}, justNow: true, want: true},
		{name: "that the policy governs the workload is not decided yet", policy: "p", workload: v1beta1.Placement{Clusters: here}, justNow: true, want: true},
		{name: "another policy governs the workload", policy: "p", workload: v1beta1.Placement{Policy: "q"}},
		{name: "no policy moves the object", workload: v1beta1.Placement{Clusters: here}, justNow: true},
		{name: "the workload that leaves refers to it", workload: v1beta1.Placement{}, refers: "settings", want: true},
		{name: "the workload that leaves refers to another", workload: v1beta1.Placement{}, refers: "others"},
	} {
		copy := parse(t, "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: web}\nspec: {replicas: 3, template: {spec: {volumes: [{name: v, configMap: {name: \""+c.refers+"\"}}]}}}")
		w := Workload{Kind: kind(t, "ReplicaSet"), Name: "web", Placement: &c.workload, Copy: copy}
		s := Source{Kind: kind(t, "ConfigMap"), Object: config, Placement: &v1beta1.Placement{Policy: c.policy}}
		if got := w.MayNeed(s, "a", c.justNow) && w.Keeps(s, c.justNow) != ""; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
