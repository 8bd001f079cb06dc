package servertest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/bootstrap"
)

// mayDo reports whether a user may VERB RESOURCE[/SUBRESOURCE][ NAME] of ours, in namespace default if it is
// namespaced.
func mayDo(t *testing.T, user, asked string) bool {
	t.Helper()
	p := strings.Fields(asked + " ")
	attributes := &authorizationv1.ResourceAttributes{Verb: p[0], Group: v1beta1.GroupName}
	attributes.Resource, attributes.Subresource, _ = strings.Cut(p[1], "/")
	if attributes.Resource == "placementpolicies" {
		attributes.Namespace = "default"
	}
	if len(p) > 2 {
		attributes.Name = p[2]
	}
	review, err := shared.kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: attributes}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// bind binds a cluster role to the user of its name.
func bind(t *testing.T, role string) {
	t.Helper()
	if _, err := shared.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-" + role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: role}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = shared.kube.RbacV1().ClusterRoleBindings().Delete(context.Background(), "test-"+role, metav1.DeleteOptions{})
	})
}

// Whoever may change Clusters can send the credential of a member anywhere: no role of Kubernetes for users of
// namespaces may include that.
func TestOnlyRolesOfOurOwnReachClusters(t *testing.T) {
	const all = "list clusters, get clusters, create clusters, update clusters, delete clusters, get clusters/proxy east-a, create clusters/proxy east-a, get clusters/inspect east-a, " +
		"create failoverreviews, list placementpolicies, create placementpolicies, patch clusters/drain, " +
		"list failoverreadinesses, create failoverreadinesses, update failoverreadinesses, update failoverreadinesses/status, delete failoverreadinesses, restore decisions web"
	for role, want := range map[string]string{
		"view":                         "list placementpolicies, list failoverreadinesses",
		"edit":                         "list placementpolicies, create placementpolicies, list failoverreadinesses",
		"admin":                        "list placementpolicies, create placementpolicies, list failoverreadinesses",
		"federation-cluster-viewer":    "list clusters, get clusters, list failoverreadinesses",
		"federation-operator":          "list clusters, get clusters, create failoverreviews, list placementpolicies, list failoverreadinesses",
		"federation-cluster-admin":     "list clusters, get clusters, create clusters, update clusters, delete clusters, patch clusters/drain, create failoverreviews, list placementpolicies, list failoverreadinesses",
		"federation-cluster-drainer":   "list clusters, get clusters, patch clusters/drain, create failoverreviews, list placementpolicies, list failoverreadinesses",
		"federation-restore":           "restore decisions web",
		"federation-cluster-inspector": "get clusters/inspect east-a",
		"federation-cluster-proxy":     "get clusters/proxy east-a, create clusters/proxy east-a",
	} {
		bind(t, role)
		missing := ""
		becomesTrue(t, role, func() bool { // until its binding and what aggregates to it are known
			missing = ""
			for _, asked := range strings.Split(want, ", ") {
				if !mayDo(t, role, asked) {
					missing = asked
				}
			}
			return missing == ""
		})
		for _, asked := range strings.Split(all, ", ") {
			if got := mayDo(t, role, asked); got != strings.Contains(", "+want+",", ", "+asked+",") {
				t.Errorf("%s may %s: %v", role, asked, got)
			}
		}
	}
}

// An earlier version had a role that aggregated to admin. Users bound to it by name keep it, all others lose it.
func TestRolesOfAnEarlierVersionAreBroughtIntoLine(t *testing.T) {
	old := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "federation-admin", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-admin": "true", "mine": "too"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{v1beta1.GroupName}, Resources: []string{"clusters", "clusters/proxy"}, Verbs: []string{"*"}}},
	}
	roles := shared.kube.RbacV1().ClusterRoles()
	if _, err := roles.Create(t.Context(), old, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = roles.Delete(context.Background(), old.Name, metav1.DeleteOptions{}) })
	bind(t, "admin")
	bind(t, old.Name)
	becomesTrue(t, "the old state", func() bool { return mayDo(t, "admin", "update clusters") && mayDo(t, old.Name, "update clusters") })
	if err := bootstrap.Ensure(t.Context(), shared.kube); err != nil {
		t.Fatal(err)
	}
	becomesTrue(t, "admin may not change Clusters any more", func() bool {
		return !mayDo(t, "admin", "update clusters") && !mayDo(t, "admin", "get clusters/proxy x")
	})
	if !mayDo(t, old.Name, "update clusters") {
		t.Error("who was bound to federation-admin has lost it")
	}
	if is, err := roles.Get(t.Context(), old.Name, metav1.GetOptions{}); err != nil || is.Labels["mine"] != "too" {
		t.Errorf("%v, %v", is.Labels, err)
	}
}

// The Secrets of the federation's namespace are the credentials of all members: who may run workloads in all namespaces has no part in them. A role that is bound
// there, and one that is not for workloads, keep what they say.
func TestOrdinaryRolesDoNotReachTheFederationsNamespace(t *testing.T) {
	reader := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "secret-reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"}}}}
	if _, err := shared.kube.RbacV1().ClusterRoles().Create(t.Context(), reader, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = shared.kube.RbacV1().ClusterRoles().Delete(context.Background(), reader.Name, metav1.DeleteOptions{})
	})
	local := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "test-local"}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "local"}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"}}
	if _, err := shared.kube.RbacV1().RoleBindings(v1beta1.FederationNamespace).Create(t.Context(), local, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = shared.kube.RbacV1().RoleBindings(v1beta1.FederationNamespace).Delete(context.Background(), local.Name, metav1.DeleteOptions{})
	})
	may := func(user, verb, resource, namespace string) bool {
		resource, sub, _ := strings.Cut(resource, "/")
		review, err := shared.kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: resource, Subresource: sub, Namespace: namespace}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	for _, role := range []string{"view", "edit", "admin", "secret-reader", "cluster-admin"} {
		bind(t, role)
		resource := map[string]string{"view": "configmaps"}[role]
		becomesTrue(t, role, func() bool { return may(role, "get", cmp.Or(resource, "secrets"), "default") })
	}
	becomesTrue(t, "local", func() bool { return may("local", "create", "configmaps", v1beta1.FederationNamespace) })
	const own = v1beta1.FederationNamespace
	for _, c := range []struct {
		verb, resource, namespace, who string
	}{
		{"get", "secrets", own, "secret-reader cluster-admin local"},
		{"list", "secrets", "", "secret-reader cluster-admin"},
		{"watch", "secrets", "", "secret-reader cluster-admin"},
		{"get", "secrets", "default", "edit admin secret-reader cluster-admin"},
		{"create", "secrets", own, "cluster-admin local"},
		{"create", "configmaps", own, "cluster-admin local"},
		{"create", "configmaps", "default", "edit admin cluster-admin"},
		{"get", "configmaps", own, "view edit admin cluster-admin local"},
		{"impersonate", "serviceaccounts", own, "cluster-admin local"},
		{"create", "serviceaccounts/token", own, "cluster-admin local"},
	} {
		for _, user := range []string{"view", "edit", "admin", "secret-reader", "cluster-admin", "local"} {
			if got := may(user, c.verb, c.resource, c.namespace); got != slices.Contains(strings.Fields(c.who), user) {
				t.Errorf("%s may %s %s in namespace %q: %t", user, c.verb, c.resource, c.namespace, got)
			}
		}
	}
	config := rest.CopyConfig(shared.admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: "edit"}
	edit, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := edit.CoreV1().Secrets(own).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "do not reach the namespace") {
		t.Errorf("as a user with edit in all namespaces: %v", err)
	}
}

func becomesTrue(t *testing.T, what string, is func() bool) {
	t.Helper()
	eventually(t, what, func(context.Context) error {
		if !is() {
			return errors.New("not yet")
		}
		return nil
	})
}
