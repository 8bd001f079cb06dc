package views

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"
	printerstorage "k8s.io/kubernetes/pkg/printers/storage"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/table"
)

var (
	kubernetesTables = printerstorage.TableConvertor{TableGenerator: printers.NewTableGenerator().With(printersinternal.AddHandlers)}
	clusterColumn    = metav1.TableColumnDefinition{Name: "Cluster", Type: "string", Description: "The cluster that it is in."}
)

// toTable makes Kubernetes' own table of core/v1 objects, with the cluster as its last column.
func toTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	internal, err := legacyscheme.Scheme.UnsafeConvertToVersion(object, core.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	t, err := kubernetesTables.ConvertToTable(ctx, internal, options)
	if err != nil {
		return nil, err
	}
	if table.WithHeaders(options) {
		t.ColumnDefinitions = append(t.ColumnDefinitions[:len(t.ColumnDefinitions):len(t.ColumnDefinitions)], clusterColumn)
	}
	for i := range t.Rows {
		cluster := ""
		if o, err := meta.Accessor(t.Rows[i].Object.Object); err == nil {
			cluster = o.GetLabels()[v1beta1.ClusterLabel]
		}
		t.Rows[i].Cells = append(t.Rows[i].Cells, cluster)
	}
	return t, nil
}
