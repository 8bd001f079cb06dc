package plan

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// said is what an Ingress says, by host.
type said struct {
	*networkingv1.Ingress
	rules map[string][]*networkingv1.IngressRule
	// tls has the place of the first entry with a Secret for each name; that of the first for all hosts is under anyHost.
	tls map[string]int
}

// readIngress reads it once for all of its hosts, of which it may have many.
func readIngress(i *networkingv1.Ingress) *said {
	s := &said{Ingress: i, rules: make(map[string][]*networkingv1.IngressRule, len(i.Spec.Rules))}
	for n := range i.Spec.Rules {
		host := canonicalHost(i.Spec.Rules[n].Host)
		s.rules[host] = append(s.rules[host], &i.Spec.Rules[n])
	}
	for n, t := range i.Spec.TLS {
		if t.SecretName == "" {
			continue
		}
		names := t.Hosts
		if len(names) == 0 {
			names = []string{anyHost}
		}
		for _, name := range names {
			name = canonicalHost(name)
			if _, before := s.tls[name]; before || name == anyHost && len(t.Hosts) > 0 {
				continue
			}
			if s.tls == nil {
				s.tls = map[string]int{}
			}
			s.tls[name] = n
		}
	}
	return s
}

// secretFor returns the Secret that the Ingress names for a host, as namespace/name: of the first entry with the host or its wildcard, or for all hosts.
func (s *said) secretFor(host string) string {
	first := -1
	for _, name := range []string{host, v1beta1.WildcardOf(host), anyHost} {
		if n, ok := s.tls[name]; ok && (first < 0 || n < first) {
			first = n
		}
	}
	if first < 0 {
		return ""
	}
	return s.Namespace + "/" + s.Spec.TLS[first].SecretName
}

// hostBuilder makes one host from what the Ingresses of its namespace say of it, the oldest first.
type hostBuilder struct {
	services map[string]*corev1.Service
	host     *Host
	reasons  []Reason
}

func newHost(name, namespace string) *Host { return &Host{Name: name, Namespace: namespace} }

// add adds what an Ingress says. Older ones have been added before.
func (b *hostBuilder) add(i *said) {
	h := b.host
	if i.Spec.DefaultBackend != nil {
		fallback := &Route{Ingress: i.Namespace + "/" + i.Name, Pool: b.poolOf(i, *i.Spec.DefaultBackend)}
		if h.fallback == nil {
			h.fallback = fallback
		}
	}
	if h.Secret == "" {
		h.Secret = i.secretFor(h.Name)
	}
	for _, rule := range i.rules[h.Name] {
		switch {
		case rule.HTTP != nil:
			for _, p := range rule.HTTP.Paths {
				b.addPath(i, rule.Host, p)
			}
		case i.Spec.DefaultBackend == nil:
			b.addReason(i.Ingress, "rule of host %q: must have paths, or the Ingress a default backend", rule.Host)
		}
	}
}

func (b *hostBuilder) addPath(i *said, host string, p networkingv1.HTTPIngressPath) {
	r := &Route{Ingress: i.Namespace + "/" + i.Name, Host: host, Path: p.Path, Type: networkingv1.PathTypeImplementationSpecific}
	if p.PathType != nil {
		r.Type = *p.PathType
	}
	in, key := &b.host.prefix, strings.TrimRight(p.Path, "/")
	if r.Type == networkingv1.PathTypeExact {
		in, key = &b.host.exact, p.Path
	}
	if other, taken := (*in)[key]; taken {
		b.addReason(i.Ingress, "host %q, path %q is not served: Ingress %s has it, which is older, or it comes first", host, p.Path, other.Ingress)
		return
	}
	r.Pool = b.poolOf(i, p.Backend)
	if *in == nil {
		*in = map[string]*Route{}
	}
	(*in)[key] = r
	if r.Type != networkingv1.PathTypeExact {
		b.host.longest = max(b.host.longest, len(key))
	}
}

// poolOf finds the pool of a backend; none, with a reason, if there is no such port.
func (b *hostBuilder) poolOf(i *said, backend networkingv1.IngressBackend) PoolID {
	if backend.Service == nil {
		b.addReason(i.Ingress, "a backend is a resource: must be a Service")
		return PoolID{}
	}
	want := backend.Service
	id := PoolID{Namespace: i.Namespace, Service: want.Name}
	service := b.services[id.Key()]
	if service == nil {
		b.addReason(i.Ingress, "Service %s: does not exist", want.Name)
		return PoolID{}
	}
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer {
		b.addReason(i.Ingress, "Service %s: type %s: must be LoadBalancer, so that it has an address in each cluster", want.Name, service.Spec.Type)
		return PoolID{}
	}
	for _, port := range service.Spec.Ports {
		named := want.Port.Name != "" && port.Name == want.Port.Name || want.Port.Name == "" && port.Port == want.Port.Number
		if named && (port.Protocol == "" || port.Protocol == corev1.ProtocolTCP) {
			id.Port = port.Port
			return id
		}
	}
	b.addReason(i.Ingress, "Service %s: has no TCP port %s", want.Name, portText(want.Port))
	return PoolID{}
}

func portText(p networkingv1.ServiceBackendPort) string {
	if p.Name != "" {
		return p.Name
	}
	return fmt.Sprint(p.Number)
}

func (b *hostBuilder) addReason(i *networkingv1.Ingress, format string, args ...any) {
	b.reasons = append(b.reasons, Reason{Object: "Ingress " + i.Namespace + "/" + i.Name, Message: fmt.Sprintf(format, args...)})
}

// refuse says why an Ingress does not have the host that it asks for, and nothing more about other namespaces. holder is by which Ingress somebody has it; nil: nobody.
func (b *hostBuilder) refuse(i *networkingv1.Ingress, host string, granted bool, holder *networkingv1.Ingress) {
	why := "another namespace has it"
	if !granted {
		why = "a DNSNameGrant gives it to other namespaces"
	}
	b.addReason(i, "host %s is not served: %s", host, why)
	if holder != nil {
		b.reasons[len(b.reasons)-1].Holder = holder.Namespace + "/" + holder.Name
	}
}
