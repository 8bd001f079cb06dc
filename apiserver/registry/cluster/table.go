package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
)

// columns are those of `kubectl get clusters`; the ones with a priority are shown with -o wide.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the cluster."},
	{Name: "Ready", Type: "string", Description: "Whether the cluster's API is ready: True, False, or Unknown before the first look. Offline: it cannot be reached."},
	{Name: "Region", Type: "string", Description: "Region of the cluster's nodes."},
	{Name: "Zones", Type: "string", Description: "Zones of the cluster's nodes."},
	{Name: "Version", Type: "string", Description: "Kubernetes version of the cluster's API server."},
	{Name: "Age", Type: "string", Description: "Time since the cluster joined."},
	{Name: "Address", Type: "string", Priority: 1, Description: "Addresses of the cluster's API."},
}

// tables makes tables of Clusters.
type tables struct{}

// ConvertToTable makes a table of a Cluster or a list of them.
func (tables) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		table.ColumnDefinitions = columns
	}
	if list, err := meta.ListAccessor(object); err == nil {
		table.ResourceVersion = list.GetResourceVersion()
		table.Continue = list.GetContinue()
		table.RemainingItemCount = list.GetRemainingItemCount()
	}
	rows, err := metatable.MetaToTableRow(object, func(obj runtime.Object, _ metav1.Object, name, _ string) ([]any, error) {
		c, ok := obj.(*v1beta1.Cluster)
		if !ok {
			return nil, fmt.Errorf("table of clusters: %T is not a Cluster", obj)
		}
		return row(c, name), nil
	})
	table.Rows = rows
	return table, err
}

func row(c *v1beta1.Cluster, name string) []any {
	addresses := make([]string, 0, len(c.Spec.ServerAddressByClientCIDRs))
	for _, a := range c.Spec.ServerAddressByClientCIDRs {
		if !slices.Contains(addresses, a.ServerAddress) { // one for IPv4 clients, the same for IPv6
			addresses = append(addresses, a.ServerAddress)
		}
	}
	return []any{name, readiness(c), orNone(c.Status.Region), orNone(strings.Join(c.Status.Zones, ",")),
		orNone(c.Status.KubernetesVersion), metatable.ConvertToHumanReadableDateType(c.CreationTimestamp),
		strings.Join(addresses, ",")}
}

// readiness is the word in the column Ready.
func readiness(c *v1beta1.Cluster) string {
	if offline := c.Condition(v1beta1.ClusterOffline); offline != nil && offline.Status == "True" {
		return "Offline"
	}
	if ready := c.Condition(v1beta1.ClusterReady); ready != nil {
		return string(ready.Status)
	}
	return "Unknown"
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
