package join

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

var (
	writeVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	readVerbs  = []string{"get", "list", "watch"}
)

// clusterRules are the rights of the federation's account over the whole member.
func clusterRules(account string, allowProxy bool) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{}
	for _, r := range v1beta1.FederatedResources {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: writeVerbs})
	}
	rules = append(rules, []rbacv1.PolicyRule{
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: readVerbs},
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: readVerbs},
		{NonResourceURLs: []string{"/healthz", "/readyz", "/version"}, Verbs: []string{"get"}},
		// To leave without an administrator's credential: the role owns the rest.
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{account}, Verbs: []string{"get", "delete"}},
	}...)
	if allowProxy {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"users", "groups", "serviceaccounts"}, Verbs: []string{"impersonate"}})
	}
	return rules
}

// namespaceRules are its rights in the federation's own namespace of the member.
func namespaceRules(account string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{account}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get", "list"}},
	}
}

// Labels and annotations of what joining makes. They are not v1beta1.ManagedByLabel: what bears that
// is propagated, and removed when the federation does not have it.
const (
	// FederationLabel is, on what joining made in a member, the UID of the federation.
	FederationLabel = "federation.kubernetes.io/joined-by"
	// ClusterLabel is, on what joining made on both sides, the name of the Cluster.
	ClusterLabel = "federation.kubernetes.io/cluster"
)

// AccountName is the name of the account, role and bindings of a federation in its members: it tells
// federations apart that share a member.
func AccountName(federationUID string) string { return "federation-" + federationUID }

// SecretName is the name of the Secret at the federation that holds a cluster's credential.
func SecretName(cluster string) string { return "cluster-" + cluster }

const namespace = v1beta1.FederationNamespace
