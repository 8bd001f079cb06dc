package plan

import (
	"fmt"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// balanced returns an Ingress "NAMESPACE/NAME" of class federation with rules for hosts; "*" is a default backend with the other hosts in its TLS section.
func balanced(key string, hosts ...string) *networkingv1.Ingress {
	namespace, name, _ := strings.Cut(key, "/")
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: networkingv1.IngressSpec{IngressClassName: new(v1beta1.IngressClassName)}}
	if len(hosts) > 0 && hosts[0] == "*" {
		i.Spec.DefaultBackend = &networkingv1.IngressBackend{}
		i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: hosts[1:]}}
		return i
	}
	for _, host := range hosts {
		i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: host})
	}
	return i
}

// TestHostsThatAnotherNamespaceHasAreTaken: whatever the age of the objects.
func TestHostsThatAnotherNamespaceHasAreTaken(t *testing.T) {
	other := func(i *networkingv1.Ingress) *networkingv1.Ingress {
		i.Spec.IngressClassName = new("nginx")
		return i
	}
	leaving := balanced("bank/leaving", "gone.org")
	leaving.DeletionTimestamp = new(metav1.Now())
	all := []*networkingv1.Ingress{
		balanced("bank/web", "Bank.org", "*.bank.org", ""), balanced("bank/all", "*", "tls.org"), balanced("shop/web", "shop.org"), other(balanced("bank/nginx", "nginx.org")), leaving,
		balanced("mall/web", "in.zone"),
	}
	grant := func(suffix string, namespaces ...string) *v1beta1.DNSNameGrant {
		return &v1beta1.DNSNameGrant{Spec: v1beta1.DNSNameGrantSpec{Suffix: suffix, Namespaces: namespaces}}
	}
	for name, c := range map[string]struct {
		is, was *networkingv1.Ingress
		grants  []*v1beta1.DNSNameGrant
		want    string
	}{
		"a host that nobody has":                              {balanced("shop/new", "new.org"), nil, nil, ""},
		"one of the own namespace":                            {balanced("shop/new", "shop.org"), nil, nil, ""},
		"one of another":                                      {balanced("shop/new", "new.org", "bank.ORG."), nil, nil, "bank.org by bank/web as bank.org"},
		"added to an Ingress that was there before":           {balanced("shop/web", "shop.org", "bank.org"), balanced("shop/web", "shop.org"), nil, "bank.org by bank/web as bank.org"},
		"below a wildcard of another":                         {balanced("shop/new", "login.bank.org"), nil, nil, "login.bank.org by bank/web as *.bank.org"},
		"two labels below it":                                 {balanced("shop/new", "a.login.bank.org"), nil, nil, ""},
		"the wildcard":                                        {balanced("shop/new", "*.bank.org"), nil, nil, "*.bank.org by bank/web as *.bank.org"},
		"a wildcard over a host of another, which keeps that": {balanced("shop/new", "*.org"), nil, nil, ""},
		"of a TLS section":                                    {balanced("shop/new", "*", "tls.org"), nil, nil, "tls.org by bank/all as tls.org"},
		"what nobody has":                                     {balanced("shop/new", ""), nil, nil, ""},
		"of another class":                                    {balanced("shop/new", "nginx.org"), nil, nil, ""},
		"of one that is being deleted":                        {balanced("shop/new", "gone.org"), nil, nil, ""},
		"it is of another class":                              {other(balanced("shop/new", "bank.org")), nil, nil, ""},
		"it was of another class":                             {balanced("shop/new", "bank.org"), other(balanced("shop/new", "bank.org")), nil, "bank.org by bank/web as bank.org"},
		"it had it before":                                    {balanced("shop/new", "new.org", "BANK.org"), balanced("shop/new", "bank.org"), nil, ""},
		"in the zone":                                         {balanced("shop/new", "in.zone"), nil, nil, ""},
		"granted to it, and not to who has":                   {balanced("shop/new", "bank.org", "*.bank.org"), nil, []*v1beta1.DNSNameGrant{grant("bank.org", "shop")}, ""},
		"granted to both":                                     {balanced("shop/new", "bank.org"), nil, []*v1beta1.DNSNameGrant{grant("bank.org", "shop", "bank")}, "bank.org by bank/web as bank.org"},
	} {
		var got []string
		for _, taken := range TakenHosts(c.is, c.was, all, c.grants, func(host string) bool { return strings.HasSuffix(host, ".zone") }) {
			got = append(got, fmt.Sprintf("%s by %s/%s as %s", taken.Host, taken.By.Namespace, taken.By.Name, taken.As))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}
