package policy

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/table"
)

// tables are the columns of `kubectl get placementpolicies`.
var tables = table.Convertor[*v1beta1.PlacementPolicy]{Row: row, Columns: []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the policy."},
	{Name: "Kinds", Type: "string", Description: "Kinds of the objects that are selected."},
	{Name: "Clusters", Type: "string", Description: "The clusters that may be used."},
	{Name: "Objects", Type: "integer", Description: "Objects that the policy governs."},
	{Name: "Accepted", Type: "string", Description: "Whether the federation can do what the policy says: True, False, or Unknown before it looked."},
	{Name: "Age", Type: "string", Description: "Time since the policy was made."},
	{Name: "Priority", Type: "integer", Priority: 1, Description: "Of two policies that select an object, the one with the higher priority governs it."},
	{Name: "Spread", Type: "string", Priority: 1, Description: "Over what objects are spread."},
	{Name: "Failback", Type: "string", Priority: 1, Description: "How replicas come back to a cluster that has returned."},
	{Name: "Rollout", Type: "string", Priority: 1, Description: "How changes get to the clusters."},
}}

// maxWords is how many names a cell shows.
const maxWords = 3

func row(p *v1beta1.PlacementPolicy) []any {
	return []any{p.Name, kinds(p), clusters(p.Spec.Clusters), p.Status.Objects, accepted(p),
		metatable.ConvertToHumanReadableDateType(p.CreationTimestamp), p.Spec.Priority, spread(p), failback(p), rollout(p)}
}

func kinds(p *v1beta1.PlacementPolicy) string {
	var names []string
	for _, s := range p.Spec.ResourceSelectors {
		if !slices.Contains(names, s.Kind) {
			names = append(names, s.Kind)
		}
	}
	return table.FirstOf(maxWords, names, ",")
}

func clusters(a *v1beta1.ClusterAffinity) string {
	if a == nil {
		return "<all>"
	}
	var terms []string
	for _, t := range []struct {
		word  string
		names []string
	}{{"", a.Names}, {"zone ", a.Zones}, {"region ", a.Regions}} {
		if len(t.names) > 0 {
			terms = append(terms, t.word+table.FirstOf(maxWords, t.names, ","))
		}
	}
	if a.LabelSelector != nil {
		terms = append(terms, metav1.FormatLabelSelector(a.LabelSelector))
	}
	if len(terms) == 0 {
		return "<all>"
	}
	return strings.Join(terms, "; ")
}

func accepted(p *v1beta1.PlacementPolicy) string {
	if c := meta.FindStatusCondition(p.Status.Conditions, v1beta1.PolicyAccepted); c != nil {
		return string(c.Status)
	}
	return "Unknown"
}

func spread(p *v1beta1.PlacementPolicy) string {
	var by []string
	for _, c := range p.Spec.SpreadConstraints {
		by = append(by, string(c.SpreadBy))
	}
	return table.OrNone(strings.Join(by, ","))
}

func failback(p *v1beta1.PlacementPolicy) string {
	switch f := p.Spec.Failover; {
	case f == nil:
	case f.Disabled:
		return "<no failover>"
	case f.Failback != "":
		return string(f.Failback)
	}
	return string(v1beta1.FailbackStaged)
}

func rollout(p *v1beta1.PlacementPolicy) string {
	word := string(v1beta1.RolloutAllAtOnce)
	if r := p.Spec.Rollout; r != nil {
		if r.Strategy != "" {
			word = string(r.Strategy)
		}
		if r.Paused {
			word += ",Paused"
		}
	}
	return word
}
