package bootstrap

import (
	"context"
	"fmt"
	"maps"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"

	"federation/apiserver/apis/federation/v1beta1"
)

// Ensure writes the objects that are missing or differ. It may be called at any time, by several
// servers at once.
func Ensure(ctx context.Context, kube kubernetes.Interface) error {
	for _, want := range namespaces() {
		if _, err := kube.CoreV1().Namespaces().Create(ctx, want, metav1.CreateOptions{}); err != nil && !errors.IsAlreadyExists(err) {
			return fmt.Errorf("namespace: %w", err)
		}
	}
	rbac := kube.RbacV1()
	for _, want := range clusterRoles() {
		if err := ensureRole(ctx, kube, want); err != nil {
			return err
		}
	}
	for _, name := range retiredRoles {
		if err := endAggregation(ctx, rbac.ClusterRoles(), name); err != nil {
			return fmt.Errorf("ClusterRole %s of an earlier version: %w", name, err)
		}
	}
	for name, to := range map[string][]rbacv1.Subject{controllersName: controllers(), customKindsName: controllers(), loadBalancerRole: loadBalancers(), basicUserRole: group(user.AllAuthenticated), v1beta1.AgentsGroup: group(v1beta1.AgentsGroup), agentBootstrapRole: group(v1beta1.BootstrapGroups)} {
		binding := clusterRoleBinding(name, to)
		if err := ensure(ctx, rbac.ClusterRoleBindings(), binding, func(is *rbacv1.ClusterRoleBinding) bool {
			return equality.Semantic.DeepEqual(is.Subjects, binding.Subjects)
		}); err != nil {
			return err
		}
	}
	if err := ensure(ctx, rbac.ClusterRoleBindings(), adminsBinding(), func(*rbacv1.ClusterRoleBinding) bool { return true }); err != nil {
		return err
	}
	for want, to := range map[*rbacv1.Role][]rbacv1.Subject{role(): controllers(), loadBalancersRole(): loadBalancers(), consoleRole(): group(user.AllAuthenticated)} {
		if err := ensureLocalRole(ctx, kube, want, to); err != nil {
			return err
		}
	}
	return ensureFlow(ctx, kube)
}

// ensureLocalRole keeps a role of one namespace, and its binding.
func ensureLocalRole(ctx context.Context, kube kubernetes.Interface, want *rbacv1.Role, to []rbacv1.Subject) error {
	rbac, binding := kube.RbacV1(), roleBinding(want, to)
	if err := ensure(ctx, rbac.Roles(want.Namespace), want, func(is *rbacv1.Role) bool {
		return equality.Semantic.DeepEqual(is.Rules, want.Rules)
	}); err != nil {
		return err
	}
	return ensure(ctx, rbac.RoleBindings(want.Namespace), binding, func(is *rbacv1.RoleBinding) bool {
		return equality.Semantic.DeepEqual(is.Subjects, binding.Subjects)
	})
}

func ensureRole(ctx context.Context, kube kubernetes.Interface, want *rbacv1.ClusterRole) error {
	return ensure(ctx, kube.RbacV1().ClusterRoles(), want, func(is *rbacv1.ClusterRole) bool {
		return equality.Semantic.DeepEqual(is.Rules, want.Rules) && equality.Semantic.DeepEqual(is.Labels, want.Labels)
	})
}

// endAggregation takes from a role, if it is there, the labels by which others include it.
func endAggregation(ctx context.Context, roles client[*rbacv1.ClusterRole], name string) error {
	role, err := roles.Get(ctx, name, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	labels := len(role.Labels)
	maps.DeleteFunc(role.Labels, func(key, _ string) bool { return strings.HasPrefix(key, aggregateTo) })
	if len(role.Labels) == labels {
		return nil
	}
	_, err = roles.Update(ctx, role, metav1.UpdateOptions{})
	return err
}

// client is the part of a typed client that ensure uses.
type client[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
	Update(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
}

// ensure creates or corrects one object.
func ensure[T metav1.Object](ctx context.Context, c client[T], want T, same func(T) bool) error {
	is, err := c.Get(ctx, want.GetName(), metav1.GetOptions{})
	switch {
	case errors.IsNotFound(err):
		_, err = c.Create(ctx, want, metav1.CreateOptions{})
	case err == nil && !same(is):
		want.SetResourceVersion(is.GetResourceVersion())
		_, err = c.Update(ctx, want, metav1.UpdateOptions{})
	}
	if err == nil || errors.IsAlreadyExists(err) {
		return nil
	}
	return fmt.Errorf("%T %s: %w", want, want.GetName(), err)
}
