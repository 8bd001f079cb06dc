package plan

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Trace describes, line by line, where a request goes and why. pool returns the pool of a route.
func Trace(t *Table, host, path string, pool func(PoolID) (Pool, bool)) string {
	var out strings.Builder
	h := t.Host(canonicalHost(host))
	if h == nil {
		return fmt.Sprintf("host %q: no Ingress of the class has it: 404\n", host)
	}
	name := h.Name
	if name == anyHost {
		name = "any host"
	}
	fmt.Fprintf(&out, "host %q: served as %s, for namespace %s\n", host, name, h.Namespace)
	if h.Secret != "" {
		fmt.Fprintf(&out, "certificate: Secret %s\n", h.Secret)
	}
	if h.passed != nil {
		tracePassed(&out, h.passed, pool)
	}
	r, ok := h.Match(path)
	if !ok {
		fmt.Fprintf(&out, "path %q: nothing matches, and there is no default backend: 404\n", path)
		return out.String()
	}
	how := "default backend"
	if r.Type != "" {
		how = fmt.Sprintf("%s %q", r.Type, r.Path)
	}
	fmt.Fprintf(&out, "path %q: %s of Ingress %s\n", path, how, r.Ingress)
	p, ok := pool(r.Pool)
	if !ok {
		out.WriteString("backend: there is no such Service and port: 503\n")
		return out.String()
	}
	tracePool(&out, p)
	return out.String()
}

// tracePassed describes where TLS connections for a host go.
func tracePassed(out *strings.Builder, r *Route, pool func(PoolID) (Pool, bool)) {
	fmt.Fprintf(out, "TLS: passed on as it is, by Ingress %s\n", r.Ingress)
	p, ok := pool(r.Pool)
	if !ok {
		out.WriteString("backend: there is no such Service and port: connections are closed\n")
		return
	}
	tracePool(out, p)
	out.WriteString("without TLS:\n")
}

// TracePort describes, line by line, where a connection to a port goes and why.
func TracePort(t *Table, port uint16, pool func(PoolID) (Pool, bool)) string {
	var out strings.Builder
	for _, by := range []struct {
		protocol corev1.Protocol
		what     string
	}{{corev1.ProtocolTCP, "connections"}, {corev1.ProtocolUDP, "datagrams"}} {
		id, ok := t.listeners[portKey{by.protocol, int32(port)}]
		if p, decided := pool(id); ok && decided {
			fmt.Fprintf(&out, "port %d: %s are passed on as they are\n", port, by.what)
			tracePool(&out, p)
		}
	}
	if out.Len() == 0 {
		fmt.Fprintf(&out, "port %d: no Service of the class is served there\n", port)
	}
	return out.String()
}

// tracePool describes the parts of a pool.
func tracePool(out *strings.Builder, p Pool) {
	fmt.Fprintf(out, "Service %s, by %s", p.ID, p.Protocol)
	if p.ProxyProtocol {
		out.WriteString(", with a header of PROXY protocol v2")
	}
	out.WriteByte('\n')
	for _, part := range p.Parts {
		fmt.Fprintf(out, "  %5.1f %%  %s  %s\n", 100*part.Share, part.Target, part.Why)
	}
	for _, r := range p.Reasons {
		fmt.Fprintf(out, "%s\n", r)
	}
}
