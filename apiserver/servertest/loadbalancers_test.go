package servertest

import (
	"context"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestLoadBalancersGetTheirCertificatesAndNoMore: of Secrets only those that an Ingress of the class names, in its namespace.
func TestLoadBalancersGetTheirCertificatesAndNoMore(t *testing.T) {
	ctx := t.Context()
	for _, namespace := range []string{"shop", "bank"} {
		if _, err := shared.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []struct{ namespace, name, class, secret string }{
		{"shop", "web", v1beta1.IngressClassName, "cert"}, {"shop", "other", "nginx", "others"}, {v1beta1.FederationNamespace, "trap", v1beta1.IngressClassName, v1beta1.DNSKeysSecret},
	} {
		if _, err := shared.kube.NetworkingV1().Ingresses(i.namespace).Create(ctx, &networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{Name: i.name}, Spec: networkingv1.IngressSpec{
				IngressClassName: &i.class, TLS: []networkingv1.IngressTLS{{SecretName: i.secret}},
				DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}},
			},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	group := "system:serviceaccounts:" + v1beta1.LoadBalancersNamespace
	allowed := func(asked, group string) bool {
		p := strings.Split(asked, " ")
		resource, subresource, _ := strings.Cut(p[2], "/")
		review, err := shared.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "lb", Groups: []string{group}, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: p[0], Group: p[1], Resource: resource, Subresource: subresource, Namespace: p[3], Name: p[4]},
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	for waited := 0; !allowed("get  secrets shop cert", group); waited++ { // the authorizer's cache of Ingresses follows
		if waited > 1000 {
			t.Fatal("the certificate of an Ingress of the class cannot be read")
		}
	}
	for asked, want := range map[string]bool{
		"get  secrets shop others": false, "get  secrets shop none": false, "list  secrets shop ": false, "watch  secrets shop cert": false, "update  secrets shop cert": false,
		"get  secrets bank cert": false, "get  secrets  cert": false, "list  secrets  ": false,
		"get  secrets federation-system " + v1beta1.DNSKeysSecret: false,
		"list  services  ": true, "watch networking.k8s.io ingresses  ": true, "list federation clusters  ": true, "get  configmaps federation-system " + v1beta1.InfoConfigMap: true,
		"list  configmaps federation-system ": false, "update networking.k8s.io ingresses shop web": false, "update networking.k8s.io ingresses/status shop web": false,
		"create coordination.k8s.io leases " + v1beta1.LoadBalancersNamespace + " ": true, "update coordination.k8s.io leases " + v1beta1.LoadBalancersNamespace + " a": true,
		"update coordination.k8s.io leases federation-system federation-controllers": false,
	} {
		if got := allowed(asked, group); got != want {
			t.Errorf("%s: allowed %t, want %t", asked, got, want)
		}
	}
	if allowed("get  secrets shop cert", "system:serviceaccounts:shop") {
		t.Error("who is no load balancer may read the certificate")
	}
}

// TestAHostOfAnotherNamespaceIsRefused: not even to an older Ingress that is changed, whose age would win the host. Only who may read the
// other one sees its name.
func TestAHostOfAnotherNamespaceIsRefused(t *testing.T) {
	ctx := t.Context()
	for _, namespace := range []string{"hosts-thief", "hosts-owner"} {
		if _, err := shared.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := shared.kube.RbacV1().RoleBindings("hosts-thief").Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "tenant"}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "hosts-tenant"}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(shared.admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: "hosts-tenant", Groups: []string{"system:authenticated"}}
	tenant := kubernetes.NewForConfigOrDie(config)
	ingress := func(name string, hosts ...string) *networkingv1.Ingress {
		i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressSpec{IngressClassName: new(v1beta1.IngressClassName)}}
		i.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}
		for _, host := range hosts {
			i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: host})
		}
		return i
	}
	var older *networkingv1.Ingress
	eventually(t, "the tenant's right to create an Ingress", func(ctx context.Context) (err error) {
		older, err = tenant.NetworkingV1().Ingresses("hosts-thief").Create(ctx, ingress("older", "thief.example.org"), metav1.CreateOptions{})
		return err
	})
	if _, err := shared.kube.NetworkingV1().Ingresses("hosts-owner").Create(ctx, ingress("web", "owner.example.org", "*.owner.example.org"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	older.Spec.Rules = append(older.Spec.Rules, networkingv1.IngressRule{Host: "owner.example.org"}, networkingv1.IngressRule{Host: "login.owner.example.org"})
	try := func(kube kubernetes.Interface) (text string) {
		for waited := 0; text == ""; waited++ { // until the other Ingress has come to the API server's cache
			if waited > 1000 {
				t.Fatal("an older Ingress takes the host of another namespace")
			}
			if _, err := kube.NetworkingV1().Ingresses("hosts-thief").Update(ctx, older, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				text = err.Error()
			}
		}
		return text
	}
	text := try(tenant)
	for _, want := range []string{`spec.rules[1].host: Invalid value: "owner.example.org"`, `spec.rules[2].host: Invalid value: "login.owner.example.org"`, "an Ingress there asked for *.owner.example.org before", "DNSNameGrant"} {
		if !strings.Contains(text, want) || strings.Contains(text, "hosts-owner") {
			t.Errorf("the tenant receives %q, want %q and no word of the other namespace", text, want)
		}
	}
	if text := try(shared.kube); !strings.Contains(text, "Ingress hosts-owner/web asked for owner.example.org before") {
		t.Errorf("who may read it receives %q", text)
	}
	older.Spec.Rules = append(older.Spec.Rules[:1], networkingv1.IngressRule{Host: "own.example.org"})
	if _, err := tenant.NetworkingV1().Ingresses("hosts-thief").Update(ctx, older, metav1.UpdateOptions{}); err != nil {
		t.Errorf("a host that nobody has: %v", err)
	}
}
