package join

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/credential"
)

// namespaceTimeout is how long a namespace may take to go.
const namespaceTimeout = time.Minute

// prepareMember makes namespace, role, account and bindings in the member, and returns a token.
func (r *Request) prepareMember(ctx context.Context, uid string) (string, error) {
	account := AccountName(uid)
	for _, step := range []func() error{
		func() error { return r.refuseSecondName(ctx, account) },
		func() error { return r.decideMultiCluster(ctx, account) },
		func() error { return r.ensureMultiClusterServices(ctx) },
		func() error { return r.ensureNamespace(ctx, uid) },
	} {
		if err := step(); err != nil {
			return "", err
		}
	}
	role, err := r.ensureRole(ctx, uid, account)
	if err != nil {
		return "", err
	}
	meta := r.meta(uid, account)
	meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID}}
	if err := r.ensureFences(ctx, uid, meta); err != nil { // before anybody can use the account
		return "", err
	}
	if err := r.ensureAccount(ctx, meta); err != nil {
		return "", err
	}
	if err := r.ensureAdmins(ctx, meta); err != nil {
		return "", err
	}
	if r.Pull {
		if err := r.ensureAgentSwitch(ctx, meta); err != nil {
			return "", fmt.Errorf("ConfigMap %s/%s: %w", namespace, AgentConfigMap, err)
		}
	}
	if err := errors.Join(r.ensureProperties(ctx, meta), r.installAlso(ctx, meta)); err != nil {
		return "", err
	}
	r.say("account %s/%s may read and write what is propagated%s%s", namespace, account, map[bool]string{true: ", and impersonate"}[r.AllowProxy],
		map[bool]string{true: ", and have drills take the nodes from clients"}[r.AllowBlackhole])
	if r.Pull {
		return "", nil
	}
	return credential.RequestToken(ctx, r.Member, namespace, account, r.TokenLifetime)
}

func (r *Request) meta(uid, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{FederationLabel: uid, ClusterLabel: r.Name}}
}

// refuseSecondName keeps a cluster from joining twice: its workloads would be counted twice.
func (r *Request) refuseSecondName(ctx context.Context, account string) error {
	old, err := r.Member.RbacV1().ClusterRoles().Get(ctx, account, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if name := old.Labels[ClusterLabel]; name != r.Name {
		return fmt.Errorf("it is a member of this federation already, as %q: unjoin that first", name)
	}
	return nil
}

// ensureNamespace makes the namespace, or keeps the one that is there. After an unjoin the member's
// garbage collector removes it with the role that owned it: what can still be kept is kept, what goes
// already is waited for.
func (r *Request) ensureNamespace(ctx context.Context, uid string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{FederationLabel: uid}}}
	told := false
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, namespaceTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := r.Member.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
		if err == nil {
			r.say("namespace %s made", namespace)
		}
		if !apierrors.IsAlreadyExists(err) {
			return err == nil, err
		}
		stays, err := r.keepNamespace(ctx, uid)
		if err == nil && !stays && !told {
			told = true
			r.say("namespace %s is being removed: waiting until it is gone", namespace)
		}
		return stays, err
	})
	if wait.Interrupted(err) && told {
		return fmt.Errorf("namespace %s is still being removed after %s", namespace, namespaceTimeout)
	}
	return err
}

// keepNamespace reports whether the namespace that is there will stay. Without our label it is not ours,
// and we leave it when we go; with it, we take it from a role that owned it.
func (r *Request) keepNamespace(ctx context.Context, uid string) (bool, error) {
	client := r.Member.CoreV1().Namespaces()
	ns, err := client.Get(ctx, namespace, metav1.GetOptions{})
	if err == nil && ns.Labels[FederationLabel] == uid && len(ns.OwnerReferences) > 0 {
		ns.OwnerReferences = nil
		ns, err = client.Update(ctx, ns, metav1.UpdateOptions{})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil && ns.DeletionTimestamp == nil, err
}

func (r *Request) ensureRole(ctx context.Context, uid, account string) (*rbacv1.ClusterRole, error) {
	role := &rbacv1.ClusterRole{ObjectMeta: r.meta(uid, account)}
	r.fill(role, r.CustomKinds)
	client := r.Member.RbacV1().ClusterRoles()
	if err := ensure(ctx, client, role, func(old *rbacv1.ClusterRole) error {
		old.Labels = role.Labels
		r.fill(old, withCustomKinds(old.Annotations, r.CustomKinds))
		return nil
	}); err != nil {
		return nil, err
	}
	return client.Get(ctx, account, metav1.GetOptions{})
}

// fill gives the role its rights, and notes for which custom kinds.
func (r *Request) fill(role *rbacv1.ClusterRole, customKinds []string) {
	role.Rules = clusterRules(role.Name, r.AllowProxy, r.PodLogs, r.multiCluster, customKinds)
	metav1.SetMetaDataAnnotation(&role.ObjectMeta, multiClusterAnnotation, strconv.FormatBool(r.multiCluster))
	if len(customKinds) > 0 {
		metav1.SetMetaDataAnnotation(&role.ObjectMeta, CustomKindsAnnotation, strings.Join(customKinds, ","))
	}
}

func (r *Request) ensureAccount(ctx context.Context, meta metav1.ObjectMeta) error {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: meta.Name}}
	if err := ensure(ctx, r.Member.CoreV1().ServiceAccounts(namespace), &corev1.ServiceAccount{ObjectMeta: meta}, func(old *corev1.ServiceAccount) error {
		old.Labels, old.OwnerReferences = meta.Labels, meta.OwnerReferences
		return nil
	}); err != nil {
		return err
	}
	for ns, rules := range namespaceRules(meta.Name, r.AllowBlackhole, !r.Pull) {
		if err := r.ensureRights(ctx, ns, meta, rules, subjects); err != nil {
			return err
		}
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: roleRef("ClusterRole", meta.Name)}
	return ensure(ctx, r.Member.RbacV1().ClusterRoleBindings(), binding, func(old *rbacv1.ClusterRoleBinding) error {
		old.Labels, old.OwnerReferences, old.Subjects = meta.Labels, meta.OwnerReferences, subjects
		return nil
	})
}

// ensureAdmins lets the federation's administrators do in the member, through the proxy, what they may do at the federation. Without
// AllowProxy nobody comes that way, and the binding of an earlier join goes.
func (r *Request) ensureAdmins(ctx context.Context, meta metav1.ObjectMeta) error {
	meta.Name += "-admins"
	bindings := r.Member.RbacV1().ClusterRoleBindings()
	if !r.AllowProxy {
		if err := bindings.Delete(ctx, meta.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: v1beta1.AdminsGroup}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: roleRef("ClusterRole", "cluster-admin")}
	return ensure(ctx, bindings, binding, func(old *rbacv1.ClusterRoleBinding) error {
		old.Labels, old.OwnerReferences, old.Subjects = meta.Labels, meta.OwnerReferences, subjects
		return nil
	})
}

// ensureRights makes role and binding in one namespace.
func (r *Request) ensureRights(ctx context.Context, ns string, meta metav1.ObjectMeta, rules []rbacv1.PolicyRule, to []rbacv1.Subject) error {
	if err := ensure(ctx, r.Member.RbacV1().Roles(ns), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, func(old *rbacv1.Role) error {
		old.Labels, old.OwnerReferences, old.Rules = meta.Labels, meta.OwnerReferences, rules
		return nil
	}); err != nil {
		return err
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: to, RoleRef: roleRef("Role", meta.Name)}
	return ensure(ctx, r.Member.RbacV1().RoleBindings(ns), binding, func(old *rbacv1.RoleBinding) error {
		old.Labels, old.OwnerReferences, old.Subjects = meta.Labels, meta.OwnerReferences, to
		return nil
	})
}

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

// store is what ensure needs of a typed client.
type store[T runtime.Object] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	Create(ctx context.Context, obj T, o metav1.CreateOptions) (T, error)
	Update(ctx context.Context, obj T, o metav1.UpdateOptions) (T, error)
}

// ensure creates want, or has change put right what is there, also while somebody deletes it.
func ensure[T interface {
	runtime.Object
	metav1.Object
}](ctx context.Context, client store[T], want T, change func(old T) error) error {
	return retry.OnError(retry.DefaultRetry, goesOrChanges, func() error {
		_, err := client.Create(ctx, want, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		old, err := client.Get(ctx, want.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := change(old); err != nil {
			return err
		}
		_, err = client.Update(ctx, old, metav1.UpdateOptions{})
		return err
	})
}

func goesOrChanges(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
