package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"federation/apiserver/apis/federation/v1beta1"
)

const uid = "11111111-2222-3333-4444-555555555555"

// fakes are both sides in memory. They have no garbage collector and give no UIDs: the members of
// hack/local show that what the ClusterRole owns goes with it.
type fakes struct {
	federation, member *fake.Clientset
	dynamic            *dynamicfake.FakeDynamicClient
}

func newFakes(inMember ...runtime.Object) fakes {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	f := fakes{
		federation: fake.NewSimpleClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: uid}}),
		member:     fake.NewSimpleClientset(inMember...),
		dynamic:    dynamicfake.NewSimpleDynamicClient(scheme),
	}
	f.member.PrependReactor("create", "serviceaccounts", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "token" {
			return false, nil, nil
		}
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: "secret-token"}}, nil
	})
	f.member.PrependReactor("create", "clusterroles", func(a clienttesting.Action) (bool, runtime.Object, error) {
		a.(clienttesting.CreateAction).GetObject().(*rbacv1.ClusterRole).UID = types.UID("role-uid")
		return false, nil, nil
	})
	return f
}

func (f fakes) request(name string) Request {
	return Request{Name: name, Federation: f.federation, FederationDynamic: f.dynamic, Member: f.member, MemberAs: f.memberAs, Server: "https://10.0.0.5:6443", CA: []byte("CA")}
}

// memberAs is the member as the account, whom the fences that are there hold.
func (f fakes) memberAs(as rest.ImpersonationConfig) (kubernetes.Interface, error) {
	account := fake.NewClientset()
	account.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		policy, err := f.member.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(context.Background(), AccountName(uid), metav1.GetOptions{})
		if err != nil || as.UserName != username(uid) {
			return true, &corev1.ConfigMap{}, nil
		}
		return true, nil, fmt.Errorf("ValidatingAdmissionPolicy '%[1]s' with binding '%[1]s' denied request: %s", policy.Name, policy.Spec.Validations[0].Message)
	})
	return account, nil
}

func TestJoin(t *testing.T) {
	f, ctx := newFakes(), context.Background()
	for range 2 { // the second time refreshes
		if _, err := Join(ctx, f.request("east-a")); err != nil {
			t.Fatal(err)
		}
	}
	secret, err := f.federation.CoreV1().Secrets(namespace).Get(ctx, "cluster-east-a", metav1.GetOptions{})
	if err != nil || string(secret.Data["token"]) != "secret-token" || string(secret.Data["ca.crt"]) != "CA" {
		t.Errorf("Secret %v, %v", secret, err)
	}
	u, err := f.dynamic.Resource(v1beta1.ClustersResource).Get(ctx, "east-a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := &v1beta1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c); err != nil {
		t.Fatal(err)
	}
	if a := c.Spec.ServerAddressByClientCIDRs; len(a) != 2 || a[0].ServerAddress != "10.0.0.5:6443" || c.Spec.SecretRef.Name != "cluster-east-a" {
		t.Errorf("Cluster %+v", c.Spec)
	}
	account := "federation-" + uid
	binding, err := f.member.RbacV1().ClusterRoleBindings().Get(ctx, account, metav1.GetOptions{})
	if err != nil || binding.RoleRef.Name != account || binding.Subjects[0].Name != account || binding.Subjects[0].Namespace != namespace {
		t.Errorf("binding %v, %v", binding, err)
	}
	if len(binding.OwnerReferences) != 1 || binding.OwnerReferences[0].UID != "role-uid" {
		t.Errorf("the binding would stay when the role is deleted: owners %v", binding.OwnerReferences)
	}
	for ns, resource := range map[string]string{namespace: "serviceaccounts/token", "kube-node-lease": "leases"} {
		role, err := f.member.RbacV1().Roles(ns).Get(ctx, account, metav1.GetOptions{})
		if err != nil || role.Rules[0].Resources[0] != resource || len(role.OwnerReferences) != 1 {
			t.Errorf("role %v, %v in %s", role, err, ns)
		}
		bound, err := f.member.RbacV1().RoleBindings(ns).Get(ctx, account, metav1.GetOptions{})
		if err != nil || bound.RoleRef.Kind != "Role" || bound.RoleRef.Name != account || bound.Subjects[0].Name != account || len(bound.OwnerReferences) != 1 {
			t.Errorf("binding %v, %v in %s", bound, err, ns)
		}
	}
}

// The switch that pauses the agent is there before an agent is, is not one of a cluster that the federation connects to, and stays as it is set.
func TestJoinMakesTheSwitchOfTheAgent(t *testing.T) {
	f, ctx := newFakes(), t.Context()
	configMaps := f.member.CoreV1().ConfigMaps(namespace)
	if _, err := Join(ctx, f.request("east-a")); err != nil {
		t.Fatal(err)
	}
	if _, err := configMaps.Get(ctx, AgentConfigMap, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a cluster without an agent: %v", err)
	}
	r := f.request("east-a")
	r.Pull, r.Server = true, ""
	for _, paused := range []string{"false", "true"} {
		if _, err := Join(ctx, r); err != nil {
			t.Fatal(err)
		}
		m, err := configMaps.Get(ctx, AgentConfigMap, metav1.GetOptions{})
		if err != nil || m.Data["paused"] != paused || len(m.OwnerReferences) != 1 {
			t.Fatalf("ConfigMap %v, %v, want paused %q", m, err, paused)
		}
		if _, err := configMaps.Patch(ctx, m.Name, types.StrategicMergePatchType, []byte(`{"data":{"paused":"true"}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// A cluster that joins again has its address changed before its token: no good check with the token is at the address of before. The Cluster says last which
// join it is, as the Secret does.
func TestJoiningAgainChangesTheAddressFirst(t *testing.T) {
	f := newFakes()
	first, err := Join(t.Context(), f.request("east-a"))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	note := func(a clienttesting.Action) (bool, runtime.Object, error) {
		of := "another join"
		if is, err := meta.Accessor(a.(clienttesting.UpdateAction).GetObject()); err != nil || is.GetAnnotations()[v1beta1.JoinAnnotation] == first.Annotations[v1beta1.JoinAnnotation] {
			of = "the first join"
		}
		order = append(order, a.GetResource().Resource+" of "+of)
		return false, nil, nil
	}
	f.federation.PrependReactor("update", "secrets", note)
	f.dynamic.PrependReactor("update", "clusters", note)
	second, err := Join(t.Context(), f.request("east-a"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"clusters of the first join", "secrets of another join", "clusters of another join"}; !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
	secret, err := f.federation.CoreV1().Secrets(namespace).Get(t.Context(), SecretName("east-a"), metav1.GetOptions{})
	if id := second.Annotations[v1beta1.JoinAnnotation]; err != nil || id == "" || secret.Annotations[v1beta1.JoinAnnotation] != id {
		t.Errorf("the Cluster is of join %q, the Secret %v, %v", id, secret.Annotations, err)
	}
}

// The account has no rights before the cluster refuses what the fences of this very join refuse.
func TestTheAccountWaitsForItsFences(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(tries int, digest string) error
		want   string // of the error
		waits  bool
	}{
		"nobody refuses, and then they do": {func(tries int, digest string) error {
			if tries < 20 {
				return nil
			}
			return errors.New("denied request: fences " + digest)
		}, "", true},
		"those of before refuse": {func(tries int, digest string) error {
			if tries < 20 {
				digest = "0123456789abcdef"
			}
			return fmt.Errorf("ValidatingAdmissionPolicy 'x' with binding '%s' denied request: fences %s", AccountName(uid), digest)
		}, "", true},
		"nobody ever refuses":   {func(int, string) error { return nil }, "does not enforce the ValidatingAdmissionPolicies", true},
		"somebody else refuses": {func(int, string) error { return errors.New("webhook denied the request: no label team") }, "", true},
		"they refuse at once":   {func(_ int, digest string) error { return errors.New("denied request: fences " + digest) }, "", false},
		"only those of before do": {func(int, string) error {
			return fmt.Errorf("with binding '%s' denied request: fences 0", AccountName(uid))
		}, "does not enforce", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, tries, bound := newFakes(), 0, false
				f.member.PrependReactor("create", "clusterrolebindings", func(clienttesting.Action) (bool, runtime.Object, error) {
					bound = true
					return false, nil, nil
				})
				r := f.request("east-a")
				r.MemberAs = func(rest.ImpersonationConfig) (kubernetes.Interface, error) {
					account := fake.NewClientset()
					account.PrependReactor("create", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
						if tries++; bound {
							t.Error("the account has rights while it is tried")
						}
						policy, err := f.member.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), AccountName(uid), metav1.GetOptions{})
						if err != nil {
							t.Fatal(err)
						}
						return true, &corev1.ConfigMap{}, test.answer(tries, strings.TrimPrefix(policy.Spec.Validations[0].Message, "fences "))
					})
					return account, nil
				}
				begin := time.Now()
				_, err := Join(t.Context(), r)
				if test.want == "" && (err != nil || !bound) || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || bound) || (time.Since(begin) > 0) != test.waits {
					t.Errorf("%v after %v and %d tries, the account has rights: %v; want %q", err, time.Since(begin), tries, bound, test.want)
				}
			})
		})
	}
}

// Leaving ends the bootstrap tokens of the cluster's agent, and of no other.
func TestUnjoinDeletesTokensOfTheAgent(t *testing.T) {
	f, ctx := newFakes(), t.Context()
	r := f.request("east-a")
	r.Pull, r.Server = true, ""
	if _, err := Join(ctx, r); err != nil {
		t.Fatal(err)
	}
	for _, cluster := range []string{"east-a", "east-a", "west-a"} {
		if _, err := CreateAgentToken(ctx, f.federation, cluster, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Unjoin(ctx, r); err != nil {
		t.Fatal(err)
	}
	left, err := f.federation.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 || left.Items[0].Labels[ClusterLabel] != "west-a" {
		t.Errorf("tokens %v, %v", left, err)
	}
}

// A cluster that the federation connected to, and that joins again to connect itself, has no token left that the federation was given, and the
// federation has neither the credential nor the address.
func TestJoinByPullEndsWhatPushGave(t *testing.T) {
	f, ctx := newFakes(), t.Context()
	if _, err := Join(ctx, f.request("east-a")); err != nil {
		t.Fatal(err)
	}
	bound, err := f.member.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(bound.Items) != 1 {
		t.Fatalf("tokens are bound to %v, %v", bound, err)
	}
	r := f.request("east-a")
	r.Pull, r.Server = true, ""
	for range 2 {
		if _, err := Join(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	if bound, err = f.member.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{}); err != nil || len(bound.Items) != 0 {
		t.Errorf("tokens are bound to %v, %v", bound, err)
	}
	if _, err := f.federation.CoreV1().Secrets(namespace).Get(ctx, SecretName("east-a"), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Secret with the credential: %v", err)
	}
	u, err := f.dynamic.Resource(v1beta1.ClustersResource).Get(ctx, "east-a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	role, err := f.member.RbacV1().Roles(namespace).Get(ctx, AccountName(uid), metav1.GetOptions{})
	if err != nil || strings.Contains(fmt.Sprint(role.Rules), "token") {
		t.Errorf("the account may get tokens of itself: %v, %v", role, err)
	}
	if spec["connection"] != "Pull" || spec["secretRef"] != nil || spec["serverAddressByClientCIDRs"] != nil {
		t.Errorf("spec %v", spec)
	}
}

// The first token lasts as long as the federation says, and the fence allows as much later.
func TestTheFederationSaysHowLongTokensLast(t *testing.T) {
	for said, want := range map[time.Duration]time.Duration{0: 24 * time.Hour, time.Hour: time.Hour, 30 * 24 * time.Hour: 30 * 24 * time.Hour} {
		f, asked := newFakes(), int64(0)
		f.member.PrependReactor("create", "serviceaccounts", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if a.GetSubresource() == "token" {
				asked = *a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenRequest).Spec.ExpirationSeconds
			}
			return false, nil, nil
		})
		if said > 0 {
			info := v1beta1.Info{Name: "fed", DNSZone: "example.com", MemberTokenLifetime: said}
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.InfoConfigMap}, Data: info.ConfigMapData()}
			if _, err := f.federation.CoreV1().ConfigMaps(namespace).Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Join(t.Context(), f.request("east-a")); err != nil {
			t.Fatal(err)
		}
		fence, err := f.member.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), AccountName(uid)+"-tokens", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if bound := fmt.Sprintf("<= %d", int64(want.Seconds())); asked != int64(want.Seconds()) || !strings.HasSuffix(fence.Spec.Validations[0].Expression, bound) {
			t.Errorf("said %s: asked for %d seconds, and the fence is %s; want %s", said, asked, fence.Spec.Validations[0].Expression, want)
		}
	}
}

func TestJoiningAgainKeepsWhatOperatorsSet(t *testing.T) {
	f, ctx := newFakes(), context.Background()
	r := f.request("east-a")
	r.CustomKinds = []string{"widgets.example.com"}
	if _, err := Join(ctx, r); err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"spec":{"dnsWeight":0,"taints":[{"key":"k","effect":"NoSchedule"}]}}`)
	if _, err := f.dynamic.Resource(v1beta1.ClustersResource).Patch(ctx, "east-a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	r.CustomKinds, r.Server = []string{"gadgets.example.org"}, "https://10.0.0.6:6443"
	if _, err := Join(ctx, r); err != nil {
		t.Fatal(err)
	}
	u, err := f.dynamic.Resource(v1beta1.ClustersResource).Get(ctx, "east-a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := &v1beta1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c); err != nil {
		t.Fatal(err)
	}
	if c.DNSWeight() != 0 || len(c.Spec.Taints) != 1 || c.Spec.ServerAddressByClientCIDRs[0].ServerAddress != "10.0.0.6:6443" {
		t.Errorf("spec %+v", c.Spec)
	}
	role, err := f.member.RbacV1().ClusterRoles().Get(ctx, "federation-"+uid, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []rbacv1.PolicyRule{
		{APIGroups: []string{"example.com"}, Resources: []string{"widgets"}, Verbs: writeVerbs},
		{APIGroups: []string{"example.org"}, Resources: []string{"gadgets"}, Verbs: writeVerbs},
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: writeVerbs,
			ResourceNames: []string{"gadgets.example.org", "widgets.example.com"}},
	} {
		if !slices.ContainsFunc(role.Rules, func(is rbacv1.PolicyRule) bool { return is.String() == want.String() }) {
			t.Errorf("no rule %v in %v", want, role.Rules)
		}
	}
}

// joined joins a member and returns what the federation may do there.
func (f fakes) joined(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	if _, err := Join(context.Background(), f.request("east-a")); err != nil {
		t.Fatal(err)
	}
	role, err := f.member.RbacV1().ClusterRoles().Get(context.Background(), "federation-"+uid, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return role
}

func TestJoinRefusesWhatIsNoCustomKind(t *testing.T) {
	for kind, want := range map[string]string{
		"widgets":                                "must be RESOURCE.GROUP",
		"widgets.apps":                           "must be RESOURCE.GROUP",
		"*.example.com":                          "must be RESOURCE.GROUP",
		"clusterroles.rbac.authorization.k8s.io": "Kubernetes' own",
	} {
		r := newFakes().request("east-a")
		r.CustomKinds = []string{kind}
		if _, err := Join(context.Background(), r); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), kind) {
			t.Errorf("%s: %v, want %q", kind, err, want)
		}
	}
}

func TestJoinGivesRightsForAllThatIsFederated(t *testing.T) {
	role := newFakes().joined(t)
	for _, r := range v1beta1.FederatedResources {
		if !slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Resources, r.Resource) && slices.Equal(rule.Verbs, writeVerbs)
		}) {
			t.Errorf("no right to write %s", r)
		}
	}
}

// Of pull mode the account is the same: the agent forwards requests with its token.
func TestJoinGivesTheRightToReadMetrics(t *testing.T) {
	role := newFakes().joined(t)
	for _, group := range []string{"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"} {
		if !slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.APIGroups, group) && slices.Equal(rule.Verbs, []string{"get", "list"})
		}) {
			t.Errorf("no right to get and list what is in %s", group)
		}
	}
}

func TestJoinGivesNoMoreRightsThanNeeded(t *testing.T) {
	f := newFakes()
	role := f.joined(t)
	for _, rule := range role.Rules {
		all := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs)
		metrics := slices.Equal(rule.APIGroups, []string{"custom.metrics.k8s.io", "external.metrics.k8s.io"}) && slices.Equal(rule.Verbs, []string{"get", "list"}) // whose names are anything
		if slices.Contains(all, "*") && !metrics {
			t.Errorf("rule %v says *", rule)
		}
		if slices.Contains(rule.Verbs, "impersonate") || slices.Contains(rule.Verbs, "escalate") || slices.Contains(rule.Verbs, "bind") {
			t.Errorf("rule %v gives more than propagation needs", rule)
		}
		if slices.Contains(rule.Resources, "leases") {
			t.Errorf("rule %v shows the Leases of all namespaces", rule)
		}
		if slices.Contains(rule.Resources, "clusterroles") && !slices.Equal(rule.ResourceNames, []string{role.Name}) {
			t.Errorf("rule %v reaches roles that are not ours", rule)
		}
	}
	r := f.request("east-a")
	r.AllowProxy = true
	if _, err := Join(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	role, _ = f.member.RbacV1().ClusterRoles().Get(context.Background(), role.Name, metav1.GetOptions{})
	if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Verbs, "impersonate") }) {
		t.Error("AllowProxy does not give impersonate")
	}
	lease := func() bool {
		role, err := f.member.RbacV1().Roles(namespace).Get(t.Context(), AccountName(uid), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Equal(rule.Resources, []string{"leases"}) && slices.Equal(rule.ResourceNames, []string{v1beta1.DrillLease}) && slices.Equal(rule.Verbs, []string{"get", "update"})
		})
	}
	if lease() {
		t.Error("there is a right to the Lease of drills that nobody asked for")
	}
	r.AllowBlackhole = true
	if _, err := Join(t.Context(), r); err != nil || !lease() {
		t.Errorf("AllowBlackhole gives no right to the Lease of drills: %v", err)
	}
	bindings := f.member.RbacV1().ClusterRoleBindings()
	admins, err := bindings.Get(context.Background(), role.Name+"-admins", metav1.GetOptions{})
	if err != nil || admins.Subjects[0].Name != v1beta1.AdminsGroup || len(admins.OwnerReferences) != 1 {
		t.Errorf("the federation's administrators come through the proxy without rights: %v, %v", admins, err)
	}
	if _, err := Join(context.Background(), f.request("east-a")); err != nil {
		t.Fatal(err)
	}
	if _, err := bindings.Get(context.Background(), role.Name+"-admins", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("without AllowProxy they keep their rights: %v", err)
	}
}

func TestJoinRefuses(t *testing.T) {
	joinedAs := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "federation-" + uid, Labels: map[string]string{ClusterLabel: "other"}}}
	for name, test := range map[string]struct {
		cluster, server, want string
		member                []runtime.Object
	}{
		"no DNS label":             {cluster: "East_A", want: `cluster name "East_A"`},
		"plain http":               {server: "http://10.0.0.5", want: `server "http://10.0.0.5": must be https://`},
		"a path":                   {server: "https://10.0.0.5/k8s/c1", want: "with nothing behind it"},
		"a member by another name": {member: []runtime.Object{joinedAs}, want: `already, as "other"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakes(test.member...)
			r := f.request("east-a")
			if test.cluster != "" {
				r.Name = test.cluster
			}
			if test.server != "" {
				r.Server = test.server
			}
			if _, err := Join(context.Background(), r); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

// The role federation-cluster-admin and Secrets in federation-system are enough at the federation.
func TestJoinNeedsNoRightToMakeNamespacesAtTheFederation(t *testing.T) {
	f := newFakes()
	f.federation.PrependReactor("create", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("namespaces"), namespace, errors.New("jane may not"))
	})
	if _, err := Join(t.Context(), f.request("east-a")); err != nil {
		t.Fatal(err)
	}
}

func TestJoinLeavesAForeignSecretAlone(t *testing.T) {
	f, ctx := newFakes(), context.Background()
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cluster-east-a"}, Data: map[string][]byte{"k": []byte("v")}}
	if _, err := f.federation.CoreV1().Secrets(namespace).Create(ctx, foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(ctx, f.request("east-a")); err == nil || !strings.Contains(err.Error(), "was not made by join") {
		t.Errorf("error %v", err)
	}
}

func TestUnjoin(t *testing.T) {
	ctx := context.Background()
	for name, test := range map[string]struct {
		reachable bool
		namespace string // the label on the member's namespace, where it was there before
		adopts    bool   // whether the namespace goes with the role
	}{
		"all goes":                          {reachable: true, namespace: "", adopts: true},
		"a namespace that was there before": {reachable: true, namespace: "somebody"},
		"a member that is not there":        {},
	} {
		t.Run(name, func(t *testing.T) {
			var before []runtime.Object
			if test.namespace != "" {
				before = append(before, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{FederationLabel: test.namespace}}})
			}
			f := newFakes(before...)
			r := f.request("east-a")
			r.CustomKinds = []string{"widgets.example.com"}
			if _, err := Join(ctx, r); err != nil {
				t.Fatal(err)
			}
			if !test.reachable {
				f.member.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, errors.New("connection refused")
				})
			}
			left, err := Unjoin(ctx, r)
			if err != nil || (left.Behind == nil) != test.reachable || left.FederationUID != uid || slices.Equal(left.CustomKinds, r.CustomKinds) != test.reachable {
				t.Fatalf("left %+v, error %v", left, err)
			}
			if _, err := f.dynamic.Resource(v1beta1.ClustersResource).Get(ctx, "east-a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the Cluster is still there: %v", err)
			}
			if _, err := f.federation.CoreV1().Secrets(namespace).Get(ctx, "cluster-east-a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the Secret is still there: %v", err)
			}
			if test.reachable {
				f.checkMember(t, test.adopts)
			}
			if _, err := Unjoin(ctx, r); !errors.Is(err, ErrNotJoined) {
				t.Errorf("unjoin again: %v, want ErrNotJoined", err)
			}
		})
	}
}

func (f fakes) checkMember(t *testing.T, adopts bool) {
	t.Helper()
	ctx := context.Background()
	if _, err := f.member.RbacV1().ClusterRoles().Get(ctx, "federation-"+uid, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the role that owns the rest is still there: %v", err)
	}
	ns, err := f.member.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil || (len(ns.OwnerReferences) == 1) != adopts {
		t.Errorf("namespace owners %v, %v; want it owned: %v", ns.OwnerReferences, err, adopts)
	}
}

func TestUnjoinFinishesWhatWasInterrupted(t *testing.T) {
	f, ctx := newFakes(), context.Background()
	if _, err := Join(ctx, f.request("east-a")); err != nil {
		t.Fatal(err)
	}
	// The Cluster is gone already, the rest is not.
	if err := f.dynamic.Tracker().Delete(v1beta1.ClustersResource, "", "east-a"); err != nil {
		t.Fatal(err)
	}
	if left, err := Unjoin(ctx, f.request("east-a")); err != nil || left.Behind != nil {
		t.Errorf("left %+v, error %v", left, err)
	}
	f.checkMember(t, true)
}

// TestJoinRightAfterUnjoin: the member's garbage collector has the namespace still before it, or under way.
func TestJoinRightAfterUnjoin(t *testing.T) {
	meta := metav1.ObjectMeta{Name: namespace, Labels: map[string]string{FederationLabel: uid},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ClusterRole", Name: AccountName(uid), UID: "role-of-before"}}}
	for name, going := range map[string]bool{"before": false, "under way": true} {
		t.Run(name, func(t *testing.T) {
			meta := *meta.DeepCopy()
			if going {
				meta.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}
			f, waited := newFakes(&corev1.Namespace{ObjectMeta: meta}), false
			r := f.request("east-a")
			r.Say = func(format string, _ ...any) {
				if strings.Contains(format, "is being removed") {
					waited = true
					if err := f.member.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("namespaces"), "", namespace); err != nil {
						t.Error(err)
					}
				}
			}
			if _, err := Join(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			ns, err := f.member.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
			if err != nil || len(ns.OwnerReferences) > 0 || ns.DeletionTimestamp != nil || waited != going {
				t.Errorf("waited %v, namespace %+v, %v: it would go", waited, ns, err)
			}
		})
	}
}

// TestJoinKnowsTheClusterByItsUID: a member that nothing in it says to be one, as its role was deleted.
func TestJoinKnowsTheClusterByItsUID(t *testing.T) {
	kubeSystem := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "of-east"}}
	f, ctx := newFakes(kubeSystem), context.Background()
	if _, err := Join(ctx, f.request("east-a")); err != nil {
		t.Fatal(err)
	}
	status := func(uid string) {
		t.Helper()
		patch := []byte(`{"status":{"uid":"` + uid + `"}}`)
		if _, err := f.dynamic.Resource(v1beta1.ClustersResource).Patch(ctx, "east-a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	status("of-east")
	if err := f.member.RbacV1().ClusterRoles().Delete(ctx, AccountName(uid), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(ctx, f.request("also-east")); err == nil || !strings.Contains(err.Error(), `as "east-a" (UID of-east)`) {
		t.Errorf("joined by a second name: %v", err)
	}
	status("of-another")
	var said strings.Builder
	r := f.request("east-a")
	r.Say = func(format string, args ...any) { fmt.Fprintf(&said, format+"\n", args...) }
	if _, err := Join(ctx, r); err != nil || !strings.Contains(said.String(), "its UID was of-another and is of-east") {
		t.Errorf("joined again, %v; it says\n%s", err, said.String())
	}
}

// With MultiClusterServices a cluster gets the definitions of ServiceExports and ServiceImports where it has none, and the account the rights to
// them. A definition of somebody else stays, unless the federation cannot work with it.
func TestMultiClusterServices(t *testing.T) {
	for name, c := range map[string]struct{ version, want string }{
		"nobody has defined them":   {},
		"somebody has":              {version: "v1beta1"},
		"somebody has, in the past": {version: "v1alpha1", want: "does not serve v1beta1"},
	} {
		f, ctx := newFakes(), t.Context()
		member := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{definitionsResource: "CustomResourceDefinitionList"})
		if c.version != "" {
			d := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
				"metadata": map[string]any{"name": "serviceimports.multicluster.x-k8s.io"},
				"spec":     map[string]any{"versions": []any{map[string]any{"name": c.version, "served": true}}}}}
			if _, err := member.Resource(definitionsResource).Create(ctx, d, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		r := f.request("east-a")
		r.multiCluster, r.MemberDynamic = true, member
		err := r.ensureMultiClusterServices(ctx)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		exports, err := member.Resource(definitionsResource).Get(ctx, "serviceexports.multicluster.x-k8s.io", metav1.GetOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if versions, _, _ := unstructured.NestedSlice(exports.Object, "spec", "versions"); len(versions) != 2 {
			t.Errorf("%s: versions %v, want v1alpha1 and v1beta1", name, versions)
		}
	}
	f := newFakes()
	for i, c := range []struct {
		says *bool
		want bool
	}{{nil, false}, {new(true), true}, {nil, true}, {new(false), false}, {nil, false}} {
		r := f.request("east-a")
		r.MultiClusterServices = c.says
		r.MemberDynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{definitionsResource: "CustomResourceDefinitionList"})
		if err := r.decideMultiCluster(t.Context(), AccountName(uid)); err != nil || r.multiCluster != c.want {
			t.Errorf("join %d: takes part: %t, %v, want %t", i, r.multiCluster, err, c.want)
		}
		if _, err := r.ensureRole(t.Context(), uid, AccountName(uid)); err != nil {
			t.Fatal(err)
		}
	}
	rights := func(with bool) bool {
		return slices.ContainsFunc(clusterRules("account", false, false, with, nil), func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Resources, "serviceexports/status") && slices.Contains(r.APIGroups, "multicluster.x-k8s.io")
		})
	}
	if !rights(true) || rights(false) {
		t.Errorf("rights with: %t, without: %t", rights(true), rights(false))
	}
}
