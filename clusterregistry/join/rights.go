package join

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"federation/apiserver/apis/federation/v1beta1"
)

var (
	writeVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	readVerbs  = []string{"get", "list", "watch"}
	sliceVerbs = []string{"get", "list", "watch", "create", "update", "delete"}
)

// clusterRules are the rights of the federation's account over the whole member: for the kinds that are federated, and
// for the custom kinds that are named, RESOURCE.GROUP.
func clusterRules(account string, allowProxy, podLogs, multiCluster bool, customKinds []string) []rbacv1.PolicyRule {
	rules := append(federatedRules(), customRules(customKinds)...)
	rules = append(rules,
		rbacv1.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: sliceVerbs}, // read the member's own, write those of other clusters
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: readVerbs},                   // what room there is, and for who asks the federation
		rbacv1.PolicyRule{APIGroups: []string{"metrics.k8s.io"}, Resources: []string{"nodes", "pods"}, Verbs: []string{"get", "list"}},
		rbacv1.PolicyRule{APIGroups: []string{"custom.metrics.k8s.io", "external.metrics.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}, // of autoscalers at the federation; resources there are metrics
		rbacv1.PolicyRule{NonResourceURLs: []string{"/healthz", "/readyz", "/version"}, Verbs: []string{"get"}},
		// To leave without an administrator's credential: the role owns the rest.
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{account}, Verbs: []string{"get", "delete"}},
	)
	if multiCluster {
		rules = append(rules, multiClusterRules()...)
	}
	if podLogs {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/log"}, Verbs: []string{"get"}})
	}
	if allowProxy {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"users", "groups", "serviceaccounts"}, Verbs: []string{"impersonate"}})
	}
	return rules
}

// federatedRules has one rule for each API group.
func federatedRules() (rules []rbacv1.PolicyRule) {
	for _, r := range v1beta1.FederatedResources {
		i := slices.IndexFunc(rules, func(rule rbacv1.PolicyRule) bool { return rule.APIGroups[0] == r.Group })
		if i < 0 {
			i = len(rules)
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Verbs: writeVerbs})
		}
		rules[i].Resources = append(rules[i].Resources, r.Resource)
	}
	return rules
}

// customRules are for custom kinds: their objects, and their definitions, each by its name.
func customRules(kinds []string) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{definitions.Group}, Resources: []string{definitions.Resource}, Verbs: readVerbs}}
	if len(kinds) == 0 {
		return rules
	}
	rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{definitions.Group}, Resources: []string{definitions.Resource}, ResourceNames: kinds, Verbs: writeVerbs})
	for _, kind := range kinds {
		r := schema.ParseGroupResource(kind)
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: writeVerbs})
	}
	return rules
}

var definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// checkCustomKinds refuses what is no name of a custom resource definition, or is a kind of Kubernetes' own.
func checkCustomKinds(kinds []string) error {
	for _, kind := range kinds {
		r := schema.ParseGroupResource(kind)
		if problems := validation.IsDNS1123Subdomain(kind); len(problems) > 0 || !strings.Contains(r.Group, ".") {
			return fmt.Errorf("custom kind %q: must be RESOURCE.GROUP, the name of its definition, such as widgets.example.com", kind)
		}
		if strings.HasSuffix(r.Group, ".k8s.io") || strings.HasSuffix(r.Group, ".kubernetes.io") {
			return fmt.Errorf("custom kind %q: the group %s is Kubernetes' own", kind, r.Group)
		}
	}
	return nil
}

// withCustomKinds adds custom kinds to those that a role has from an earlier join, sorted.
func withCustomKinds(annotations map[string]string, kinds []string) []string {
	all := slices.Clone(kinds)
	if had := annotations[CustomKindsAnnotation]; had != "" {
		all = append(all, strings.Split(had, ",")...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// namespaceRules are its rights in single namespaces of the member: the federation's own, and that of the nodes' Leases. tokens: it renews its
// own, which only a cluster gives that the federation connects to.
func namespaceRules(account string, blackhole, tokens bool) map[string][]rbacv1.PolicyRule {
	rules := map[string][]rbacv1.PolicyRule{
		namespace: {
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get", "list"}},
		},
		corev1.NamespaceNodeLease: {{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"list"}}}, // whether nodes live
	}
	if tokens {
		renew := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{account}, Verbs: []string{"create"}}
		rules[namespace] = append([]rbacv1.PolicyRule{renew}, rules[namespace]...)
	}
	if blackhole {
		rules[namespace] = append(rules[namespace],
			rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{v1beta1.DrillLease}, Verbs: []string{"get", "update"}})
	}
	return rules
}

// Labels and annotations of what joining makes. They are not v1beta1.ManagedByLabel: what bears that
// is propagated, and removed when the federation does not have it.
const (
	// FederationLabel is, on what joining made in a member, the UID of the federation.
	FederationLabel = "federation.kubernetes.io/joined-by"
	// ClusterLabel is v1beta1.ClusterLabel, on what joining made on both sides.
	ClusterLabel = v1beta1.ClusterLabel
	// CustomKindsAnnotation is, on the role in a member, the custom kinds that it has rights for, with commas
	// between: joining again keeps them.
	CustomKindsAnnotation = "federation.kubernetes.io/custom-kinds"
)

// AccountName is the name of the account, role and bindings of a federation in its members: it tells
// federations apart that share a member.
func AccountName(federationUID string) string { return "federation-" + federationUID }

// SecretName is the name of the Secret at the federation that holds a cluster's credential.
func SecretName(cluster string) string { return "cluster-" + cluster }

const namespace = v1beta1.FederationNamespace
