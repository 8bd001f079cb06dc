package plan

import (
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// addPassed adds an Ingress whose TLS is passed on: all of a host goes to one Service, for paths are not seen.
func (b *hostBuilder) addPassed(i *said) {
	h := b.host
	if h.Name == anyHost {
		if len(i.rules[anyHost]) > 0 || slices.Equal(v1beta1.BalancedHosts(i.Ingress), []string{anyHost}) {
			b.addReason(i.Ingress, "without a host nothing of it is served: TLS is passed on by the host that clients ask for")
		}
		return
	}
	r := b.wholeHost(i)
	switch {
	case r == nil:
		b.addReason(i.Ingress, "host %s is not served: TLS is passed on, so it must have the path / of type Prefix, or the Ingress a default backend", h.Name)
	case h.passed != nil:
		b.addReason(i.Ingress, "host %s is not served: its TLS is passed on by Ingress %s, which is older", h.Name, h.passed.Ingress)
	default:
		h.passed = r
	}
}

// wholeHost returns the route that an Ingress has for all of the host, and adds reasons for what is only for a part of it.
func (b *hostBuilder) wholeHost(i *said) (whole *Route) {
	for _, rule := range i.rules[b.host.Name] {
		if rule.HTTP == nil {
			continue
		}
		for _, p := range rule.HTTP.Paths {
			if p.Path != "/" && p.Path != "" || p.PathType != nil && *p.PathType == networkingv1.PathTypeExact {
				b.addReason(i.Ingress, "host %q, path %q is not served: TLS is passed on, so paths are not seen: must be / of type Prefix", rule.Host, p.Path)
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

func (b *hostBuilder) passedPoolOf(i *said, backend networkingv1.IngressBackend) PoolID {
	id := b.poolOf(i, backend)
	id.TLS = !id.IsZero()
	return id
}

// dropCertificates has the host, whose TLS is passed on, have no certificate, which other Ingresses of its namespace may name.
func (b *hostBuilder) dropCertificates(claims []*networkingv1.Ingress) {
	b.host.Secret = ""
	for _, i := range claims {
		if i.Namespace == b.host.Namespace && !v1beta1.PassesTLS(i) {
			b.addReason(i, "host %s is served without TLS only: its TLS is passed on by Ingress %s", b.host.Name, b.host.passed.Ingress)
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
	for name, h := range t.hosts {
		if h.passed == nil {
			continue
		}
		if first, ok := names[h.passed.Pool]; !ok || name < first {
			names[h.passed.Pool] = name
		}
	}
	for id, name := range names {
		if name[0] == '*' {
			names[id] = checkLabel + name[1:]
		}
	}
	return names
}
