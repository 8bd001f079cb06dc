package drill

import (
	"slices"
	"strings"

	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/status"
	"federation/apiserver/registry/store"
	"federation/apiserver/registry/table"
)

// NewREST returns the storage of failoverdrills and of their subresources status, abort and approval.
func NewREST(options generic.RESTOptionsGetter) (drills *store.REST, ofStatus, abort, approval *status.REST, err error) {
	s := newStrategy()
	drills, err = store.New(store.Kind{
		Object: &v1beta1.FailoverDrill{}, List: &v1beta1.FailoverDrillList{}, Resource: v1beta1.FailoverDrillsResource, ShortName: "fd", Strategy: s, Tables: tables,
	}, options)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	aborts := decisionStrategy{strategy: s, of: func(s *v1beta1.FailoverDrillStatus) **v1beta1.DrillDecision { return &s.Abort }, path: field.NewPath("status", "abort")}
	approves := decisionStrategy{strategy: s, of: func(s *v1beta1.FailoverDrillStatus) **v1beta1.DrillDecision { return &s.Approved }, path: field.NewPath("status", "approved")}
	return drills, status.New(drills.Store, statusStrategy{strategy: s}), status.New(drills.Store, aborts), status.New(drills.Store, approves), nil
}

// tables are the columns of `kubectl get failoverdrills`.
var tables = table.Convertor[*v1beta1.FailoverDrill]{
	Columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the drill."},
		{Name: "Scope", Type: "string", Description: "What is taken out of service."},
		{Name: "Method", Type: "string", Description: "How it is taken out."},
		{Name: "Phase", Type: "string", Description: "Where the drill stands."},
		{Name: "Outcome", Type: "string", Description: "How it ended."},
		{Name: "Reason", Type: "string", Description: "What it waits for, or why it ended so."},
		{Name: "Age", Type: "string", Description: "Time since the drill was made."},
	},
	Row: func(d *v1beta1.FailoverDrill) []any {
		phase := d.Status.Phase
		if phase == "" {
			phase = v1beta1.DrillPending
		}
		return []any{d.Name, scope(&d.Spec.Scope), string(d.Spec.Method), string(phase), table.OrNone(string(d.Status.Outcome)), table.OrNone(d.Status.Reason),
			metatable.ConvertToHumanReadableDateType(d.CreationTimestamp)}
	},
}

// maxWords is how many names a cell shows.
const maxWords = 5

func scope(s *v1beta1.FailoverDrillScope) string {
	var parts []string
	for kind, names := range map[string][]string{"": s.Clusters, "zone ": s.Zones, "region ": s.Regions} {
		if len(names) > 0 {
			parts = append(parts, kind+table.FirstOf(maxWords, names, ","))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}
