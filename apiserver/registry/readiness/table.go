package readiness

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/table"
)

// tables are the columns of `kubectl get failoverreadiness`, fit for a wall screen.
var tables = table.Convertor[*v1beta1.FailoverReadiness]{Row: row, Columns: []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name: the level, then where."},
	{Name: "Survivable", Type: "string", Description: "Whether the loss would be survived now: True, False or Unknown, and why not."},
	{Name: "Clusters", Type: "integer", Description: "Clusters that would be lost."},
	{Name: "Replicas", Type: "string", Description: "Replicas that would be placed elsewhere, of those that would be lost."},
	{Name: "Unschedulable", Type: "integer", Description: "Replicas that would fit nowhere."},
	{Name: "Names", Type: "string", Description: "Names that others would serve, of those that are served there."},
	{Name: "Headroom", Type: "string", Description: "What would be left free elsewhere, of the resource of which least would."},
	{Name: "Drilled", Type: "string", Description: "Time since the last drill that succeeded, or why there is none that counts."},
	{Name: "Evaluated", Type: "string", Description: "Time since it was found to be so; nothing of it has changed since."},
	{Name: "First full", Type: "string", Priority: 1, Description: "The cluster that would have least left."},
	{Name: "Worst", Type: "string", Priority: 1, Description: "Objects that would fare worst."},
}}

// maxWorst is how many objects a row shows.
const maxWorst = 2

func row(r *v1beta1.FailoverReadiness) []any {
	s := &r.Status
	headroom, first, names, evaluated := "<unknown>", "", "-", "never"
	if h := s.Headroom; h != nil {
		headroom, first = fmt.Sprintf("%d%% %s", h.Percent, h.Resource), h.Cluster
	}
	if s.Names != nil {
		names = fmt.Sprintf("%d/%d", s.Names.Survive, s.Names.Served)
	}
	if s.EvaluatedAt != nil {
		evaluated = metatable.ConvertToHumanReadableDateType(*s.EvaluatedAt)
	}
	worst := make([]string, 0, len(s.Worst))
	for _, o := range s.Worst {
		worst = append(worst, fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name))
	}
	return []any{r.Name, survivable(s), int64(s.Clusters), fmt.Sprintf("%d/%d", s.Placed, s.Replicas), s.Unschedulable, names, headroom, drilled(s), evaluated,
		table.OrNone(first), table.OrNone(table.FirstOf(maxWorst, worst, ", "))}
}

// survivable returns the condition in a word, with its reason unless it is True.
func survivable(s *v1beta1.FailoverReadinessStatus) string {
	c := meta.FindStatusCondition(s.Conditions, v1beta1.ReadinessSurvivable)
	switch {
	case c == nil:
		return "Unknown"
	case c.Status == metav1.ConditionTrue:
		return "True"
	}
	return string(c.Status) + " " + c.Reason
}

func drilled(s *v1beta1.FailoverReadinessStatus) string {
	c := meta.FindStatusCondition(s.Conditions, v1beta1.ReadinessDrilled)
	switch {
	case s.LastDrill != nil && s.LastDrill.SucceededAt != nil:
		return metatable.ConvertToHumanReadableDateType(*s.LastDrill.SucceededAt) + " ago"
	case s.LastDrill != nil:
		return s.LastDrill.Outcome
	case c != nil && c.Reason == v1beta1.ReadinessNeverDrilled:
		return "never"
	}
	return "<unknown>"
}
