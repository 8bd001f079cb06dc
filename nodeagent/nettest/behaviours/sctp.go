package behaviours

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/nettest"
)

// sctp has INIT and INIT ACK go to a Service and back, from a pod and from outside, follow its endpoints also from a port that
// had an association with one that went, and be refused when there is none.
func sctp(t *testing.T, w *World) {
	const port, nodePort = 3868, 30868
	for _, h := range []*nettest.Host{w.Here, w.There} {
		h.ServeSCTP(t, port)
	}
	w.Service(t, func(s *corev1.Service) {
		s.Spec.Type = corev1.ServiceTypeNodePort
		s.Spec.Ports = []corev1.ServicePort{{Name: "diameter", Protocol: corev1.ProtocolSCTP, Port: port, NodePort: nodePort}}
	})
	vip, atNode := netip.AddrPortFrom(w.VIP, port), netip.AddrPortFrom(w.Node(), nodePort)
	for _, want := range []*nettest.Host{w.There, w.Here, w.There, nil} {
		var ready []*nettest.Host
		if want != nil {
			ready = append(ready, want)
		}
		s := w.Slice("web", ready...)
		s.Ports = append(s.Ports, endpointPort("diameter", corev1.ProtocolSCTP, port))
		w.Apply(t, w.Model.SetSlice(s)...)
		for _, c := range []struct {
			from *nettest.Host
			to   netip.AddrPort
		}{{w.Client, vip}, {w.Outside, vip}, {w.Outside, atNode}} {
			got, err := c.from.AskSCTP(40000, c.to)
			switch {
			case want == nil && !errors.Is(err, syscall.ECONNREFUSED):
				t.Errorf("%s to %s: answer of %q, %v; want it refused", c.from.Name, c.to, got.Server, err)
			case want != nil && (err != nil || got.Server != want.Name):
				t.Errorf("%s to %s: answer of %q, %v; want %s", c.from.Name, c.to, got.Server, err, want.Name)
			}
		}
	}
}
