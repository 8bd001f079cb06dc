package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// TestTLSThatIsPassedOn, one clause a case.
func TestTLSThatIsPassedOn(t *testing.T) {
	for clause, c := range map[string]struct {
		ingresses []*networkingv1.Ingress
		// tls are "HOST ANSWER", http "HOST ANSWER" for the path /; reasons what is said of Ingresses.
		tls, http, reasons []string
	}{
		"a host goes to the backend of its path /, and is not served without TLS": {
			ingresses: []*networkingv1.Ingress{passing(ingress("shop/v", 1, "v.test / Prefix a:80"))},
			tls:       []string{"v.test a", "x.v.test here", "w.test here", " here"}, http: []string{"v.test 404"}},
		"a path may be left out, and its type may be the implementation's": {
			ingresses: []*networkingv1.Ingress{passing(ingress("shop/v", 1, "v.test - ImplementationSpecific a:80"))}, tls: []string{"v.test a"}},
		"a wildcard covers one label": {
			ingresses: []*networkingv1.Ingress{passing(ingress("shop/v", 1, "*.v.test / Prefix a:80"))}, tls: []string{"x.v.test a", "v.test here", "y.x.v.test here"}},
		"a host below a wildcard whose TLS ends here": {
			ingresses: []*networkingv1.Ingress{passing(ingress("shop/v", 2, "*.v.test / Prefix a:80")), ingress("shop/w", 1, "x.v.test / Prefix b:80")},
			tls:       []string{"x.v.test here", "y.v.test a"}, http: []string{"x.v.test b"}},
		"a default backend has the hosts of rules without paths, and of the TLS section; not all others": {
			ingresses: []*networkingv1.Ingress{passing(ingress("shop/v", 2, "v.test", "* a:80", "tls none w.test")), ingress("bank/w", 1, "* b:80")},
			tls:       []string{"v.test a", "w.test a", "x.test here"}, http: []string{"x.test bank/b"}},
		"paths cannot be seen": {
			ingresses: []*networkingv1.Ingress{passing(ingress("shop/v", 1, "v.test /x Prefix b:80", "v.test / Prefix a:80", "w.test / Exact a:80"))},
			tls:       []string{"v.test a", "w.test here"},
			reasons: []string{
				`host "v.test", path "/x" is not served: TLS is passed on, so paths are not seen: must be / of type Prefix`,
				`host "w.test", path "/" is not served: TLS is passed on, so paths are not seen: must be / of type Prefix`,
				`host w.test is not served: TLS is passed on, so it must have the path / of type Prefix, or the Ingress a default backend`,
			}},
		"without a host nothing is passed on": {
			ingresses: []*networkingv1.Ingress{passing(ingress("shop/v", 1, "- / Prefix a:80")), passing(ingress("shop/w", 1, "* a:80"))},
			tls:       []string{"v.test here", " here"}, http: []string{"v.test 404"},
			reasons: []string{"without a host nothing of it is served: TLS is passed on by the host that clients ask for"}},
		"a backend that does not exist": {
			ingresses: []*networkingv1.Ingress{passing(ingress("shop/v", 1, "v.test / Prefix none:80"))}, tls: []string{"v.test 503"}, reasons: []string{"Service none: does not exist"}},
		"the older of two Ingresses of a namespace": {
			ingresses: []*networkingv1.Ingress{passing(ingress("shop/v", 1, "v.test / Prefix a:80")), passing(ingress("shop/w", 2, "v.test / Prefix b:80"))},
			tls:       []string{"v.test b"}, reasons: []string{"host v.test is not served: its TLS is passed on by Ingress shop/w, which is older"}},
		"another namespace has the host": {
			ingresses: []*networkingv1.Ingress{passing(ingress("shop/v", 1, "v.test / Prefix a:80")), ingress("bank/v", 2, "v.test / Prefix b:80", "tls cert v.test")},
			tls:       []string{"v.test here"}, http: []string{"v.test bank/b"}, reasons: []string{"host v.test is not served: another namespace has it"}},
		"another namespace has the wildcard over it": {
			ingresses: []*networkingv1.Ingress{passing(ingress("shop/v", 1, "x.v.test / Prefix a:80")), passing(ingress("bank/v", 2, "*.v.test / Prefix b:80"))},
			tls:       []string{"x.v.test bank/b"}, reasons: []string{"host x.v.test is not served: another namespace has it"}},
		"other Ingresses of the namespace serve the host without TLS": {
			ingresses: []*networkingv1.Ingress{passing(ingress("shop/v", 1, "v.test / Prefix a:80")), ingress("shop/acme", 2, "v.test / Prefix b:80", "tls cert v.test")},
			tls:       []string{"v.test a"}, http: []string{"v.test b"}, reasons: []string{"host v.test is served without TLS only: its TLS is passed on by Ingress shop/v"}},
		"only the value true": {
			ingresses: []*networkingv1.Ingress{withAnnotation(ingress("shop/v", 1, "v.test / Prefix a:80"), "false")}, tls: []string{"v.test here"}, http: []string{"v.test a"}},
	} {
		table := Routes(world(c.ingresses...))
		for _, line := range c.tls {
			if host, want, _ := strings.Cut(line, " "); askTLS(table, host) != want {
				t.Errorf("%s: TLS for %q goes to %s, want %s", clause, host, askTLS(table, host), want)
			}
		}
		for _, line := range c.http {
			if host, want, _ := strings.Cut(line, " "); ask(table, host, "/") != want {
				t.Errorf("%s: %s goes to %s, want %s", clause, host, ask(table, host, "/"), want)
			}
		}
		said := map[string]bool{}
		for _, r := range table.Reasons {
			said[r.Message] = true
		}
		if got := slices.Sorted(maps.Keys(said)); !slices.Equal(got, c.reasons) {
			t.Errorf("%s: reasons %q, want %q", clause, got, c.reasons)
		}
		if c.ingresses[0].Namespace == "shop" && table.Host("v.test") != nil && table.Host("v.test").passed != nil && table.Host("v.test").Secret != "" {
			t.Errorf("%s: the host has a certificate", clause)
		}
	}
}

// TestGrantsCountForPassedTLS, as for requests.
func TestGrantsCountForPassedTLS(t *testing.T) {
	w := world(passing(ingress("shop/v", 9, "v.test / Prefix a:80")), passing(ingress("bank/v", 1, "v.test / Prefix b:80")))
	if got := askTLS(Routes(w), "v.test"); got != "a" {
		t.Errorf("of the older Ingress: %s", got)
	}
	w.Grants = []*v1beta1.DNSNameGrant{grant("test", "bank")}
	if got := askTLS(Routes(w), "v.test"); got != "bank/b" {
		t.Errorf("the namespace that a grant names: %s", got)
	}
	w.Grants = []*v1beta1.DNSNameGrant{grant("test", "mall")}
	if got := askTLS(Routes(w), "v.test"); got != "here" {
		t.Errorf("where a grant is for somebody else: %s", got)
	}
}

func withAnnotation(i *networkingv1.Ingress, value string) *networkingv1.Ingress {
	i.Annotations = map[string]string{v1beta1.SSLPassthroughAnnotation: value}
	return i
}

// TestPoolsOfPassedTLS are those of connections: checked by TLS for a name of a host.
func TestPoolsOfPassedTLS(t *testing.T) {
	table := Routes(world(passing(ingress("shop/v", 1, "v.test / Prefix a:80", "*.w.test / Prefix b:80", "u.test / Prefix a:80")), ingress("shop/x", 1, "x.test / Prefix a:80")))
	a, b, requests := PoolID{Namespace: "shop", Service: "a", Port: 80, TLS: true}, PoolID{Namespace: "shop", Service: "b", Port: 80, TLS: true}, PoolID{Namespace: "shop", Service: "a", Port: 80}
	if got, want := table.Pools(), map[PoolID]bool{a: true, b: true, requests: true}; !maps.Equal(got, want) {
		t.Errorf("pools %v, want %v", got, want)
	}
	if got, want := table.ServerNames(), map[PoolID]string{a: "u.test", b: "federation-check.w.test"}; !maps.Equal(got, want) {
		t.Errorf("names for checks %v, want %v", got, want)
	}
	p := DecidePool(PoolInput{ID: a, ServerName: "u.test", Offers: []servicednsplan.Offer{offer("east-a", 0, 100, "192.0.2.1")}})
	if p.Protocol != TLS || p.ServerName != "u.test" || show(p) != "east-a 100" {
		t.Errorf("pool %+v", p)
	}
}

func withProxyProtocol(s *corev1.Service) *corev1.Service {
	s.Annotations = map[string]string{v1beta1.ProxyProtocolAnnotation: v1beta1.ProxyProtocolV2}
	return s
}

// TestTraceOfPassedTLS says where TLS goes, and where requests without it.
func TestTraceOfPassedTLS(t *testing.T) {
	table := Routes(world(passing(ingress("shop/v", 1, "v.test / Prefix a:80")), passing(ingress("shop/n", 1, "n.test / Prefix none:80"))))
	pool := func(id PoolID) (Pool, bool) {
		return DecidePool(PoolInput{ID: id, Service: withProxyProtocol(service("shop", "a")), Offers: []servicednsplan.Offer{offer("east-a", 0, 100, "192.0.2.1")}}), !id.IsZero()
	}
	want := `host "v.test": served as v.test, for namespace shop
TLS: passed on as it is, by Ingress shop/v
Service shop/a:80/TLS, by tls, with a header of PROXY protocol v2
  100.0 %  east-a 192.0.2.1:80  serving, tier 0
without TLS:
path "/": nothing matches, and there is no default backend: 404
`
	if got := Trace(table, "v.test", "/", pool); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := Trace(table, "n.test", "/", pool); !strings.Contains(got, "TLS: passed on as it is, by Ingress shop/n\nbackend: there is no such Service and port: connections are closed\n") {
		t.Errorf("got\n%s", got)
	}
	if got := table.RoutesOf("shop/v"); len(got) != 1 || !got[0].Passthrough || got[0].Host != "v.test" || !got[0].Pool.TLS {
		t.Errorf("routes of the Ingress: %+v", got)
	}
}
