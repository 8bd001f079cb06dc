package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"federation/apiserver/apis/federation/v1beta1"
)

// ErrNotJoined says that the federation knows no such cluster.
var ErrNotJoined = errors.New("is no member of the federation")

// Left says what Unjoin did.
type Left struct {
	// FederationUID is the value of v1beta1.ManagedByLabel on the workloads that stay in the member.
	FederationUID string
	// DaemonSets are those that joining had also installed; they go with account and rights.
	DaemonSets []string
	// CustomKinds are those that the federation may have spread to the member, each as RESOURCE.GROUP.
	CustomKinds []string
	// Behind is why the account and rights are still in the member, or nil.
	Behind error
}

// Unjoin ends a membership: first the Cluster, so that nobody works on the member any more, then
// account and rights in the member, then the Secret. A member that cannot be reached does not keep
// it from ending. Workloads stay in the member and keep running.
func Unjoin(ctx context.Context, r Request) (Left, error) {
	uid, err := FederationUID(ctx, r.Federation)
	if err != nil {
		return Left{}, err
	}
	left := Left{FederationUID: uid}
	found, err := r.deleteCluster(ctx)
	if err != nil {
		return left, fmt.Errorf("cluster %q: %w", r.Name, err)
	}
	if left.Behind = r.clearMember(ctx, &left); left.Behind == nil {
		r.say("account and rights in the cluster removed")
	}
	if err := DeleteAgentTokens(ctx, r.Federation, r.Name); err != nil {
		return left, err
	}
	err = r.Federation.CoreV1().Secrets(namespace).Delete(ctx, SecretName(r.Name), metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		if !found {
			return left, fmt.Errorf("cluster %q %w", r.Name, ErrNotJoined)
		}
		return left, nil
	}
	return left, err
}

// deleteCluster returns when the Cluster is gone, and whether there was one.
func (r *Request) deleteCluster(ctx context.Context) (bool, error) {
	clusters := r.FederationDynamic.Resource(v1beta1.ClustersResource)
	err := clusters.Delete(ctx, r.Name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := clusters.Get(ctx, r.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if err == nil {
		r.say("Cluster %s deleted", r.Name)
	}
	return true, err
}

// clearMember deletes the role that owns all else which joining made, and notes what people should know of that. The namespace
// goes too if we made it and nobody else lives there.
func (r *Request) clearMember(ctx context.Context, left *Left) error {
	if r.Member == nil {
		return errors.New("no credential for the cluster")
	}
	roles, account := r.Member.RbacV1().ClusterRoles(), AccountName(left.FederationUID)
	role, err := roles.Get(ctx, account, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if name := role.Labels[ClusterLabel]; name != r.Name {
		return fmt.Errorf("this cluster is the member %q, not %q", name, r.Name)
	}
	left.CustomKinds = withCustomKinds(role.Annotations, nil)
	if left.DaemonSets, err = r.daemonSets(ctx, left.FederationUID); err != nil {
		return err
	}
	if err := r.adoptNamespace(ctx, role); err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	err = roles.Delete(ctx, account, metav1.DeleteOptions{PropagationPolicy: &background})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return err
}

// adoptNamespace makes the namespace one more thing that goes with the role.
func (r *Request) adoptNamespace(ctx context.Context, role *rbacv1.ClusterRole) error {
	ns, err := r.Member.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && ns.Labels[FederationLabel] != role.Labels[FederationLabel] {
		return nil
	}
	if err != nil {
		return err
	}
	accounts, err := r.Member.CoreV1().ServiceAccounts(namespace).List(ctx, metav1.ListOptions{LabelSelector: FederationLabel})
	if err != nil {
		return err
	}
	for _, a := range accounts.Items {
		if a.Name != role.Name {
			return nil // another federation's
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{
		{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID},
	}}})
	if err != nil {
		return err
	}
	_, err = r.Member.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
