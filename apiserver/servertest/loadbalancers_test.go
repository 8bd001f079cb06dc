package servertest

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
