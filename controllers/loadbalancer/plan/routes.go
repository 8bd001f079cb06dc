package plan

import (
	"maps"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
)

// Table says where requests go. Nobody changes it once it is made.
type Table struct {
	hosts     map[string]*Host
	listeners map[portKey]PoolID
	// Reasons are sorted; Routes has them, and Tables keeps its own.
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

// Routes makes the table of a World. The order of its input does not matter.
func Routes(w World) *Table {
	ingresses := make(map[string]*networkingv1.Ingress, len(w.Ingresses))
	for _, i := range w.Ingresses {
		ingresses[i.Namespace+"/"+i.Name] = i
	}
	t := NewTables(w.ServicePorts, w.UDP)
	t.Change(Change{Ingresses: ingresses, Services: w.Services, Grants: &w.Grants, Kept: w.Kept})
	table := *t.Table()
	table.Reasons = t.Reasons()
	return &table
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

// Pools returns all pools that requests and connections can go to.
func (t *Table) Pools() map[PoolID]bool {
	all, rest := map[PoolID]bool{}, map[*Host]bool{}
	add := func(id PoolID) { all[id] = true }
	for _, h := range t.hosts {
		if h.eachPool(add); h.rest != nil && !rest[h.rest] {
			rest[h.rest] = true
			h.rest.eachPool(add)
		}
	}
	for _, id := range t.listeners {
		add(id)
	}
	return all
}

// eachPool calls do with the pool of each route of the host alone.
func (h *Host) eachPool(do func(PoolID)) {
	one := func(r *Route) {
		if r != nil && !r.Pool.IsZero() {
			do(r.Pool)
		}
	}
	for _, r := range h.exact {
		one(r)
	}
	for _, r := range h.prefix {
		one(r)
	}
	one(h.fallback)
	one(h.passed)
}
