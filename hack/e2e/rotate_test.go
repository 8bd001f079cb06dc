package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/credential"
	"federation/clusterregistry/join"
)

// TestRotateEndsAStolenCredential: whoever copied the federation's token for a member has nothing half a minute after it was rotated, and cannot ask for one
// that would outlive that.
func TestRotateEndsAStolenCredential(t *testing.T) {
	if pullMode {
		t.Skip("the federation has no credential of a member in pull mode: there is none to rotate")
	}
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
	// Whoever has the token binds others to Secrets of its own: a marked one, one without a label, and one while the rotation goes on.
	others := []kubernetes.Interface{bindOwn(t, thief, member, account, true), bindOwn(t, thief, member, account, false)}
	if out, err := s.plugin(t, "rotate", member); err != nil || !strings.Contains(out, "has a new credential") {
		t.Fatalf("%s, %v", out, err)
	}
	others = append(others, thief, bindOwn(t, thief, member, account, true))
	eventually(t, 3*time.Minute, func() string {
		for i, c := range others {
			if err := works(c); !apierrors.IsUnauthorized(err) {
				return fmt.Sprintf("the stolen token %d is accepted still", i)
			}
		}
		return ""
	})
	now, _ := stolen(t, member)
	if err := works(now); err != nil {
		t.Errorf("the new token: %v", err)
	}
	events, err := s.fed.client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + v1beta1.EventUnknownCredential})
	if err != nil || len(events.Items) == 0 || !strings.Contains(events.Items[0].Message, account) {
		t.Errorf("events: %v, %v", events, err)
	}
	bound, err := s.members[member].client.CoreV1().Secrets("federation-system").List(t.Context(), metav1.ListOptions{LabelSelector: "federation.kubernetes.io/credential-of=" + account})
	if err != nil || len(bound.Items) != 1 || len(bound.Items[0].OwnerReferences) != 1 {
		t.Errorf("Secrets that tokens are bound to: %v, %v", bound, err)
	}
}

// TestAnAdministratorEndsAThief: who uses a copy of the credential all the time asks for tokens of each new one, bound to the federation's own Secret. With the
// credential of the cluster's administrator that ends.
func TestAnAdministratorEndsAThief(t *testing.T) {
	if pullMode {
		t.Skip("the federation has no credential of a member in pull mode: there is none to rotate")
	}
	const member = "east-b"
	thief, uid := stolen(t, member)
	account := join.AccountName(uid)
	var mu sync.Mutex
	clients := []kubernetes.Interface{thief}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { // each second a token, by the newest that works, bound to each Secret that is there
		for ctx.Err() == nil {
			mu.Lock()
			with := clients[len(clients)-1]
			mu.Unlock()
			if all, err := with.CoreV1().Secrets("federation-system").List(ctx, metav1.ListOptions{}); err == nil {
				for i := range all.Items {
					if c := tokenFor(ctx, with, member, account, &all.Items[i]); c != nil {
						mu.Lock()
						clients = append(clients, c)
						mu.Unlock()
					}
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	eventually(t, 30*time.Second, func() string {
		mu.Lock()
		defer mu.Unlock()
		if len(clients) < 3 {
			return "the thief has no tokens of its own"
		}
		return ""
	})
	if out, err := s.plugin(t, "rotate", member, "--member-kubeconfig", filepath.Join(s.dir, "members", member, "kubeconfig")); err != nil || !strings.Contains(out, "has a new account") {
		t.Fatalf("%s, %v", out, err)
	}
	time.Sleep(3 * time.Second)
	stop()
	mu.Lock()
	defer mu.Unlock()
	for i, c := range clients {
		if _, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{Limit: 1}); !apierrors.IsUnauthorized(err) {
			t.Errorf("token %d of %d of the thief: %v", i, len(clients), err)
		}
	}
	clusterReady(t, member, corev1.ConditionTrue)
}

// bindOwn makes a Secret with the stolen credential, and returns a client with a token that is bound to it.
func bindOwn(t *testing.T, thief kubernetes.Interface, member, account string, labelled bool) kubernetes.Interface {
	t.Helper()
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: account + "-thief"}}
	if labelled {
		own.Labels = map[string]string{credential.AccountLabel: account}
	}
	own, err := thief.CoreV1().Secrets("federation-system").Create(t.Context(), own, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := tokenFor(t.Context(), thief, member, account, own)
	if c == nil {
		t.Fatal("no token for the thief")
	}
	return c
}

// tokenFor is a client with a token that is bound to a Secret; nil where none is given.
func tokenFor(ctx context.Context, with kubernetes.Interface, member, account string, to *corev1.Secret) kubernetes.Interface {
	hour := int64(3600)
	token, err := with.CoreV1().ServiceAccounts("federation-system").CreateToken(ctx, account, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &hour, BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: to.Name, UID: to.UID},
	}}, metav1.CreateOptions{})
	if err != nil {
		return nil
	}
	config := rest.AnonymousClientConfig(s.members[member].config)
	config.BearerToken = token.Status.Token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil
	}
	return client
}
