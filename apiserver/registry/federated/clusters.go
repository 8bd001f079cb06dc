package federated

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/table"
)

// maxClusters is how many clusters a cell shows.
const maxClusters = 10

// WithClusters adds a column with an object's placement to the tables of a kind, for -o wide: "east-a:20 west-a:5".
func WithClusters(tables rest.TableConvertor) rest.TableConvertor { return withClusters{tables} }

type withClusters struct {
	tables rest.TableConvertor
}

var clustersColumn = metav1.TableColumnDefinition{
	Name: "Clusters", Type: "string", Priority: 1, Description: "Replicas by cluster, as they are placed; unschedulable are replicas that fit in no cluster.",
}

// ConvertToTable makes a table of an object or a list of them.
func (w withClusters) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	t, err := w.tables.ConvertToTable(ctx, object, options)
	if err != nil {
		return nil, err
	}
	if table.WithHeaders(options) {
		t.ColumnDefinitions = append(slices.Clone(t.ColumnDefinitions), clustersColumn)
	}
	for i := range t.Rows {
		t.Rows[i].Cells = append(t.Rows[i].Cells, placementOf(t.Rows[i].Object.Object))
	}
	return t, nil
}

func placementOf(object runtime.Object) string {
	o, err := meta.Accessor(object)
	if err != nil {
		return "<unknown>"
	}
	value := o.GetAnnotations()[v1beta1.PlacementAnnotation]
	p := v1beta1.ParsePlacement(value)
	if p == nil {
		return "<pending>"
	}
	var words []string
	for _, cluster := range slices.Sorted(maps.Keys(p.Clusters)) {
		if n := p.Clusters[cluster]; n > 0 {
			words = append(words, fmt.Sprintf("%s:%d", cluster, n))
		}
	}
	cell := table.FirstOf(maxClusters, words, " ")
	if p.Unschedulable > 0 {
		cell = strings.TrimSpace(fmt.Sprintf("%s unschedulable:%d", cell, p.Unschedulable))
	}
	return table.OrNone(cell)
}
