// Package table makes the tables that `kubectl get` shows of our kinds, from columns and one function that
// fills a row.
package table

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Convertor makes tables of objects of type T.
type Convertor[T runtime.Object] struct {
	// Columns are shown with -o wide only where they have a priority.
	Columns []metav1.TableColumnDefinition
	// Row returns the cells of one object, in the order of the columns.
	Row func(object T) []any
}

// ConvertToTable makes a table of an object or a list of them.
func (c Convertor[T]) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if WithHeaders(options) {
		table.ColumnDefinitions = c.Columns
	}
	if list, err := meta.ListAccessor(object); err == nil {
		table.ResourceVersion = list.GetResourceVersion()
		table.Continue = list.GetContinue()
		table.RemainingItemCount = list.GetRemainingItemCount()
	}
	rows, err := metatable.MetaToTableRow(object, func(obj runtime.Object, _ metav1.Object, _, _ string) ([]any, error) {
		o, ok := obj.(T)
		if !ok {
			return nil, fmt.Errorf("table: %T is not a %T", obj, o)
		}
		return c.Row(o), nil
	})
	table.Rows = rows
	return table, err
}

// WithHeaders reports whether the options of a table ask for its columns.
func WithHeaders(options runtime.Object) bool {
	o, ok := options.(*metav1.TableOptions)
	return !ok || !o.NoHeaders
}

// OrNone returns what a cell without a value shows.
func OrNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}

// FirstOf joins at most n words, and adds how many more there are: "a,b and 3 more".
func FirstOf(n int, words []string, separator string) string {
	if len(words) <= n {
		return strings.Join(words, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:n], separator), len(words)-n)
}
