package plan

import (
	"strings"

	"federation/apiserver/apis/federation/v1beta1"
)

// Host returns the host that serves a name, which is in lower case, without a port or a dot at its end: the one of that name, else the
// wildcard that covers its first label, else the one for all that nobody has; nil if there is none.
func (t *Table) Host(name string) *Host {
	if h := t.hosts[name]; h != nil && name != anyHost && !strings.HasPrefix(name, "*.") {
		return h
	}
	if wild := v1beta1.WildcardOf(name); wild != "" && len(wild) < len(name)+1 { // the first label is not empty
		if h := t.hosts[wild]; h != nil {
			return h
		}
	}
	return t.hosts[anyHost]
}

// Match returns the route of a path, which begins with "/": the longest that matches, Exact before Prefix, then the rules of the
// namespace that have no host, then the default backend.
func (h *Host) Match(path string) (Route, bool) {
	if r, ok := h.matchRules(path); ok {
		return r, true
	}
	if h.rest != nil {
		if r, ok := h.rest.matchRules(path); ok {
			return r, true
		}
	}
	switch {
	case h.fallback != nil:
		return *h.fallback, true
	case h.rest != nil && h.rest.fallback != nil:
		return *h.rest.fallback, true
	}
	return Route{}, false
}

// matchRules looks at the paths of the host alone. It takes one look for each element of the path that any prefix is long enough for.
func (h *Host) matchRules(path string) (Route, bool) {
	if r, ok := h.exact[path]; ok {
		return *r, true
	}
	if len(h.prefix) == 0 {
		return Route{}, false
	}
	at := path
	if len(at) > h.longest { // a prefix ends where an element does
		if at = path[:h.longest]; path[h.longest] != '/' {
			at = at[:max(strings.LastIndexByte(at, '/'), 0)]
		}
	}
	for {
		if r, ok := h.prefix[at]; ok {
			return *r, true
		}
		if at == "" {
			return Route{}, false
		}
		at = at[:max(strings.LastIndexByte(at, '/'), 0)]
	}
}
