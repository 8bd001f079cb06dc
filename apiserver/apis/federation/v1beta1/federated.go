package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FederatedKind is a built-in kind of Kubernetes whose objects have copies in the members.
//
// +k8s:deepcopy-gen=false
// +k8s:openapi-gen=false
type FederatedKind struct {
	// Resource is the resource of its objects.
	Resource schema.GroupVersionResource
	// Kind is its name.
	Kind string
	// Preferences is the annotation with ReplicaPreferences of a divided kind: one whose replicas are divided among the
	// clusters. For other kinds, whose objects go to each cluster as they are, it is empty.
	Preferences string
	// Replicas is the field of spec with the number of a divided kind, and Ready that of status with how many are ready.
	Replicas, Ready string
	// Runs: objects of this undivided kind run something by themselves. Those of others may be of use to what still runs in a
	// cluster, and do no harm: neither taints nor failover remove them.
	Runs bool
	// Referable: workloads refer to objects of the kind.
	Referable bool
	// Template is the path of the spec of a pod template, and References are what objects refer to besides; empty where there is none.
	Template   string
	References []ReferencePath
}

// FederatedKinds are in order of creation: what others need comes first.
var FederatedKinds = []FederatedKind{
	{Resource: corev1.SchemeGroupVersion.WithResource("namespaces"), Kind: "Namespace"},
	{Resource: corev1.SchemeGroupVersion.WithResource("serviceaccounts"), Kind: "ServiceAccount", Referable: true, References: []ReferencePath{{"Secret", "secrets[].name"}, {"Secret", "imagePullSecrets[].name"}}},
	{Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Kind: "ConfigMap", Referable: true},
	{Resource: corev1.SchemeGroupVersion.WithResource("secrets"), Kind: "Secret", Referable: true},
	{Resource: corev1.SchemeGroupVersion.WithResource("services"), Kind: "Service"},
	{Resource: networkingv1.SchemeGroupVersion.WithResource("networkpolicies"), Kind: "NetworkPolicy"},
	{Resource: policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), Kind: "PodDisruptionBudget"},
	{Resource: appsv1.SchemeGroupVersion.WithResource("replicasets"), Kind: "ReplicaSet", Preferences: ReplicaSetPreferencesAnnotation, Replicas: "replicas", Ready: "readyReplicas", Template: template},
	{Resource: appsv1.SchemeGroupVersion.WithResource("deployments"), Kind: "Deployment", Preferences: DeploymentPreferencesAnnotation, Replicas: "replicas", Ready: "readyReplicas", Template: template},
	{Resource: appsv1.SchemeGroupVersion.WithResource("statefulsets"), Kind: "StatefulSet", Preferences: StatefulSetPreferencesAnnotation, Replicas: "replicas", Ready: "readyReplicas", Template: template},
	{Resource: appsv1.SchemeGroupVersion.WithResource("daemonsets"), Kind: "DaemonSet", Runs: true, Template: template},
	{Resource: batchv1.SchemeGroupVersion.WithResource("jobs"), Kind: "Job", Preferences: JobPreferencesAnnotation, Replicas: "parallelism", Ready: "ready", Template: template},
	{Resource: batchv1.SchemeGroupVersion.WithResource("cronjobs"), Kind: "CronJob", Runs: true, Template: "spec.jobTemplate." + template},
	{Resource: autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"), Kind: "HorizontalPodAutoscaler"},
	{Resource: networkingv1.SchemeGroupVersion.WithResource("ingresses"), Kind: "Ingress", References: []ReferencePath{{"Secret", "spec.tls[].secretName"}}},
}

// FederatedResources are the resources of FederatedKinds, in their order.
var FederatedResources = resourcesOf(FederatedKinds)

func resourcesOf(kinds []FederatedKind) []schema.GroupVersionResource {
	all := make([]schema.GroupVersionResource, 0, len(kinds))
	for _, k := range kinds {
		all = append(all, k.Resource)
	}
	return all
}

// FederatedKindOf returns the built-in federated kind of a resource in any version, or nil.
func FederatedKindOf(resource schema.GroupResource) *FederatedKind {
	for i := range FederatedKinds {
		if FederatedKinds[i].Resource.GroupResource() == resource {
			return &FederatedKinds[i]
		}
	}
	return nil
}

// OwnNamespace reports whether a namespace is one that every cluster keeps for itself: nothing in it is federated.
func OwnNamespace(name string) bool { return ownNamespaces[name] }

// ownNamespaces are those that every cluster, including the federation, keeps for itself.
var ownNamespaces = map[string]bool{
	metav1.NamespaceSystem: true, metav1.NamespacePublic: true, corev1.NamespaceNodeLease: true, FederationNamespace: true, LoadBalancersNamespace: true,
}

// Made by every cluster in each of its namespaces.
const (
	rootCAConfigMap = "kube-root-ca.crt"
	defaultAccount  = "default"
)

// Federated reports whether the federation keeps copies of an object of a built-in kind in its members. A namespace's own name is
// passed as name, with an empty namespace; secretType counts for Secrets only. Objects of custom kinds are federated if a
// PlacementPolicy selects them.
//
// The namespace default is not federated, because every cluster has its own, but what is in it is; except, in each namespace,
// the service account default.
func Federated(resource schema.GroupResource, namespace, name string, secretType corev1.SecretType) bool {
	if FederatedKindOf(resource) == nil || ownNamespaces[namespace] {
		return false
	}
	switch resource.Resource {
	case "namespaces":
		return !ownNamespaces[name] && name != metav1.NamespaceDefault
	case "serviceaccounts":
		return name != defaultAccount
	case "configmaps":
		return name != rootCAConfigMap
	case "secrets":
		return secretType != corev1.SecretTypeServiceAccountToken
	}
	return true
}
