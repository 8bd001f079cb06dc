package credential

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
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

// boundPrefix begins the names of the Secrets that tokens of an account may be bound to. The fence in the member asks for it, too.
func boundPrefix(account string) string { return account + "-" }

// bind makes the Secret, which goes with the account.
func bind(ctx context.Context, member kubernetes.Interface, namespace, account string) (*authenticationv1.BoundObjectReference, error) {
	owned, err := member.CoreV1().ServiceAccounts(namespace).Get(ctx, account, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	secret, err := member.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: boundPrefix(account) + rand.String(8), Labels: map[string]string{AccountLabel: account}, OwnerReferences: owned.OwnerReferences,
	}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID}, nil
}

// EndOthers voids the tokens of t's account that are bound to any other Secret than t's, whoever made that: it goes by their names, since a label
// can be left out. A Secret newer than t's may be about to be used, by a renewal elsewhere or by a join: it is deleted if its UID is in before, which are those
// that an earlier look left. It returns the UIDs of those that it leaves, and the names of the newer ones that it deleted.
func EndOthers(ctx context.Context, member kubernetes.Interface, t Token, before sets.Set[types.UID]) (left sets.Set[types.UID], strange []string, err error) {
	if t.Secret == "" {
		return nil, nil, nil
	}
	bound, err := listBound(ctx, member, t.Namespace, t.ServiceAccount)
	if err != nil {
		return nil, nil, err
	}
	own := slices.IndexFunc(bound, func(s corev1.Secret) bool { return s.Name == t.Secret })
	if own < 0 {
		return nil, nil, nil // which are newer is not known
	}
	left = sets.New[types.UID]()
	for i := range bound {
		s := &bound[i]
		order, err := resourceversion.CompareResourceVersion(s.ResourceVersion, bound[own].ResourceVersion)
		if err != nil || i == own {
			continue
		}
		if order > 0 && !before.Has(s.UID) {
			left.Insert(s.UID)
			continue
		}
		if err := deleteBound(ctx, member, s); err != nil {
			return nil, strange, err
		}
		if order > 0 {
			strange = append(strange, s.Name)
		}
	}
	return left, strange, nil
}

// DeleteBound deletes all Secrets that tokens of an account may be bound to.
func DeleteBound(ctx context.Context, member kubernetes.Interface, namespace, account string) error {
	bound, err := listBound(ctx, member, namespace, account)
	if err != nil {
		return err
	}
	for i := range bound {
		if err := deleteBound(ctx, member, &bound[i]); err != nil {
			return err
		}
	}
	return nil
}

func listBound(ctx context.Context, member kubernetes.Interface, namespace, account string) ([]corev1.Secret, error) {
	all, err := member.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all.Items, func(s corev1.Secret) bool { return !strings.HasPrefix(s.Name, boundPrefix(account)) }), nil
}

func deleteBound(ctx context.Context, member kubernetes.Interface, s *corev1.Secret) error {
	err := member.CoreV1().Secrets(s.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
