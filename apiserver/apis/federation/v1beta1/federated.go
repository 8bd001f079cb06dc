package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FederatedResources are the resources whose objects have copies in the members. Their order is the
// order in which copies can be made: namespaces first.
var FederatedResources = []schema.GroupVersionResource{
	corev1.SchemeGroupVersion.WithResource("namespaces"),
	corev1.SchemeGroupVersion.WithResource("configmaps"),
	corev1.SchemeGroupVersion.WithResource("secrets"),
	corev1.SchemeGroupVersion.WithResource("services"),
	appsv1.SchemeGroupVersion.WithResource("replicasets"),
	appsv1.SchemeGroupVersion.WithResource("deployments"),
	networkingv1.SchemeGroupVersion.WithResource("ingresses"),
}

// ownNamespaces are those that every cluster, the federation too, keeps for itself.
var ownNamespaces = map[string]bool{
	metav1.NamespaceSystem: true, metav1.NamespacePublic: true, corev1.NamespaceNodeLease: true, FederationNamespace: true,
}

// rootCAConfigMap is published by every cluster into each of its namespaces.
const rootCAConfigMap = "kube-root-ca.crt"

// Federated tells whether the federation keeps copies of an object in its members. A namespace's own
// name is passed as name, with an empty namespace; secretType counts for Secrets only.
//
// The namespace default is no federated object, for every cluster has its own, but what is in it is.
func Federated(resource schema.GroupResource, namespace, name string, secretType corev1.SecretType) bool {
	if !federatedResource(resource) || ownNamespaces[namespace] {
		return false
	}
	switch resource.Resource {
	case "namespaces":
		return !ownNamespaces[name] && name != metav1.NamespaceDefault
	case "configmaps":
		return name != rootCAConfigMap
	case "secrets":
		return secretType != corev1.SecretTypeServiceAccountToken
	}
	return true
}

func federatedResource(resource schema.GroupResource) bool {
	for _, r := range FederatedResources {
		if r.GroupResource() == resource {
			return true
		}
	}
	return false
}
