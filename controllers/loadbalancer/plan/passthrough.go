package plan

import (
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// addPassed adds an Ingress whose TLS is passed on: each of its hosts goes to one Service, for paths are not seen.
func (b *tableBuilder) addPassed(i *networkingv1.Ingress) {
	hosts := v1beta1.BalancedHosts(i)
	if slices.ContainsFunc(i.Spec.Rules, func(r networkingv1.IngressRule) bool { return r.Host == "" }) || slices.Equal(hosts, []string{anyHost}) {
		b.addReason(i, "without a host nothing of it is served: TLS is passed on by the host that clients ask for")
	}
	for _, name := range hosts {
		if name == anyHost {
			continue
		}
		h := b.hostFor(i, name)
		if h == nil {
			continue
		}
		r := b.wholeHost(i, name)
		switch {
		case r == nil:
			b.addReason(i, "host %s is not served: TLS is passed on, so it must have the path / of type Prefix, or the Ingress a default backend", name)
		case h.passed != nil:
			b.addReason(i, "host %s is not served: its TLS is passed on by Ingress %s, which is older", name, h.passed.Ingress)
		default:
			h.passed = r
		}
	}
}

// wholeHost returns the route that an Ingress has for all of a host, and adds reasons for what is only for a part of it.
func (b *tableBuilder) wholeHost(i *networkingv1.Ingress, name string) (whole *Route) {
	for _, rule := range i.Spec.Rules {
		if rule.HTTP == nil || canonicalHost(rule.Host) != name {
			continue
		}
		for _, p := range rule.HTTP.Paths {
			if p.Path != "/" && p.Path != "" || p.PathType != nil && *p.PathType == networkingv1.PathTypeExact {
				b.addReason(i, "host %q, path %q is not served: TLS is passed on, so paths are not seen: must be / of type Prefix", rule.Host, p.Path)
			} else if whole == nil {
				whole = &Route{Ingress: i.Namespace + "/" + i.Name, Host: rule.Host, Path: "/", Type: networkingv1.PathTypePrefix, Pool: b.passedPoolOf(i, p.Backend)}
			}
		}
	}
	if whole == nil && i.Spec.DefaultBackend != nil {
		whole = &Route{Ingress: i.Namespace + "/" + i.Name, Pool: b.passedPoolOf(i, *i.Spec.DefaultBackend)}
	}
	return whole
}

func (b *tableBuilder) passedPoolOf(i *networkingv1.Ingress, backend networkingv1.IngressBackend) PoolID {
	id := b.poolOf(i, backend)
	id.TLS = !id.IsZero()
	return id
}

// dropCertificates has no host whose TLS is passed on have a certificate, which other Ingresses of its namespace may name.
func (b *tableBuilder) dropCertificates() {
	for _, i := range b.ingresses {
		if v1beta1.PassesTLS(i) {
			continue
		}
		for _, name := range v1beta1.BalancedHosts(i) {
			if h := b.hosts[name]; h != nil && h.Namespace == i.Namespace && h.passed != nil {
				h.Secret = ""
				b.addReason(i, "host %s is served without TLS only: its TLS is passed on by Ingress %s", name, h.passed.Ingress)
			}
		}
	}
}

// PassedOn returns where TLS connections for a server name, which is in lower case, go as they are; false if TLS for it ends here.
func (t *Table) PassedOn(serverName string) (Route, bool) {
	if h := t.Host(serverName); h != nil && h.passed != nil {
		return *h.passed, true
	}
	return Route{}, false
}

// checkLabel stands for the label that a wildcard covers.
const checkLabel = "federation-check"

// ServerNames returns, by pool of TLS connections, the first name of the hosts that go there.
func (t *Table) ServerNames() map[PoolID]string {
	names := map[PoolID]string{}
	for _, name := range t.Hosts() {
		h := t.hosts[name]
		if h.passed == nil || names[h.passed.Pool] != "" {
			continue
		}
		if name[0] == '*' {
			name = checkLabel + name[1:]
		}
		names[h.passed.Pool] = name
	}
	return names
}
