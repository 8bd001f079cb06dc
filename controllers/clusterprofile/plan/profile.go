// Package plan makes the ClusterProfile of a Cluster: what SIG Multicluster's Cluster Inventory API (KEP-4322) has of a
// cluster, for tools that know clusters by it.
package plan

import (
	"encoding/base64"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"federation/apiserver/apis/federation/v1beta1"
)

// The names that the API gives.
const (
	// ManagerLabel has the name of the cluster manager whose profile it is: the same as spec.clusterManager.name.
	ManagerLabel = "x-k8s.io/cluster-manager"
	// MemberLabel has what is the same for all profiles of one cluster: the UID of its namespace kube-system.
	MemberLabel = "multicluster.x-k8s.io/inventory-member-id"
	// ClusterSetLabel is a namespace's, and has the name of the cluster set of the profiles there.
	ClusterSetLabel = "multicluster.x-k8s.io/clusterset"

	healthy = "ControlPlaneHealthy"
	joined  = "Joined"
)

// Resource is where ClusterProfiles are read and written.
var Resource = schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "clusterprofiles"}

// Federation is what all profiles have in common.
type Federation struct {
	// Name is the cluster manager's: the federation's.
	Name string
	// Server is the URL of the federation's API, as clients reach it, and CA the PEM of who signed its certificate.
	// Without a Server profiles say no way to the clusters.
	Server string
	CA     []byte
}

// Profile returns the ClusterProfile of a Cluster, with its status, as it should be. Its way to the cluster is the
// federation's own proxy: a client logs in at the federation as itself, and the cluster is asked in its name.
func Profile(f Federation, c *v1beta1.Cluster) *unstructured.Unstructured {
	labels := map[string]any{ManagerLabel: f.Name}
	for key, value := range c.Labels {
		if !strings.Contains(key, "x-k8s.io/") { // the API's own are ours to say
			labels[key] = value
		}
	}
	if uid := c.Status.UID; uid != "" && len(validation.IsValidLabelValue(uid)) == 0 {
		labels[MemberLabel] = uid
	}
	status := map[string]any{"conditions": conditions(c)}
	if version := c.Status.KubernetesVersion; version != "" {
		status["version"] = map[string]any{"kubernetes": version}
	}
	if all := properties(c); len(all) > 0 {
		status["properties"] = all
	}
	if f.Server != "" {
		way := map[string]any{"server": strings.TrimSuffix(f.Server, "/") + "/apis/" + v1beta1.SchemeGroupVersion.String() + "/clusters/" + c.Name + "/proxy"}
		if len(f.CA) > 0 {
			way["certificate-authority-data"] = base64.StdEncoding.EncodeToString(f.CA)
		}
		status["accessProviders"] = []any{map[string]any{"name": "federation", "cluster": way}}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Resource.GroupVersion().String(), "kind": "ClusterProfile",
		"metadata": map[string]any{"namespace": v1beta1.FederationNamespace, "name": c.Name, "labels": labels},
		"spec":     map[string]any{"displayName": c.Name, "clusterManager": map[string]any{"name": f.Name}},
		"status":   status,
	}}
}

// conditions returns ControlPlaneHealthy, which is the Cluster's Ready, and Joined.
func conditions(c *v1beta1.Cluster) []any {
	ready, at := c.Condition(v1beta1.ClusterReady), c.CreationTimestamp
	status, reason, message := string(corev1.ConditionUnknown), "NotCheckedYet", ""
	if ready != nil {
		status, reason, message, at = string(ready.Status), ready.Reason, ready.Message, ready.LastTransitionTime
	}
	condition := func(kind, status, reason, message, since string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
	}
	const layout = "2006-01-02T15:04:05Z"
	return []any{
		condition(healthy, status, reason, message, at.UTC().Format(layout)),
		condition(joined, string(corev1.ConditionTrue), "ClusterJoined", "", c.CreationTimestamp.UTC().Format(layout)),
	}
}

// properties returns where the cluster is, by the names that nodes have it by, and its identity, by that of KEP-2149.
func properties(c *v1beta1.Cluster) (all []any) {
	add := func(name, value string) {
		if value != "" {
			all = append(all, map[string]any{"name": name, "value": value})
		}
	}
	add("cluster.clusterset.k8s.io", c.Name)
	add(corev1.LabelTopologyRegion, c.Status.Region)
	add(corev1.LabelTopologyZone, strings.Join(c.Status.Zones, ","))
	return all
}
