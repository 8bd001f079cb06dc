package e2e

import (
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"federation/clusterregistry/join"
)

// TestRotateEndsAStolenCredential: whoever copied the federation's token for a member has nothing half a minute after it was rotated, and cannot ask for one
// that would outlive that.
func TestRotateEndsAStolenCredential(t *testing.T) {
	const member = "east-b"
	thief, uid := stolen(t, member)
	account := join.AccountName(uid)
	works := func(c kubernetes.Interface) error {
		_, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{Limit: 1})
		return err
	}
	if err := works(thief); err != nil {
		t.Fatal(err)
	}
	week := int64(7 * 24 * 3600)
	for name, spec := range map[string]authenticationv1.TokenRequestSpec{
		"bound to nothing": {},
		"for a week":       {ExpirationSeconds: &week, BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: account + "-x"}},
	} {
		_, err := thief.CoreV1().ServiceAccounts("federation-system").CreateToken(t.Context(), account, &authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "must be bound to a Secret") {
			t.Errorf("a token %s: %v", name, err)
		}
	}
	if out, err := s.plugin(t, "rotate", member); err != nil || !strings.Contains(out, "has a new credential") {
		t.Fatalf("%s, %v", out, err)
	}
	eventually(t, 90*time.Second, func() string {
		if err := works(thief); !apierrors.IsUnauthorized(err) {
			return "the stolen token is accepted still"
		}
		return ""
	})
	now, _ := stolen(t, member)
	if err := works(now); err != nil {
		t.Errorf("the new token: %v", err)
	}
	bound, err := s.members[member].client.CoreV1().Secrets("federation-system").List(t.Context(), metav1.ListOptions{LabelSelector: "federation.kubernetes.io/credential-of=" + account})
	if err != nil || len(bound.Items) != 1 || len(bound.Items[0].OwnerReferences) != 1 {
		t.Errorf("Secrets that tokens are bound to: %v, %v", bound, err)
	}
}
