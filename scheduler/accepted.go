package scheduler

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
)

// PolicyKind is what is known of a kind that a policy names: its resource, or why its objects are not spread.
type PolicyKind struct {
	Resource schema.GroupResource
	Err      error
}

// AcceptedCondition returns the condition whether the federation can do what a policy asks for. It names clusters that forbid a
// kind, and names of clusters that do not exist. kinds are those of its resourceSelectors, in their order; clusters have joined,
// ready or not.
func AcceptedCondition(p *v1beta1.PlacementPolicy, kinds []PolicyKind, clusters []*v1beta1.Cluster) metav1.Condition {
	var not, nowhere, partly []string
	for i, r := range p.Spec.ResourceSelectors {
		field := fmt.Sprintf("spec.resourceSelectors[%d]: %s %s: ", i, r.APIVersion, r.Kind)
		if err := kinds[i].Err; err != nil {
			not = append(not, field+err.Error())
			continue
		}
		switch why, all := forbiddingClusters(p, kinds[i].Resource, clusters); {
		case all:
			nowhere = append(nowhere, field+why)
		case why != "":
			partly = append(partly, field+why)
		}
	}
	out := metav1.Condition{Type: v1beta1.PolicyAccepted, Status: metav1.ConditionTrue, Reason: "Accepted", Message: "all kinds can be spread", ObservedGeneration: p.Generation}
	switch {
	case len(not) > 0:
		out.Status, out.Reason = metav1.ConditionFalse, "KindNotServed"
	case len(nowhere) > 0:
		out.Status, out.Reason = metav1.ConditionFalse, "KindForbidden"
	}
	says := slices.Concat(not, nowhere, partly)
	if reason, why := Impossible(p, clusters); reason != "" {
		says = append(says, why)
		if out.Status == metav1.ConditionTrue {
			out.Status, out.Reason = metav1.ConditionFalse, reason
		}
	}
	if len(says) == 0 {
		says = []string{out.Message}
	}
	if len(clusters) > 0 {
		says = append(says, p.Spec.Unknown(clusters)...)
	}
	out.Message = strings.Join(says, "; ")
	return out
}

// maxNamed is the maximum of clusters that a condition names.
const maxNamed = 10

// forbiddingClusters returns which of a policy's clusters forbid a kind; nowhere: each of them does.
func forbiddingClusters(p *v1beta1.PlacementPolicy, resource schema.GroupResource, all []*v1beta1.Cluster) (why string, nowhere bool) {
	var by []string
	clusters := 0
	for _, cluster := range all {
		if p.Spec.Clusters.Matches(cluster) {
			clusters++
			if slices.Contains(cluster.Status.InaccessibleResources, resource.String()) {
				by = append(by, cluster.Name)
			}
		}
	}
	if len(by) == 0 {
		return "", false
	}
	slices.Sort(by)
	names := strings.Join(by[:min(maxNamed, len(by))], ", ")
	if more := len(by) - maxNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	how := ""
	if v1beta1.FederatedKindOf(resource) == nil {
		how = " with --custom-kinds " + resource.String()
	}
	return fmt.Sprintf("forbidden by %s: join again%s", names, how), len(by) == clusters
}
