package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// Listener is a port at which connections are taken for a Service, and passed on as they are; of a pool of datagrams these.
type Listener struct {
	Port uint16
	Pool PoolID
}

// portKey is a port of one protocol.
type portKey struct {
	protocol corev1.Protocol
	port     int32
}

func keyOf(p corev1.ServicePort) portKey {
	return portKey{cmp.Or(p.Protocol, corev1.ProtocolTCP), p.Port}
}

// served says at which ports a load balancer serves Services.
type served struct {
	ports PortRanges
	udp   bool
}

// Errors of ports in the status of a Service (status.loadBalancer.ingress[].ports[].error).
const (
	// PortTaken: another Service has the port.
	PortTaken = "federation.kubernetes.io/PortTaken"
	// PortNotServed: the load balancer serves Services at other ports only.
	PortNotServed = "federation.kubernetes.io/PortNotServed"
	// ProtocolNotServed: it is neither TCP nor, where the load balancer serves that, UDP.
	ProtocolNotServed = "federation.kubernetes.io/ProtocolNotServed"
)

// portOwners returns which Service has each port: the one whose status has it already, or else the oldest. So nobody can take over a port that is
// served: neither by an old Service that asks for it later, nor by one that is made with an old date.
func portOwners(services map[string]*corev1.Service) map[portKey]*corev1.Service {
	owners := map[portKey]*corev1.Service{}
	for _, s := range services {
		if !v1beta1.IsBalancedService(s) {
			continue
		}
		for _, p := range s.Spec.Ports {
			if was := owners[keyOf(p)]; was == nil || comesBefore(s, was, keyOf(p)) {
				owners[keyOf(p)] = s
			}
		}
	}
	return owners
}

func isTCP(p corev1.ServicePort) bool { return keyOf(p).protocol == corev1.ProtocolTCP }

func comesBefore(a, b *corev1.Service, port portKey) bool {
	if x, y := holdsPort(a, port), holdsPort(b, port); x != y {
		return x
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) < 0
}

// holdsPort reports whether the status of a Service says that a load balancer serves it at a port.
func holdsPort(s *corev1.Service, port portKey) bool {
	for _, at := range s.Status.LoadBalancer.Ingress {
		for _, p := range at.Ports {
			if (portKey{p.Protocol, p.Port}) == port && p.Error == nil {
				return true
			}
		}
	}
	return false
}

// portError returns why a port of a Service is not served by a load balancer; "" if it is.
func portError(s *corev1.Service, p corev1.ServicePort, owners map[portKey]*corev1.Service, by served) string {
	switch {
	case !isTCP(p) && (!by.udp || p.Protocol != corev1.ProtocolUDP):
		return ProtocolNotServed
	case !by.ports.Has(p.Port):
		return PortNotServed
	case owners[keyOf(p)] != s:
		return PortTaken
	}
	return ""
}

// listen returns which pool takes the connections to each port, and why others of Services are not served.
func listen(services map[string]*corev1.Service, by served) (listeners map[portKey]PoolID, reasons []Reason) {
	owners := portOwners(services)
	listeners = map[portKey]PoolID{}
	for key, s := range services {
		if !v1beta1.IsBalancedService(s) {
			continue
		}
		for _, p := range s.Spec.Ports {
			r := Reason{Object: "Service " + key}
			switch portError(s, p, owners, by) {
			case "":
				listeners[keyOf(p)] = PoolID{Namespace: s.Namespace, Service: s.Name, Port: p.Port, TCP: isTCP(p), UDP: !isTCP(p)}
				continue
			case ProtocolNotServed:
				r.Message = fmt.Sprintf("port %d is not served: protocol %s: must be TCP, or UDP at a load balancer that serves it", p.Port, p.Protocol)
			case PortNotServed:
				r.Message = fmt.Sprintf("port %d is not served: this load balancer serves Services at ports %q only", p.Port, by.ports)
			case PortTaken:
				r.Message = fmt.Sprintf("port %d is not served: another Service has it", p.Port)
				r.Holder = owners[keyOf(p)].Namespace + "/" + owners[keyOf(p)].Name
			}
			reasons = append(reasons, r)
		}
	}
	return listeners, reasons
}

// Listeners returns the ports at which connections and datagrams are taken for Services, sorted.
func (t *Table) Listeners() (all []Listener) {
	for key, id := range t.listeners {
		all = append(all, Listener{uint16(key.port), id})
	}
	slices.SortFunc(all, func(a, b Listener) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), boolCompare(a.Pool.UDP, b.Pool.UDP))
	})
	return all
}

// ServiceStatus returns what the status of each Service of the class is to say, by namespace/name: the addresses of the load balancers that serve one or more
// of its ports, and for each port whether they do.
func ServiceStatus(services map[string]*corev1.Service, written map[string]string) map[string][]corev1.LoadBalancerIngress {
	owners, status := portOwners(services), map[string][]corev1.LoadBalancerIngress{}
	for key, s := range services {
		if !v1beta1.IsBalancedService(s) {
			continue
		}
		status[key] = nil
		for name, says := range written {
			b, err := servicednsplan.ParseLoadBalancer(name, says)
			if err != nil {
				continue
			}
			ports, err := ParsePortRanges(b.ServicePorts)
			if err != nil {
				continue
			}
			if ports := portStatuses(s, owners, served{ports, b.UDP}); ports != nil {
				for _, a := range b.Addresses {
					status[key] = append(status[key], corev1.LoadBalancerIngress{IP: a.String(), Ports: ports})
				}
			}
		}
		slices.SortFunc(status[key], func(a, b corev1.LoadBalancerIngress) int {
			return cmp.Or(netip.MustParseAddr(a.IP).Compare(netip.MustParseAddr(b.IP)), len(a.Ports)-len(b.Ports))
		})
		status[key] = slices.CompactFunc(status[key], func(a, b corev1.LoadBalancerIngress) bool { return a.IP == b.IP })
	}
	return status
}

// portStatuses returns what becomes of each port; nil if none is served.
func portStatuses(s *corev1.Service, owners map[portKey]*corev1.Service, by served) (all []corev1.PortStatus) {
	some := false
	for _, p := range s.Spec.Ports {
		status := corev1.PortStatus{Port: p.Port, Protocol: keyOf(p).protocol}
		if fault := portError(s, p, owners, by); fault != "" {
			status.Error = &fault
		} else {
			some = true
		}
		all = append(all, status)
	}
	if !some {
		return nil
	}
	return all
}
