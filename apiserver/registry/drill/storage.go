package drill

import (
	"slices"
	"strings"

	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/status"
	"federation/apiserver/registry/table"
)

// REST serves failoverdrills.
type REST struct {
	*genericregistry.Store
}

var (
	_ rest.ShortNamesProvider = &REST{}
	_ rest.CategoriesProvider = &REST{}
)

// ShortNames returns the short name that kubectl knows.
func (*REST) ShortNames() []string { return []string{"fd"} }

// Categories adds drills to "kubectl get federation".
func (*REST) Categories() []string { return []string{"federation"} }

// NewREST returns the storage of failoverdrills and of their subresources status, abort and approval.
func NewREST(options generic.RESTOptionsGetter) (drills *REST, ofStatus, abort, approval *status.REST, err error) {
	s := newStrategy()
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &v1beta1.FailoverDrill{} },
		NewListFunc:               func() runtime.Object { return &v1beta1.FailoverDrillList{} },
		DefaultQualifiedResource:  v1beta1.FailoverDrillsResource.GroupResource(),
		SingularQualifiedResource: v1beta1.SchemeGroupVersion.WithResource("failoverdrill").GroupResource(),
		CreateStrategy:            s,
		UpdateStrategy:            s,
		DeleteStrategy:            s,
		ResetFieldsStrategy:       s,
		TableConvertor:            tables,
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options}); err != nil {
		return nil, nil, nil, nil, err
	}
	aborts := decisionStrategy{s, func(s *v1beta1.FailoverDrillStatus) **v1beta1.DrillDecision { return &s.Abort }, field.NewPath("status", "abort")}
	approves := decisionStrategy{s, func(s *v1beta1.FailoverDrillStatus) **v1beta1.DrillDecision { return &s.Approved }, field.NewPath("status", "approved")}
	return &REST{store}, status.New(store, statusStrategy{s}), status.New(store, aborts), status.New(store, approves), nil
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
