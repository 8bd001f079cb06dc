package behaviours

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/nettest"
	"federation/nodeagent/ruleset"
)

// OtherCluster gives Service web load balancer addresses of another cluster, in another region: these hosts.
func (w *World) OtherCluster(t testing.TB, hosts ...*nettest.Host) {
	t.Helper()
	s := w.Slice("web", hosts...)
	s.Name = "far-1"
	s.Labels = map[string]string{ruleset.LabelManagedBy: "a-federation", ruleset.LabelRemoteService: "web", ruleset.LabelSourceCluster: "far", corev1.LabelTopologyRegion: "rb"}
	for i := range s.Endpoints {
		s.Endpoints[i].NodeName = nil
	}
	w.Apply(t, w.Model.SetSlice(s)...)
}

func annotated(pairs ...string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Labels, s.Annotations = map[string]string{ruleset.LabelManagedBy: "a-federation"}, map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			s.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

// otherCluster checks that the load balancer of another cluster serves while this one has no endpoint, and that clients
// sent there stay.
func otherCluster(t *testing.T, w *World) {
	w.Service(t)
	w.Endpoints(t, w.There)
	w.OtherCluster(t, w.Far)
	w.Gets(t, w.Client, w.Web(w.VIP), w.There, netip.Addr{})
	w.Endpoints(t)
	w.Gets(t, w.Client, w.Web(w.VIP), w.Far, w.Node())
	connection, flow := w.Client.Stay(t, w.Web(w.VIP)), w.Client.Flow(t, w.DNS(w.VIP))
	stays := func() {
		t.Helper()
		if got, err := connection(); err != nil || got.Server != w.Far.Name {
			t.Errorf("over an open connection: %v, %v; want %s", got, err, w.Far.Name)
		}
		answers(t, flow, w.Far)
	}
	stays()
	w.Endpoints(t, w.Here)
	w.Gets(t, w.Client, w.Web(w.VIP), w.Here, w.Client.Address(w.VIP))
	stays()
	w.OtherCluster(t)
	answers(t, flow, w.Here)
}

func clusterSetIP(t *testing.T, w *World) {
	set := w.OtherVIP
	w.Service(t, annotated(ruleset.AnnotationClusterSetIP, set.String()))
	w.Endpoints(t, w.There)
	w.Gets(t, w.Client, w.Web(set), w.There, w.Client.Address(set))
	w.Gets(t, w.Nodes[0].Host, w.Web(set), w.There, w.Node())
	w.Gets(t, w.Client, w.Web(w.VIP), w.There, w.Client.Address(set))
	w.Gets(t, w.Outside, w.Web(w.VIP), w.There, w.Node())
	answers(t, w.Client.Flow(t, w.DNS(set)), w.There)
	w.Refused(t, w.Client, set, 81, 54)
	w.Endpoints(t)
	w.Refused(t, w.Client, set, 80, 53)
	w.OtherCluster(t, w.Far)
	w.Gets(t, w.Client, w.Web(set), w.Far, w.Node())
	w.Service(t)
	w.silent(t, set)
}

// silent checks that an address belongs to no Service: it neither answers nor refuses.
func (w *World) silent(t testing.TB, addr netip.Addr) {
	t.Helper()
	if err := w.Client.Refused(w.Web(addr)); err == nil || strings.Contains(err.Error(), "connected") {
		t.Errorf("to %s: %v; want neither answer nor refusal", addr, err)
	}
}

// scarce has half of the desired endpoints: another cluster gets half of the pods' connections, and none from outside.
func scarce(t *testing.T, w *World) {
	w.Service(t, nodePorts, annotated(ruleset.AnnotationFallbackBelow, "100%"))
	w.OtherCluster(t, w.Far)
	s := w.Slice("web", w.Here, w.There)
	ready := false
	s.Endpoints[1].Conditions.Ready = &ready
	w.Apply(t, w.Model.SetSlice(s)...)
	w.shared(t, map[*nettest.Host]float64{w.Here: 0.5, w.Far: 0.5})
	if got := w.servers(t, w.Outside, netip.AddrPortFrom(w.Node(), 30080), 16); got[w.Here.Name] != 16 {
		t.Errorf("from outside: %v, want all of this cluster", got)
	}
	w.Endpoints(t, w.Here, w.There)
	if got := w.servers(t, w.Client, w.Web(w.VIP), 16); got[w.Far.Name] != 0 {
		t.Errorf("when all are ready: %v, want all of this cluster", got)
	}
}

// scopeFederated leaves alone what another service proxy serves, which is nothing here, until other clusters must
// serve.
func scopeFederated(t *testing.T, w *World) {
	node := *w.Model.Node()
	node.Federated = true
	w.Model.SetNode(node)
	w.Sync(t)
	w.Service(t, annotated(ruleset.AnnotationClusterSetIP, w.OtherVIP.String()))
	w.Endpoints(t, w.Here)
	w.OtherCluster(t, w.Far)
	w.Gets(t, w.Client, w.Web(w.OtherVIP), w.Here, w.Client.Address(w.VIP))
	w.Gets(t, w.Nodes[0].Host, w.Web(w.OtherVIP), w.Here, netip.Addr{})
	w.silent(t, w.VIP)
	w.Endpoints(t)
	w.silent(t, w.VIP)
	w.Service(t, annotated(ruleset.AnnotationClusterSetIP, w.OtherVIP.String(), ruleset.AnnotationFallback, "true"))
	for _, addr := range []netip.Addr{w.VIP, w.OtherVIP} {
		w.Gets(t, w.Client, w.Web(addr), w.Far, w.Node())
		w.Gets(t, w.Nodes[0].Host, w.Web(addr), w.Far, w.Node())
		answers(t, w.Client.Flow(t, w.DNS(addr)), w.Far)
	}
	connection := w.Client.Stay(t, w.Web(w.VIP))
	w.Endpoints(t, w.There)
	if got, err := connection(); err != nil || got.Server != w.Far.Name {
		t.Errorf("over an open connection: %v, %v; want %s", got, err, w.Far.Name)
	}
	w.silent(t, w.VIP)
	w.Gets(t, w.Client, w.Web(w.OtherVIP), w.There, w.Client.Address(w.VIP))
}
