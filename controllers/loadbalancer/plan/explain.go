package plan

import (
	"cmp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
)

// ServedRoute is a route of an Ingress as it is served.
type ServedRoute struct {
	// Host is in lower case. It is empty for rules and default backends without one: see OwnHostsOnly.
	Host string
	// OwnHostsOnly: requests to hosts that no Ingress names go to another namespace, so that a route without a host is for the hosts of
	// its own namespace alone.
	OwnHostsOnly bool
	// Secret with the host's certificate, as namespace/name; empty if there is none.
	Secret string
	// Passthrough: it is for TLS connections, which are passed on as they are.
	Passthrough bool
	// Route's Path is empty for a default backend.
	Route
}

// RoutesOf returns the routes of an Ingress (namespace/name) that requests take, by host, path and type.
func (t *Table) RoutesOf(ingress string) (all []ServedRoute) {
	namespace, _, _ := strings.Cut(ingress, "/")
	unclaimed := t.hosts[anyHost]
	rest := unclaimed
	for name, h := range t.hosts {
		if h.Namespace != namespace {
			continue
		}
		if name != anyHost {
			all = h.appendRoutes(all, ingress)
		}
		if h.rest != nil {
			rest = h.rest
		}
	}
	if rest != nil && rest.Namespace == namespace {
		n := len(all)
		all = rest.appendRoutes(all, ingress)
		for i := range all[n:] {
			all[n+i].OwnHostsOnly = unclaimed == nil || unclaimed.Namespace != namespace
		}
	}
	slices.SortFunc(all, func(a, b ServedRoute) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Type, b.Type))
	})
	return all
}

func (h *Host) appendRoutes(to []ServedRoute, ingress string) []ServedRoute {
	add := func(r *Route) {
		if r.Ingress == ingress {
			to = append(to, ServedRoute{Host: h.Name, Secret: h.Secret, Route: *r})
		}
	}
	for _, r := range h.exact {
		add(r)
	}
	for _, r := range h.prefix {
		add(r)
	}
	if h.fallback != nil {
		add(h.fallback)
	}
	if r := h.passed; r != nil && r.Ingress == ingress {
		to = append(to, ServedRoute{Host: h.Name, Passthrough: true, Route: *r})
	}
	return to
}

// ReasonsOf returns what is not as an Ingress (namespace/name) asks for.
func (t *Table) ReasonsOf(ingress string) (some []Reason) {
	for _, r := range t.Reasons {
		if r.Object == "Ingress "+ingress {
			some = append(some, r)
		}
	}
	return some
}

// Backends returns the names of the Services that an Ingress names.
func Backends(i *networkingv1.Ingress) map[string]bool {
	names := map[string]bool{}
	add := func(b *networkingv1.IngressBackend) {
		if b != nil && b.Service != nil {
			names[b.Service.Name] = true
		}
	}
	add(i.Spec.DefaultBackend)
	for _, rule := range i.Spec.Rules {
		if rule.HTTP != nil {
			for n := range rule.HTTP.Paths {
				add(&rule.HTTP.Paths[n].Backend)
			}
		}
	}
	return names
}

// namesAny reports whether an Ingress names one of the Services.
func namesAny(i *networkingv1.Ingress, services map[string]bool) bool {
	is := func(b *networkingv1.IngressBackend) bool {
		return b != nil && b.Service != nil && services[b.Service.Name]
	}
	return is(i.Spec.DefaultBackend) || slices.ContainsFunc(i.Spec.Rules, func(r networkingv1.IngressRule) bool {
		return r.HTTP != nil && slices.ContainsFunc(r.HTTP.Paths, func(p networkingv1.HTTPIngressPath) bool { return is(&p.Backend) })
	})
}
