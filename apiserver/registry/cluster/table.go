package cluster

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/table"
)

// tables are the columns of `kubectl get clusters`.
var tables = table.Convertor[*v1beta1.Cluster]{Row: row, Columns: []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the cluster."},
	{Name: "Ready", Type: "string", Description: "Whether the cluster's API is ready: True, False, or Unknown before the first health check. Offline: it cannot be reached."},
	{Name: "Region", Type: "string", Description: "Region of the cluster's nodes."},
	{Name: "Zones", Type: "string", Description: "Zones of the cluster's nodes."},
	{Name: "Version", Type: "string", Description: "Kubernetes version of the cluster's API server."},
	{Name: "Status", Type: "string", Description: "How the cluster is used: Serving, GracePeriod, FailoverSuspended, FailedOver, or FailingBack with its share; SchedulingDisabled, Draining or Drained."},
	{Name: "Age", Type: "string", Description: "Time since the cluster joined."},
	{Name: "CPU", Type: "string", Priority: 1, Description: "Free CPU of all that is allocatable."},
	{Name: "Memory", Type: "string", Priority: 1, Description: "Free memory of all that is allocatable."},
	{Name: "Pods", Type: "string", Priority: 1, Description: "Pods that still fit, of all."},
	{Name: "Taints", Type: "string", Priority: 1, Description: "Taints that keep objects away."},
	{Name: "Address", Type: "string", Priority: 1, Description: "Addresses of the cluster's API, or that its agent connects to the federation."},
}}

// maxTaints is how many taints a row shows.
const maxTaints = 3

func row(c *v1beta1.Cluster) []any {
	addresses := make([]string, 0, len(c.Spec.ServerAddressByClientCIDRs))
	if c.IsPull() {
		addresses = append(addresses, "<agent>")
	}
	for _, a := range c.Spec.ServerAddressByClientCIDRs {
		if !slices.Contains(addresses, a.ServerAddress) { // one for IPv4 clients, the same for IPv6
			addresses = append(addresses, a.ServerAddress)
		}
	}
	taints := make([]string, 0, len(c.Spec.Taints))
	for i := range c.Spec.Taints {
		taints = append(taints, c.Spec.Taints[i].ToString())
	}
	return []any{c.Name, readiness(c), table.OrNone(c.Status.Region), table.OrNone(strings.Join(c.Status.Zones, ",")),
		table.OrNone(c.Status.KubernetesVersion), statusText(c), metatable.ConvertToHumanReadableDateType(c.CreationTimestamp),
		freeOf(c, corev1.ResourceCPU, cores), freeOf(c, corev1.ResourceMemory, gibibytes), freeOf(c, corev1.ResourcePods, count),
		table.OrNone(table.FirstOf(maxTaints, taints, ",")), strings.Join(addresses, ",")}
}

// readiness returns the word in the column Ready.
func readiness(c *v1beta1.Cluster) string {
	if offline := c.Condition(v1beta1.ClusterOffline); offline != nil && offline.Status == corev1.ConditionTrue {
		return "Offline"
	}
	if ready := c.Condition(v1beta1.ClusterReady); ready != nil {
		return string(ready.Status)
	}
	return "Unknown"
}

// statusText returns the column Status: the failover phase, and the federation's own taints.
func statusText(c *v1beta1.Cluster) string {
	words := []string{c.PhaseWithShare()}
	if word := c.OutOfService(); word != "" {
		words = append(words, word)
	}
	return strings.Join(words, ",")
}

// freeOf returns how much of a resource is free, of how much: "12.5/32".
func freeOf(c *v1beta1.Cluster, name corev1.ResourceName, inWords func(resource.Quantity) string) string {
	if c.Status.Capacity == nil {
		return "<unknown>"
	}
	all, free := c.Status.Capacity.Allocatable[name], c.Status.Capacity.Allocatable[name].DeepCopy()
	free.Sub(c.Status.Capacity.Requested[name])
	return inWords(free) + "/" + inWords(all)
}

func cores(q resource.Quantity) string { return shortNumber(q.AsApproximateFloat64()) }
func gibibytes(q resource.Quantity) string {
	return shortNumber(q.AsApproximateFloat64()/(1<<30)) + "Gi"
}
func count(q resource.Quantity) string { return fmt.Sprint(q.Value()) }

// shortNumber shows a fraction of small numbers only.
func shortNumber(f float64) string {
	if f < 100 {
		f = math.Round(f*10) / 10
	} else {
		f = math.Round(f)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}
