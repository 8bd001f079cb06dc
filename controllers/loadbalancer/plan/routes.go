package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Table says where requests go. Nobody changes it once it is made.
type Table struct {
	hosts map[string]*Host
	// listeners are by port.
	listeners map[uint16]PoolID
	pools     map[PoolID]bool
	// Reasons are sorted.
	Reasons []Reason
}

// Host has the routes of one host, which are those of one namespace.
type Host struct {
	// Name is in lower case, begins with "*." for a wildcard, and is empty for all hosts that nobody has.
	Name, Namespace string
	// Secret with the certificate, as namespace/name; empty if there is none.
	Secret string
	// exact and prefix are by path, that of a prefix without "/" at its end.
	exact, prefix map[string]*Route
	// longest is the length of the longest path of prefix.
	longest int
	// rest has the namespace's rules without a host, fallback is the default backend: for paths that nothing else matches.
	rest     *Host
	fallback *Route
	// passed is where its TLS connections go as they are; nil: TLS ends here.
	passed *Route
}

// Route is where the requests that it matches go.
type Route struct {
	// Ingress is the namespace/name.
	Ingress string
	// Host and Path are as written; both are empty for a default backend.
	Host, Path string
	// Type is empty for a default backend.
	Type networkingv1.PathType
	// Pool is zero where the backend does not exist: such requests are answered with 503.
	Pool PoolID
}

// Routes makes the table. The order of its input does not matter.
func Routes(w World) *Table {
	b := tableBuilder{World: w, Table: &Table{hosts: map[string]*Host{}, listeners: map[uint16]PoolID{}}, rest: map[string]*Host{}}
	ingresses := servedIngresses(w.Ingresses)
	b.ingresses, b.owners = ingresses, ownersOf(w, ingresses)
	for host, own := range b.owners {
		if host != anyHost {
			b.hosts[host] = b.newHost(host, own.namespace)
		}
	}
	for _, i := range ingresses {
		if v1beta1.PassesTLS(i) {
			b.addPassed(i)
		} else {
			b.add(i)
		}
	}
	b.dropCertificates()
	for _, h := range b.hosts {
		h.rest = b.rest[h.Namespace]
	}
	if own, any := b.owners[anyHost]; any {
		b.hosts[anyHost] = b.rest[own.namespace]
	}
	b.addListeners()
	b.addPools()
	slices.SortFunc(b.Reasons, func(x, y Reason) int { return strings.Compare(x.String(), y.String()) })
	b.Reasons = slices.Compact(b.Reasons)
	return b.Table
}

// tableBuilder makes a table.
type tableBuilder struct {
	World
	*Table
	// ingresses are those that are served, the oldest first.
	ingresses []*networkingv1.Ingress
	owners    map[string]owner
	// rest has the rules without a host, by namespace.
	rest map[string]*Host
}

func (b *tableBuilder) newHost(name, namespace string) *Host {
	return &Host{Name: name, Namespace: namespace, exact: map[string]*Route{}, prefix: map[string]*Route{}}
}

func (b *tableBuilder) restOf(namespace string) *Host {
	if b.rest[namespace] == nil {
		b.rest[namespace] = b.newHost(anyHost, namespace)
	}
	return b.rest[namespace]
}

// add adds what an Ingress says. Older ones have been added before.
func (b *tableBuilder) add(i *networkingv1.Ingress) {
	var fallback *Route
	if i.Spec.DefaultBackend != nil {
		fallback = &Route{Ingress: i.Namespace + "/" + i.Name, Pool: b.poolOf(i, *i.Spec.DefaultBackend)}
	}
	for _, name := range v1beta1.BalancedHosts(i) {
		h := b.hostFor(i, name)
		if h == nil {
			continue
		}
		if h.fallback == nil {
			h.fallback = fallback
		}
		if h.Secret == "" {
			h.Secret = secretOf(i, name)
		}
	}
	for _, rule := range i.Spec.Rules {
		h := b.hostFor(i, canonicalHost(rule.Host))
		switch {
		case h == nil:
		case rule.HTTP != nil:
			for _, p := range rule.HTTP.Paths {
				b.addPath(i, h, rule.Host, p)
			}
		case fallback == nil:
			b.addReason(i, "rule of host %q: must have paths, or the Ingress a default backend", rule.Host)
		}
	}
}

// hostFor returns the host that an Ingress' rules go to; nil, with a reason, if another namespace has it.
func (b *tableBuilder) hostFor(i *networkingv1.Ingress, name string) *Host {
	if name == anyHost {
		return b.restOf(i.Namespace) // for its own hosts in any case
	}
	if h := b.hosts[name]; h != nil && h.Namespace == i.Namespace {
		return h
	}
	b.addReason(i, "host %s is not served: %s", name, b.whyNot(i.Namespace, name))
	b.Reasons[len(b.Reasons)-1].Holder = b.holderOf(name)
	return nil
}

// holderOf returns the Ingress (namespace/name) by which a host, or the wildcard over it, is another namespace's; "" if none is.
func (b *tableBuilder) holderOf(name string) string {
	own, taken := b.owners[name]
	if wild := v1beta1.WildcardOf(name); !taken && wild != "" {
		own, taken = b.owners[wild]
	}
	if !taken {
		return ""
	}
	return b.ingresses[own.order].Namespace + "/" + b.ingresses[own.order].Name
}

func (b *tableBuilder) addPath(i *networkingv1.Ingress, h *Host, host string, p networkingv1.HTTPIngressPath) {
	r := &Route{Ingress: i.Namespace + "/" + i.Name, Host: host, Path: p.Path, Type: networkingv1.PathTypeImplementationSpecific}
	if p.PathType != nil {
		r.Type = *p.PathType
	}
	in, key := h.prefix, strings.TrimRight(p.Path, "/")
	if r.Type == networkingv1.PathTypeExact {
		in, key = h.exact, p.Path
	}
	if other, taken := in[key]; taken {
		b.addReason(i, "host %q, path %q is not served: Ingress %s has it, which is older, or it comes first", host, p.Path, other.Ingress)
		return
	}
	r.Pool = b.poolOf(i, p.Backend)
	in[key] = r
	if r.Type != networkingv1.PathTypeExact {
		h.longest = max(h.longest, len(key))
	}
}

// poolOf finds the pool of a backend; none, with a reason, if there is no such port.
func (b *tableBuilder) poolOf(i *networkingv1.Ingress, backend networkingv1.IngressBackend) PoolID {
	if backend.Service == nil {
		b.addReason(i, "a backend is a resource: must be a Service")
		return PoolID{}
	}
	want := backend.Service
	id := PoolID{Namespace: i.Namespace, Service: want.Name}
	service := b.Services[id.Key()]
	if service == nil {
		b.addReason(i, "Service %s: does not exist", want.Name)
		return PoolID{}
	}
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer {
		b.addReason(i, "Service %s: type %s: must be LoadBalancer, so that it has an address in each cluster", want.Name, service.Spec.Type)
		return PoolID{}
	}
	for _, port := range service.Spec.Ports {
		named := want.Port.Name != "" && port.Name == want.Port.Name || want.Port.Name == "" && port.Port == want.Port.Number
		if named && (port.Protocol == "" || port.Protocol == corev1.ProtocolTCP) {
			id.Port = port.Port
			return id
		}
	}
	b.addReason(i, "Service %s: has no TCP port %s", want.Name, portText(want.Port))
	return PoolID{}
}

func portText(p networkingv1.ServiceBackendPort) string {
	if p.Name != "" {
		return p.Name
	}
	return fmt.Sprint(p.Number)
}

// secretOf returns the Secret that an Ingress names for a host, as namespace/name: of the entry with the host or its wildcard, or
// of one for all hosts.
func secretOf(i *networkingv1.Ingress, host string) string {
	for _, t := range i.Spec.TLS {
		names := func(name string) bool {
			return name != "" && slices.ContainsFunc(t.Hosts, func(h string) bool { return canonicalHost(h) == name })
		}
		if t.SecretName != "" && (len(t.Hosts) == 0 || names(host) || names(v1beta1.WildcardOf(host))) {
			return i.Namespace + "/" + t.SecretName
		}
	}
	return ""
}

func (b *tableBuilder) addReason(i *networkingv1.Ingress, format string, args ...any) {
	b.Reasons = append(b.Reasons, Reason{Object: "Ingress " + i.Namespace + "/" + i.Name, Message: fmt.Sprintf(format, args...)})
}

// Secrets returns the Secrets with certificates of all hosts, as namespace/name, sorted.
func (t *Table) Secrets() []string {
	names := map[string]bool{}
	for _, h := range t.hosts {
		if h.Secret != "" {
			names[h.Secret] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Hosts returns the names of all hosts, sorted.
func (t *Table) Hosts() []string { return slices.Sorted(maps.Keys(t.hosts)) }

// Pools returns all pools that requests and connections can go to. Nobody changes the map.
func (t *Table) Pools() map[PoolID]bool { return t.pools }

func (b *tableBuilder) addPools() {
	b.pools = make(map[PoolID]bool, len(b.hosts))
	rest := map[*Host]bool{}
	for _, h := range b.hosts {
		if h.addPools(b.pools); h.rest != nil {
			rest[h.rest] = true
		}
	}
	for h := range rest {
		h.addPools(b.pools)
	}
	for _, id := range b.listeners {
		b.pools[id] = true
	}
	delete(b.pools, PoolID{})
}

func (h *Host) addPools(to map[PoolID]bool) {
	for _, routes := range []map[string]*Route{h.exact, h.prefix} {
		for _, r := range routes {
			to[r.Pool] = true
		}
	}
	for _, r := range []*Route{h.fallback, h.passed} {
		if r != nil {
			to[r.Pool] = true
		}
	}
}
