package plan

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// ingress returns an Ingress of the class, "NAMESPACE/NAME", so many minutes old. Rules are "HOST PATH TYPE SERVICE:PORT" each, with "-" for what is
// left out; "* SERVICE:PORT" is the default backend, "tls SECRET HOST…" a certificate.
func ingress(key string, age int, rules ...string) *networkingv1.Ingress {
	namespace, name, _ := strings.Cut(key, "/")
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1_000_000, 0).Add(-time.Duration(age) * time.Minute))}}
	i.Spec.IngressClassName = new(v1beta1.IngressClassName)
	for _, rule := range rules {
		f := strings.Split(rule, " ")
		if f[0] == "tls" {
			i.Spec.TLS = append(i.Spec.TLS, networkingv1.IngressTLS{SecretName: f[1], Hosts: f[2:]})
			continue
		}
		if f[0] == "*" {
			i.Spec.DefaultBackend = new(backend(f[1]))
			continue
		}
		addRule(i, f)
	}
	return i
}

// passing has the TLS of an Ingress' hosts passed on.
func passing(i *networkingv1.Ingress) *networkingv1.Ingress {
	i.Annotations = map[string]string{v1beta1.SSLPassthroughAnnotation: "true"}
	return i
}

func addRule(i *networkingv1.Ingress, f []string) {
	host := strings.TrimPrefix(f[0], "-")
	if len(f) == 1 {
		i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: host})
		return
	}
	p := networkingv1.HTTPIngressPath{Path: strings.TrimPrefix(f[1], "-"), PathType: new(networkingv1.PathType(f[2])), Backend: backend(f[3])}
	if n := len(i.Spec.Rules); n > 0 && i.Spec.Rules[n-1].Host == host && i.Spec.Rules[n-1].HTTP != nil {
		i.Spec.Rules[n-1].HTTP.Paths = append(i.Spec.Rules[n-1].HTTP.Paths, p)
		return
	}
	i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{
		HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{p}},
	}})
}

// backend is "SERVICE:PORT", with the number or name of the port.
func backend(text string) networkingv1.IngressBackend {
	name, port, _ := strings.Cut(text, ":")
	b := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: name}}
	if _, err := fmt.Sscan(port, &b.Service.Port.Number); err != nil {
		b.Service.Port = networkingv1.ServiceBackendPort{Name: port}
	}
	return b
}

// world has the Ingresses, and in each of the namespaces shop, bank and mall the Services a to f with the port 80, named http.
func world(ingresses ...*networkingv1.Ingress) World {
	w := World{Ingresses: ingresses, Services: map[string]*corev1.Service{}}
	for _, namespace := range []string{"shop", "bank", "mall"} {
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			w.Services[namespace+"/"+name] = service(namespace, name)
		}
	}
	return w
}

func service(namespace, name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}},
	}}
}

// ask returns where a request goes: "SERVICE", with the namespace if that is not shop; "404", or "503" for a backend that does not exist.
func ask(t *Table, host, path string) string {
	h := t.Host(host)
	if h == nil {
		return "404"
	}
	r, ok := h.Match(path)
	switch {
	case !ok:
		return "404"
	case r.Pool.IsZero():
		return "503"
	}
	return strings.TrimPrefix(r.Pool.Key(), "shop/")
}

// askTLS returns where a TLS connection for a server name is passed on to, as ask does; "here" if it is not.
func askTLS(t *Table, name string) string {
	r, passed := t.PassedOn(name)
	switch {
	case !passed:
		return "here"
	case r.Pool.IsZero():
		return "503"
	}
	return strings.TrimPrefix(r.Pool.Key(), "shop/")
}

// offer returns an offer of a cluster "REGION-ZONE", from "ADDRESS,…".
func offer(cluster string, rank int, weight uint32, addresses string) servicednsplan.Offer {
	region, zone, _ := strings.Cut(cluster, "-")
	o := servicednsplan.Offer{Object: "Service shop/a", Cluster: cluster, Region: region, Zone: zone, Weight: weight, Rank: rank}
	for _, a := range strings.FieldsFunc(addresses, func(r rune) bool { return r == ',' }) {
		o.Addresses = append(o.Addresses, netip.MustParseAddr(a))
	}
	return o
}

// target is "CLUSTER ADDRESS", at port 80.
func target(text string) Target {
	cluster, address, _ := strings.Cut(text, " ")
	return Target{Cluster: cluster, Address: netip.AddrPortFrom(netip.MustParseAddr(address), 80)}
}

// show formats the parts of a pool in their order: "CLUSTER 25", in percent; "CLUSTER out" or "CLUSTER by" for those that get nothing.
func show(p Pool) string {
	var out []string
	for _, part := range p.Parts {
		switch {
		case part.Share > 0:
			out = append(out, fmt.Sprintf("%s %.4g", part.Cluster, 100*part.Share))
		case part.Out:
			out = append(out, part.Cluster+" out")
		default:
			out = append(out, part.Cluster+" by")
		}
	}
	return strings.Join(out, ", ")
}

// randomIngresses makes Ingresses of three namespaces that quarrel about a few hosts and paths.
func randomIngresses(r *rand.Rand) (all []*networkingv1.Ingress) {
	hosts := []string{"-", "one.test", "two.test", "www.one.test", "*.one.test", "a.www.one.test", "*.www.one.test", "TWO.test"}
	paths := []string{"/", "/a", "/a/", "/a/b", "/a/b/", "/a/bc", "/ab", "/a/b/c"}
	types := []string{"Exact", "Prefix", "ImplementationSpecific"}
	services := []string{"a:80", "b:http", "c:80", "d:80", "none:80", "e:81", "f:53"}
	pick := func(of []string) string { return of[r.IntN(len(of))] }
	for n := range 1 + r.IntN(8) {
		var rules []string
		for range r.IntN(5) {
			rules = append(rules, strings.Join([]string{pick(hosts), pick(paths), pick(types), pick(services)}, " "))
		}
		if r.IntN(4) == 0 || len(rules) == 0 {
			rules = append(rules, "* "+pick(services))
		}
		if r.IntN(6) == 0 {
			rules = append(rules, pick(hosts))
		}
		if r.IntN(3) == 0 {
			rules = append(rules, "tls cert "+strings.Join(slices.DeleteFunc([]string{pick(hosts)}, func(h string) bool { return h == "-" }), " "))
		}
		i := ingress(fmt.Sprintf("%s/i%d", pick([]string{"shop", "bank", "mall"}), n), r.IntN(4), rules...)
		for at := range i.Spec.TLS {
			i.Spec.TLS[at].Hosts = slices.DeleteFunc(i.Spec.TLS[at].Hosts, func(h string) bool { return h == "" })
		}
		if r.IntN(4) == 0 {
			passing(i)
		}
		all = append(all, i)
	}
	return all
}
