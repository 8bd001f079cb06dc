package apiserver

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"federation/apiserver/apis/federation/v1beta1"
)

// guard keeps the federation's own namespace from Kubernetes' roles for running workloads, admin, edit and view, where they are bound for all namespaces:
// the Secrets there are the credentials of all members (ADR 142). A binding in the namespace itself, and any other role, gives what it says.
type guard struct {
	authorizer.Authorizer
	rbac, withoutOrdinary authorizer.Authorizer
}

// withGuard puts the guard before an authorizer.
func withGuard(all authorizer.Authorizer, shared informers.SharedInformerFactory) authorizer.Authorizer {
	i := shared.Rbac().V1()
	roles, bindings := &rbac.RoleGetter{Lister: i.Roles().Lister()}, &rbac.RoleBindingLister{Lister: i.RoleBindings().Lister()}
	clusterRoles, clusterBindings := &rbac.ClusterRoleGetter{Lister: i.ClusterRoles().Lister()}, &rbac.ClusterRoleBindingLister{Lister: i.ClusterRoleBindings().Lister()}
	extraordinary := extraordinaryBindings{i.ClusterRoleBindings().Lister(), i.ClusterRoles().Lister()}
	return guard{all, rbac.New(roles, bindings, clusterRoles, clusterBindings), rbac.New(roles, bindings, clusterRoles, extraordinary)}
}

// Authorize refuses what only an ordinary role allows. What another authorizer than RBAC allows stays allowed.
func (g guard) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := g.Authorizer.Authorize(ctx, a)
	if decision != authorizer.DecisionAllow || !guarded(a) {
		return decision, reason, err
	}
	if byRBAC, _, _ := g.rbac.Authorize(ctx, a); byRBAC != authorizer.DecisionAllow {
		return decision, reason, err
	}
	if otherwise, _, _ := g.withoutOrdinary.Authorize(ctx, a); otherwise == authorizer.DecisionAllow {
		return decision, reason, err
	}
	return authorizer.DecisionDeny, "the roles admin, edit and view do not reach the namespace " + v1beta1.FederationNamespace + ", which has the credentials of all clusters: " +
		"name another namespace, or bind a role there", nil
}

// isRead reports whether a request only reads objects.
func isRead(a authorizer.Attributes) bool {
	return slices.Contains([]string{"get", "list", "watch"}, a.GetVerb())
}

// guarded reports whether a request would read Secrets of the federation's namespace, or change anything there.
func guarded(a authorizer.Attributes) bool {
	reads := isRead(a)
	secrets := a.GetAPIGroup() == "" && a.GetResource() == "secrets"
	switch {
	case !a.IsResourceRequest():
		return false
	case a.GetNamespace() == v1beta1.FederationNamespace:
		return secrets || !reads
	}
	return secrets && a.GetNamespace() == "" // all namespaces
}

// extraordinaryBindings are the ClusterRoleBindings to other roles than the ordinary ones.
type extraordinaryBindings struct {
	bindings rbaclisters.ClusterRoleBindingLister
	roles    rbaclisters.ClusterRoleLister
}

// ListClusterRoleBindings implements the interface of package validation of Kubernetes' RBAC.
func (e extraordinaryBindings) ListClusterRoleBindings(context.Context) ([]*rbacv1.ClusterRoleBinding, error) {
	all, err := e.bindings.List(labels.Everything())
	return slices.DeleteFunc(slices.Clone(all), func(b *rbacv1.ClusterRoleBinding) bool { return e.isOrdinary(b.RoleRef.Name) }), err
}

// isOrdinary reports whether a role is one of Kubernetes' for running workloads, or a part of one.
func (e extraordinaryBindings) isOrdinary(name string) bool {
	ordinary := []string{"admin", "edit", "view"}
	if slices.Contains(ordinary, name) {
		return true
	}
	role, err := e.roles.Get(name)
	return err == nil && slices.ContainsFunc(ordinary, func(of string) bool { return role.Labels[rbacv1.GroupName+"/aggregate-to-"+of] == "true" })
}
