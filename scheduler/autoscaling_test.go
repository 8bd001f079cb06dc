package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"federation/apiserver/apis/federation/v1beta1"
)

// An autoscaler goes nowhere if the policy that governs it scales at the federation, and back to its clusters when it no longer does. It
// takes over what clusters may have of it.
func TestAutoscalersStayAtTheFederationByPolicy(t *testing.T) {
	federation := v1beta1.PlacementPolicySpec{Autoscaling: &v1beta1.AutoscalingPolicy{Scope: v1beta1.AutoscalingScopeFederation}}
	clusters := []*v1beta1.Cluster{cluster("a", 0), cluster("b", 0)}
	placed := &v1beta1.Placement{Clusters: numbers{"a": 1, "b": 1}, Policy: "gold"}
	for name, c := range map[string]struct {
		kind    string
		scope   v1beta1.AutoscalingScope
		pending bool
		current *v1beta1.Placement
		want    string // at the federation, takes over, clusters
	}{
		"a new one":                 {"HorizontalPodAutoscaler", "Federation", true, nil, "true false 0"},
		"one without a placement":   {"HorizontalPodAutoscaler", "Federation", false, nil, "true true 0"},
		"one in clusters":           {"HorizontalPodAutoscaler", "Federation", false, placed, "true true 0"},
		"one everywhere":            {"HorizontalPodAutoscaler", "Federation", false, &v1beta1.Placement{Everywhere: true}, "true true 0"},
		"one that stays there":      {"HorizontalPodAutoscaler", "Federation", false, &v1beta1.Placement{AtFederation: true, Policy: "gold"}, "true false 0"},
		"one that goes back":        {"HorizontalPodAutoscaler", "Cluster", false, &v1beta1.Placement{AtFederation: true, Policy: "gold"}, "false false 2"},
		"the default":               {"HorizontalPodAutoscaler", "", true, nil, "false false 2"},
		"what is not an autoscaler": {"PodDisruptionBudget", "Federation", true, nil, "false false 2"},
	} {
		o := plain("autoscaling/v2", c.kind)
		o.Pending, o.Current = c.pending, c.current
		spec := federation
		spec.Autoscaling = &v1beta1.AutoscalingPolicy{Scope: c.scope}
		p := governed(spec)
		p.Name, p.Namespace = "gold", o.Namespace
		p.Spec.ResourceSelectors = []v1beta1.ResourceSelector{{APIVersion: o.APIVersion, Kind: o.Kind}}
		d := Decide(o, NewWorld(clusters, []*v1beta1.PlacementPolicy{p}), time.Now())
		if got := fmt.Sprint(d.Placement.AtFederation, d.TakesOver, len(d.Placement.Clusters)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if why := fmt.Sprint(d.Reasons["a"]); d.Placement.AtFederation != strings.Contains(why, "for all clusters together") {
			t.Errorf("%s: reasons %s", name, why)
		}
		if c.current != nil && c.current.AtFederation == d.Placement.AtFederation && d.Changed {
			t.Errorf("%s: it is written again", name)
		}
		if back := c.current != nil && c.current.AtFederation != d.Placement.AtFederation && c.current.Policy != ""; back && d.Cause != "spec.autoscaling of the policy changed" {
			t.Errorf("%s: cause %q", name, d.Cause)
		}
	}
}

// A workload asks for what clusters have made before their autoscalers leave: no fewer than it asks for, no more than the maximum.
func TestTakeOver(t *testing.T) {
	read := func(text string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		return u
	}
	autoscaler := read(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {maxReplicas: 20}}`)
	for text, want := range map[string]string{
		`{spec: {replicas: 3}, status: {replicas: 12}}`: "12 false",
		`{spec: {replicas: 12}, status: {replicas: 12}, metadata: {annotations: {federation.kubernetes.io/placement: '{"clusters":{"a":3}}'}}}`:                   "12 false",
		`{spec: {replicas: 12}, status: {replicas: 12}, metadata: {annotations: {federation.kubernetes.io/placement: '{"clusters":{"a":7,"b":5}}'}}}`:             "12 true",
		`{spec: {replicas: 12}, status: {replicas: 12}, metadata: {annotations: {federation.kubernetes.io/placement: '{"clusters":{"a":7},"unschedulable":5}'}}}`: "12 true",
		`{spec: {replicas: 12}, status: {replicas: 14}, metadata: {annotations: {federation.kubernetes.io/placement: '{"clusters":{"a":7,"b":5}}'}}}`:             "14 false",
		`{spec: {replicas: 12}, status: {replicas: 5}, metadata: {annotations: {federation.kubernetes.io/placement: '{"clusters":{"a":7,"b":5}}'}}}`:              "12 true",
		`{spec: {replicas: 3}, status: {replicas: 99}}`:  "20 false",
		`{spec: {replicas: 30}, status: {replicas: 99}}`: "30 false",
		`{spec: {}, status: {}}`:                         "1 false",
	} {
		replicas, ready := TakeOver(autoscaler, read(text))
		if got := fmt.Sprint(replicas, ready); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
