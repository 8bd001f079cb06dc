package bootstrap

import (
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// customKindsName is the name of the role that lets the controllers spread objects of custom kinds, and of its binding.
const customKindsName = controllersName + "-custom-kinds"

// EnsureCustomKinds gives the controllers the permissions that they have for built-in kinds also for the kinds of these
// CustomResourceDefinitions: RESOURCE.GROUP, each.
func EnsureCustomKinds(ctx context.Context, kube kubernetes.Interface, definitions []string) error {
	return ensureRole(ctx, kube, customKindsRole(definitions))
}

// customKindsRole has one rule per group, so that it stays small if one vendor brings a hundred kinds.
func customKindsRole(definitions []string) *rbacv1.ClusterRole {
	resources := map[string][]string{}
	for _, definition := range definitions {
		if name, group, ok := strings.Cut(definition, "."); ok {
			resources[group] = append(resources[group], name, name+"/status", name+"/scale", name+"/finalizers")
		}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: customKindsName}}
	for group, names := range resources {
		slices.Sort(names)
		role.Rules = append(role.Rules, rule(group, change, names...))
	}
	slices.SortFunc(role.Rules, func(a, b rbacv1.PolicyRule) int { return strings.Compare(a.APIGroups[0], b.APIGroups[0]) })
	return role
}
