package join

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"federation/clusterregistry/credential"
)

// Forgotten is how long a member's API servers may take a token of an account that is gone: they remember for 10 s what they accepted.
const Forgotten = 15 * time.Second

// ReplaceAccount ends every token of the federation's account in a member, whoever has it and whatever it is bound to: the account is made again, and has another UID.
// It returns when the federation has a token of the new one, in the Secret of that name. Of the request it needs Name, Federation, Member and Say. Member needs an administrator's rights. For a while, Forgotten and a little more, the federation's
// requests are refused there, which moves nothing.
func ReplaceAccount(ctx context.Context, r Request, secret string, forgotten time.Duration) error {
	uid, err := FederationUID(ctx, r.Federation)
	if err != nil {
		return err
	}
	info, err := federationInfo(ctx, r.Federation)
	if err != nil {
		return err
	}
	r.TokenLifetime = cmp.Or(info.MemberTokenLifetime, credential.TokenLifetime)
	account := AccountName(uid)
	role, err := r.Member.RbacV1().ClusterRoles().Get(ctx, account, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("in the cluster: the role of the federation's account: %w", err)
	}
	if name := role.Labels[ClusterLabel]; name != r.Name {
		return fmt.Errorf("the cluster that was given for it is %q at this federation", name)
	}
	meta := r.meta(uid, account)
	meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID}}
	token, err := r.remakeAccount(ctx, meta, forgotten)
	if err != nil {
		return fmt.Errorf("in the cluster: %w", err)
	}
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{credential.TokenKey: []byte(token)}})
	if err != nil {
		return err
	}
	if _, err := r.Federation.CoreV1().Secrets(namespace).Patch(ctx, secret, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("at the federation: Secret %s/%s: %w", namespace, secret, err)
	}
	return nil
}

// remakeAccount deletes the account and makes it again when nobody is taken for it any more: who were, could ask for a token of the new one. Roles are bound to
// its name, and stay. It returns a token.
func (r *Request) remakeAccount(ctx context.Context, meta metav1.ObjectMeta, forgotten time.Duration) (string, error) {
	accounts := r.Member.CoreV1().ServiceAccounts(namespace)
	if err := accounts.Delete(ctx, meta.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	r.say("account %s/%s is deleted; it is made again in %s, when nobody is taken for it any more", namespace, meta.Name, forgotten)
	select {
	case <-ctx.Done():
		return "", fmt.Errorf("the account is deleted and not made again: repeat this, or join the cluster again: %w", ctx.Err())
	case <-time.After(forgotten):
	}
	if err := credential.DeleteBound(ctx, r.Member, namespace, meta.Name); err != nil {
		return "", err
	}
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("account %s/%s: %w", namespace, meta.Name, err)
	}
	return credential.RequestToken(ctx, r.Member, namespace, meta.Name, r.TokenLifetime)
}
