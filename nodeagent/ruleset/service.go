package ruleset

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// LabelServiceProxyName names the service proxy of a Service.
const LabelServiceProxyName = "service.kubernetes.io/service-proxy-name"

// DefaultAffinity is the API's default for sessionAffinityConfig.clientIP.timeoutSeconds.
const DefaultAffinity = 10800

// builder makes the Ports of one Service.
type builder struct {
	node    *Node
	service *corev1.Service
	slices  []*discoveryv1.EndpointSlice // sorted by name
	reasons []string
}

// Build makes the Ports of one Service, by family and in the order of its spec, and returns reasons for what it leaves
// out. A Service that is headless, an ExternalName or another proxy's has none.
func Build(node *Node, service *corev1.Service, endpoints []*discoveryv1.EndpointSlice) (ports []*Port, reasons []string) {
	b := builder{node: node, service: service, slices: endpoints}
	b.refuseUnmarked()
	if why := b.whySkipped(); why != "" {
		return nil, []string{why}
	}
	for _, ip := range clusterIPs(service) {
		addr, err := netip.ParseAddr(ip)
		if err != nil {
			b.addReason("spec.clusterIPs: %q is no IP address", ip)
			continue
		}
		for i := range service.Spec.Ports {
			if p := b.port(&service.Spec.Ports[i], addr.Unmap()); p != nil {
				ports = append(ports, p)
			}
		}
	}
	return ports, b.reasons
}

// refuseUnmarked leaves out slices of other clusters that no federation of this node's cluster made.
func (b *builder) refuseUnmarked() {
	refused := func(s *discoveryv1.EndpointSlice) bool {
		_, remote, _ := serviceOf(s)
		return remote && !b.node.hasMark(s.Labels)
	}
	if !slices.ContainsFunc(b.slices, refused) {
		return
	}
	b.slices = slices.DeleteFunc(slices.Clone(b.slices), func(s *discoveryv1.EndpointSlice) bool {
		if refused(s) {
			b.addReason("EndpointSlice %s, which says that it is of cluster %q, is not one of federation %s", s.Name, s.Labels[LabelSourceCluster], b.node.federations())
		}
		return refused(s)
	})
}

func (b *builder) addReason(format string, args ...any) {
	b.reasons = append(b.reasons, fmt.Sprintf("Service %s/%s: ", b.service.Namespace, b.service.Name)+fmt.Sprintf(format, args...))
}

// whySkipped returns why a Service is left alone, or "".
func (b *builder) whySkipped() string {
	name := b.service.Namespace + "/" + b.service.Name
	switch s := b.service; {
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		return "Service " + name + " is a name for something outside (ExternalName)"
	case s.Spec.ClusterIP == corev1.ClusterIPNone:
		return "Service " + name + " is headless"
	case s.Spec.ClusterIP == "":
		return "Service " + name + " has no cluster IP yet"
	case s.Labels[LabelServiceProxyName] != b.node.ServiceProxyName:
		return fmt.Sprintf("Service %s is for the service proxy %q", name, s.Labels[LabelServiceProxyName])
	}
	return ""
}

func clusterIPs(s *corev1.Service) []string {
	if len(s.Spec.ClusterIPs) > 0 {
		return s.Spec.ClusterIPs
	}
	return []string{s.Spec.ClusterIP}
}

// port makes one Port; nil if its numbers or protocol are invalid.
func (b *builder) port(sp *corev1.ServicePort, clusterIP netip.Addr) *Port {
	id := PortID{Key{b.service.Namespace, b.service.Name}, sp.Name, protocolOf(sp)}
	if !slices.Contains([]corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}, id.Protocol) {
		b.addReason("spec.ports %q: protocol %q is none of TCP, UDP, SCTP", sp.Name, sp.Protocol)
		return nil
	}
	if sp.Port < 1 || sp.Port > 65535 || sp.NodePort < 0 || sp.NodePort > 65535 {
		b.addReason("spec.ports %q: port %d or nodePort %d is not from 1 to 65535", sp.Name, sp.Port, sp.NodePort)
		return nil
	}
	p := &Port{ID: id, Hash: id.Hash(), IPv6: clusterIP.Is6(), Affinity: affinity(b.service)}
	if needsHealthCheck(b.service) && !b.node.Federated {
		p.HealthCheckNodePort = uint16(b.service.Spec.HealthCheckNodePort)
	}
	all := b.endpointsOf(id, p.IPv6)
	p.Cluster, p.Own = b.clusterPools(all)
	p.Local = localPool(all)
	if id.Protocol != corev1.ProtocolTCP {
		p.Living = livingAddresses(all)
	}
	b.addFrontends(p, sp, clusterIP)
	p.forgetUnused()
	return p
}

func protocolOf(sp *corev1.ServicePort) corev1.Protocol {
	if sp.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return sp.Protocol
}

func affinity(s *corev1.Service) uint32 {
	if s.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil && *c.ClientIP.TimeoutSeconds > 0 {
		return uint32(*c.ClientIP.TimeoutSeconds)
	}
	return DefaultAffinity
}

func externalLocal(s *corev1.Service) bool {
	external := s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer || len(s.Spec.ExternalIPs) > 0
	return external && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

func internalLocal(s *corev1.Service) bool {
	return s.Spec.InternalTrafficPolicy != nil && *s.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal
}

func needsHealthCheck(s *corev1.Service) bool {
	n := s.Spec.HealthCheckNodePort
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && externalLocal(s) && n > 0 && n <= 65535
}

// forgetUnused empties a pool that no route leads to, so that a change in it changes nothing.
func (p *Port) forgetUnused() {
	for _, to := range Pools {
		if !slices.ContainsFunc(p.Frontends, func(f Frontend) bool { return f.Uses(to) }) {
			*p.Pool(to) = Pool{Tier: TierNone}
		}
	}
}

// addrsOf reads addresses of the port's family, without repetition.
func (b *builder) addrsOf(field string, texts []string, ipv6 bool) []netip.Addr {
	var out []netip.Addr
	for _, text := range texts {
		addr, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			b.addReason("%s: %q is no IP address", field, text)
			continue
		}
		if addr = addr.Unmap(); addr.Is6() == ipv6 && !slices.Contains(out, addr) {
			out = append(out, addr)
		}
	}
	return out
}
