package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/join"
)

// stolen returns a client of a member with the token that the federation has for it, and the federation's UID.
func stolen(t *testing.T, member string) (kubernetes.Interface, string) {
	t.Helper()
	uid, err := join.FederationUID(t.Context(), s.fed.client)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(s.members[member].config)
	config.BearerToken = accountToken(t, member, join.AccountName(uid))
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, uid
}

// accountToken returns a token of the federation's account in a member: the federation's own, or one as the agent has.
func accountToken(t *testing.T, member, account string) string {
	t.Helper()
	if pullMode {
		token, err := s.members[member].client.CoreV1().ServiceAccounts(v1beta1.FederationNamespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return token.Status.Token
	}
	secret, err := s.fed.client.CoreV1().Secrets(v1beta1.FederationNamespace).Get(t.Context(), join.SecretName(member), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(secret.Data["token"])
}

// TestFencesHoldTheAccount: with the federation's own credential for a member, somebody tries what its rights would allow and the
// federation never does.
func TestFencesHoldTheAccount(t *testing.T) {
	const member = "east-b"
	thief, uid := stolen(t, member)
	admin := s.members[member].client
	ctx := t.Context()
	mine := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1beta1.ManagedByLabel: uid}}}
	}
	if _, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "their-own"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = admin.CoreV1().Namespaces().Delete(context.Background(), "their-own", metav1.DeleteOptions{})
	})
	if _, err := admin.CoreV1().Secrets(ns).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.CoreV1().Secrets(ns).Delete(context.Background(), "theirs", metav1.DeleteOptions{}) })

	token := &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken, ObjectMeta: metav1.ObjectMeta{
		Name: "token", Labels: map[string]string{v1beta1.ManagedByLabel: uid}, Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}}}
	patch := func(field, key, value string) []byte {
		return []byte(`{"metadata":{"` + field + `":{"` + key + `":"` + value + `"}}}`)
	}
	for name, try := range map[string]struct {
		do   func() error
		want string
	}{
		"an object in kube-system": {func() error {
			_, err := thief.CoreV1().ConfigMaps("kube-system").Create(ctx, mine("fence"), metav1.CreateOptions{})
			return err
		}, "is protected"},
		"an object in its own namespace": {func() error {
			_, err := thief.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Create(ctx, mine("fence"), metav1.CreateOptions{})
			return err
		}, "ValidatingAdmissionPolicy"}, // which the condition FencesMissing goes by
		"the namespace kube-system": {func() error {
			_, err := thief.CoreV1().Namespaces().Patch(ctx, "kube-system", types.MergePatchType, patch("labels", v1beta1.ManagedByLabel, uid), metav1.PatchOptions{})
			return err
		}, "is protected"},
		"an object without the mark": {func() error {
			_, err := thief.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "fence"}}, metav1.CreateOptions{})
			return err
		}, "only objects that it manages"},
		"somebody's Secret, marked": {func() error {
			_, err := thief.CoreV1().Secrets(ns).Patch(ctx, "theirs", types.MergePatchType, patch("labels", v1beta1.ManagedByLabel, uid), metav1.PatchOptions{})
			return err
		}, "only objects that it manages"},
		"somebody's Secret, deleted": {func() error { return thief.CoreV1().Secrets(ns).Delete(ctx, "theirs", metav1.DeleteOptions{}) }, "only objects that it manages"},
		"a token of an account": {func() error {
			_, err := thief.CoreV1().Secrets(ns).Create(ctx, token, metav1.CreateOptions{})
			return err
		}, "no Secrets that are tokens"},
		"an object in a namespace of the cluster's own": {func() error {
			_, err := thief.CoreV1().ConfigMaps("their-own").Create(ctx, mine("fence"), metav1.CreateOptions{})
			return err
		}, join.AcceptLabel + "=" + uid},
	} {
		if err := try.do(); err == nil || !strings.Contains(err.Error(), try.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, try.want)
		}
	}

	if _, err := admin.CoreV1().Namespaces().Patch(ctx, "their-own", types.MergePatchType, patch("labels", join.AcceptLabel, uid), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() string { // the API server's own cache of namespaces follows
		if _, err := thief.CoreV1().ConfigMaps("their-own").Create(ctx, mine("fence"), metav1.CreateOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// TestFencesKeepWhatIsReserved: a user of a member may write Services and slices, and takes nobody's addresses by what node agents
// believe of the federation.
func TestFencesKeepWhatIsReserved(t *testing.T) {
	const member = "east-b"
	_, uid := stolen(t, member)
	config := rest.CopyConfig(s.members[member].config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "mallory", Groups: []string{"system:masters"}}
	user, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ports := corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}
	service := func(name string, labels, annotations map[string]string) error {
		made := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations}, Spec: ports}
		_, err := user.CoreV1().Services(ns).Create(t.Context(), made, metav1.CreateOptions{})
		return err
	}
	if err := service("fence-plain", map[string]string{"a": "b"}, map[string]string{"a": "b"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = user.CoreV1().Services(ns).Delete(context.Background(), "fence-plain", metav1.DeleteOptions{})
	})
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, ObjectMeta: metav1.ObjectMeta{
		Name: "fence", Labels: map[string]string{v1beta1.ManagedByLabel: uid, v1beta1.RemoteServiceLabel: "fence-plain"}}}
	_, sliceErr := user.DiscoveryV1().EndpointSlices(ns).Create(t.Context(), slice, metav1.CreateOptions{})
	// A slice of a Service has its labels, whoever writes it: it may not become one of another cluster.
	own := slice.DeepCopy()
	own.Name, own.Labels = "fence-own", map[string]string{v1beta1.ManagedByLabel: uid, discoveryv1.LabelServiceName: "fence-plain"}
	if _, err := user.DiscoveryV1().EndpointSlices(ns).Create(t.Context(), own, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = user.DiscoveryV1().EndpointSlices(ns).Delete(context.Background(), "fence-own", metav1.DeleteOptions{})
	})
	turn := []byte(`{"metadata":{"labels":{"` + discoveryv1.LabelServiceName + `":null,"` + v1beta1.RemoteServiceLabel + `":"fence-plain"}}}`)
	_, turnErr := user.DiscoveryV1().EndpointSlices(ns).Patch(t.Context(), "fence-own", types.MergePatchType, turn, metav1.PatchOptions{})
	annotate := []byte(`{"metadata":{"annotations":{"` + v1beta1.FallbackAnnotation + `":"true"}}}`)
	_, annotateErr := user.CoreV1().Services(ns).Patch(t.Context(), "fence-plain", types.MergePatchType, annotate, metav1.PatchOptions{})
	for name, err := range map[string]error{
		"the mark":        service("fence-mark", map[string]string{v1beta1.ManagedByLabel: uid}, nil),
		"a clusterset IP": service("fence-ip", nil, map[string]string{v1beta1.ClusterSetIPAnnotation: "10.200.0.7"}),
		"fallback":        annotateErr,
		"a marked slice":  sliceErr,
		"a slice that becomes one of another cluster": turnErr,
	} {
		if err == nil || !strings.Contains(err.Error(), "by the federation only") {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
}
