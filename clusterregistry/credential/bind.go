package credential

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"
)

const (
	// AccountLabel is, on a Secret in a member that a token is bound to, the name of the token's account. The names of these Secrets begin with it.
	AccountLabel = "federation.kubernetes.io/credential-of"
	// RotateAnnotation is, on the Secret of a cluster, what somebody wrote who wants the token replaced; RotatedAnnotation is the same
	// when that has been done.
	RotateAnnotation  = "federation.kubernetes.io/rotate"
	RotatedAnnotation = "federation.kubernetes.io/rotated"
)

// RequestToken asks a member for a token of an account. It is bound to a Secret that is made for it, empty: when that is deleted, the token is
// void. Where the account may not make that Secret, as in members that joined an earlier version, the token is bound to nothing.
func RequestToken(ctx context.Context, member kubernetes.Interface, namespace, account string, lifetime time.Duration) (string, error) {
	bound, err := bind(ctx, member, namespace, account)
	if err != nil && !apierrors.IsForbidden(err) {
		return "", fmt.Errorf("the Secret that the token of account %s/%s is bound to: %w", namespace, account, err)
	}
	seconds := int64(lifetime.Seconds())
	resp, err := member.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds, BoundObjectRef: bound},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of account %s/%s: %w", namespace, account, err)
	}
	return resp.Status.Token, nil
}

// bind makes the Secret, which goes with the account.
func bind(ctx context.Context, member kubernetes.Interface, namespace, account string) (*authenticationv1.BoundObjectReference, error) {
	owned, err := member.CoreV1().ServiceAccounts(namespace).Get(ctx, account, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	secret, err := member.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: account + "-" + rand.String(8), Labels: map[string]string{AccountLabel: account}, OwnerReferences: owned.OwnerReferences,
	}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID}, nil
}

// EndEarlier voids the tokens of t's account that are bound to Secrets older than t's. A newer one may be about to be used.
func EndEarlier(ctx context.Context, member kubernetes.Interface, t Token) error {
	if t.Secret == "" {
		return nil
	}
	secrets := member.CoreV1().Secrets(t.Namespace)
	all, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: AccountLabel + "=" + t.ServiceAccount})
	if err != nil {
		return err
	}
	present := ""
	for i := range all.Items {
		if all.Items[i].Name == t.Secret {
			present = all.Items[i].ResourceVersion
		}
	}
	for i := range all.Items {
		s := &all.Items[i]
		if order, err := resourceversion.CompareResourceVersion(s.ResourceVersion, present); err != nil || order >= 0 {
			continue
		}
		if err := secrets.Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID}}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
