package join

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// Replacing the account deletes it and what tokens were bound to, makes it again with its owner, and stores a token of the new one. An interrupted replacement can be
// repeated, and another cluster's credential changes nothing.
func TestReplaceAccount(t *testing.T) {
	f, ctx := newFakes(), t.Context()
	if _, err := Join(ctx, f.request("east-a")); err != nil {
		t.Fatal(err)
	}
	account := AccountName(uid)
	for _, name := range []string{account + "-thief", "unrelated"} {
		if err := f.member.Tracker().Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := ReplaceAccount(ctx, f.request("west-a"), SecretName("west-a"), 0); err == nil || !strings.Contains(err.Error(), `is "east-a" at this federation`) {
		t.Errorf("with another cluster's credential: %v", err)
	}
	var did []string
	f.member.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if resource := a.GetResource().Resource; a.GetVerb() != "get" && (resource == "serviceaccounts" || resource == "secrets") {
			did = append(did, a.GetVerb()+" "+resource+"/"+a.GetSubresource())
		}
		return false, nil, nil
	})
	for range 2 { // as if the first had been interrupted
		did = nil
		if err := ReplaceAccount(ctx, f.request("east-a"), SecretName("east-a"), 0); err != nil {
			t.Fatal(err)
		}
		if i, j := slices.Index(did, "delete serviceaccounts/"), slices.Index(did, "create serviceaccounts/"); i < 0 || j < i || slices.Index(did, "create serviceaccounts/token") < j {
			t.Errorf("in the member: %q", did)
		}
		if err := f.member.CoreV1().ServiceAccounts(namespace).Delete(ctx, account, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.member.CoreV1().Secrets(namespace).Get(ctx, account+"-thief", metav1.GetOptions{}); err == nil {
		t.Error("the Secret of a thief is there")
	}
	if _, err := f.member.CoreV1().Secrets(namespace).Get(ctx, "unrelated", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
