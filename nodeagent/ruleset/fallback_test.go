package ruleset

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

func annotated(pairs ...string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Labels, s.Annotations = map[string]string{LabelManagedBy: "a-federation"}, map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			s.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

func TestMissingEndpointsSendTheirPartToOtherClusters(t *testing.T) {
	east, west := remote("east", "rb", "3", "203.0.113.1"), remote("west", "rb", "1", "203.0.113.2")
	some := func(ready, unready, ending int) (out []string) {
		for i := range ready + unready + ending {
			state := " ready"[:0]
			switch {
			case i >= ready+unready:
				state = " terminating"
			case i >= ready:
				state = " notready"
			}
			out = append(out, fmt.Sprintf("10.180.2.%d%s", i+1, state))
		}
		return out
	}
	for _, c := range []struct {
		below                  string
		ready, unready, ending int
		here                   float64 // the share of this cluster
		tier                   Tier
	}{
		{"", 1, 9, 0, 1, TierReady},
		{"50%", 5, 5, 0, 1, TierReady},
		{"50%", 3, 7, 0, 0.6, TierScarce},
		{"100%", 9, 1, 0, 0.9, TierScarce},
		{"33%", 20, 77, 3, 20 / (0.33 * 97), TierScarce}, // who ends is not missing
		{"50%", 1, 0, 9, 1, TierReady},
		{"50%", 0, 4, 0, 0, TierRemote},
		{"50%", 0, 0, 4, 0, TierRemote}, // who asked for more than one ready endpoint does not want those that end
		{"", 0, 0, 4, 1, TierTerminating},
	} {
		n := node()
		ports, reasons := Build(&n, es1(annotated(AnnotationFallbackBelow, c.below), func(s *corev1.Service) {
			if c.below == "" {
				s.Annotations = nil
			}
		}), []*discoveryv1.EndpointSlice{slice("a", some(c.ready, c.unready, c.ending)...), east, west})
		if len(reasons) != 0 || ports[0].Cluster.Tier != c.tier {
			t.Fatalf("%+v: tier %q, reasons %q", c, ports[0].Cluster.Tier, reasons)
		}
		share := map[string]float64{}
		sum := 0.0
		for _, b := range ports[0].Cluster.Backends {
			share[b.Cluster] += float64(b.Weight)
			sum += float64(b.Weight)
		}
		if got := share[""] / sum; math.Abs(got-c.here) > 1e-9 || share["east"] != 3*share["west"] {
			t.Errorf("%+v: this cluster has %.4f, east %.4f, west %.4f", c, got, share["east"]/sum, share["west"]/sum)
		}
		if own := len(ports[0].Own.Backends); (c.tier == TierScarce) != (own == c.ready && own > 0) && c.ending == 0 {
			t.Errorf("%+v: %d backends for what comes from outside", c, own)
		}
	}
}

func TestWhatAnAnnotationMustNotSayIsSaidOnce(t *testing.T) {
	m := New(Node{Federated: true, Federations: node().Federations, ClusterSetIPs: []netip.Prefix{netip.MustParsePrefix("241.0.0.0/8")}})
	wrong := m.SetService(es1(annotated(AnnotationFallbackBelow, "50", AnnotationFallback, "yes", AnnotationClusterSetIP, "8.8.8.8,x")))
	change := m.Update(wrong)
	got := strings.ReplaceAll(strings.Join(change.Reasons, "\n"), "federation.kubernetes.io/", "")
	want := `Service default/es1: annotation clusterset-ip: "x" is no IP address
Service default/es1: annotation clusterset-ip: 8.8.8.8 is not in the ranges [241.0.0.0/8], or the node's own
Service default/es1: annotation fallback-below: "50" is not from 1% to 100%
Service default/es1: annotation fallback: "yes" is neither true nor false`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if again := m.Update(append(m.SetSlice(slice("a", "10.180.1.1")), wrong)...); len(again.Reasons) > 0 {
		t.Errorf("said again: %q", again.Reasons)
	}
}

func TestWherePacketsGoAcrossClusters(t *testing.T) {
	const pod, host, outside = "10.180.9.9", "192.0.2.1", "198.18.0.1"
	const clusterIP, setIP, nodePort, lb = "10.0.147.93:9200", "241.0.0.7:9200", "192.0.2.1:32135", "104.197.138.206:9200"
	here, none, scarce := slice("a", "10.180.1.1 @n1"), slice("a", "10.180.1.1 notready"), slice("a", "10.180.1.1 @n1", "10.180.1.2 notready")
	set, marked := annotated(AnnotationClusterSetIP, "241.0.0.7,fd00:241::7"), annotated(AnnotationFallback, "true")
	graded := annotated(AnnotationFallbackBelow, "100%", AnnotationFallback, "true")
	type packets map[string]string
	for name, c := range map[string]struct {
		federated bool
		service   *corev1.Service
		slice     *discoveryv1.EndpointSlice
		want      packets
	}{
		"a clusterset IP is like a cluster IP": {false, es1(set), here, packets{
			pod + " " + setIP: "cluster 10.180.1.1", host + " " + setIP: "cluster masq 10.180.1.1", pod + " " + clusterIP: "cluster 10.180.1.1",
			pod + " 241.0.0.7:1": "reject",
		}},
		"and leads to other clusters": {false, es1(set), none, packets{pod + " " + setIP: "cluster 203.0.113.1"}},
		"what comes from outside stays here where endpoints are scarce": {false, es1(graded), scarce, packets{
			pod + " " + clusterIP: "cluster 10.180.1.1 203.0.113.1", outside + " " + lb: "own masq 10.180.1.1", outside + " " + nodePort: "own masq 10.180.1.1",
			host + " " + nodePort: "cluster masq 10.180.1.1 203.0.113.1",
		}},
		"and where it would end": {false, es1(graded), slice("a", "10.180.1.3 terminating"), packets{
			pod + " " + clusterIP: "cluster 203.0.113.1", outside + " " + lb: "own masq 10.180.1.3",
		}},
		"federated: only clusterset IPs": {true, es1(set), none, packets{
			pod + " " + setIP: "cluster 203.0.113.1", pod + " " + clusterIP: "yield", outside + " " + nodePort: "yield", pod + " 241.0.0.7:1": "reject",
			pod + " 10.0.147.93:1": "",
		}},
		"federated: marked, with an endpoint here": {true, es1(marked), here, packets{
			pod + " " + clusterIP: "yield", pod + " " + lb: "yield", host + " " + nodePort: "yield",
		}},
		"federated: marked, with none": {true, es1(marked), none, packets{
			pod + " " + clusterIP: "cluster 203.0.113.1", pod + " " + lb: "cluster masq 203.0.113.1", outside + " " + lb: "reject",
			pod + " 10.0.147.93:1": "",
		}},
		"federated: marked, scarce": {true, es1(graded), scarce, packets{pod + " " + clusterIP: "cluster 10.180.1.1 203.0.113.1"}},
		"federated: a Local policy": {true, es1(marked, localInside), none, packets{pod + " " + clusterIP: "yield"}},
	} {
		n := node()
		n.Federated = c.federated
		m := New(n)
		m.SetSlice(remote("east", "rb", "", "203.0.113.1"))
		m.Update(append(m.SetSlice(c.slice), m.SetService(c.service))...)
		for packet, want := range c.want {
			if got := goes(m, "tcp "+packet); got != want {
				t.Errorf("%s: %s goes %q, want %q", name, packet, got, want)
			}
		}
	}
}

// A clusterset IP is an annotation that anybody may write: it takes no cluster IP away, not even from another proxy.
func TestAClusterSetIPTakesNoClusterIP(t *testing.T) {
	for _, federated := range []bool{false, true} {
		n := node()
		n.Federated, n.ClusterSetIPs = federated, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}
		m := New(n)
		thief := es1(annotated(AnnotationClusterSetIP, "10.0.147.93"))
		thief.Name, thief.Spec.ClusterIPs = "thief", []string{"10.0.0.9"}
		thief.Spec.Ports[0].NodePort, thief.Status.LoadBalancer.Ingress = 0, nil
		m.Update(m.SetService(thief), m.SetService(es1()))
		if p, _ := m.frontend(sent("tcp 10.0.0.1 10.0.147.93:9200")); p == nil || p.ID.Name != "es1" {
			t.Errorf("federated %v: %+v has it", federated, p)
		}
	}
}

// Users who may write Services in a cluster take nobody's address by an annotation: only Services that a federation
// made have clusterset IPs, and none are served without a range.
func TestOnlyAFederationsServicesHaveClusterSetIPs(t *testing.T) {
	const packet = "tcp 10.180.9.9 241.0.0.7:9200"
	unmarked := es1(annotated(AnnotationClusterSetIP, "241.0.0.7"))
	unmarked.Labels = nil
	forged := es1(annotated(AnnotationClusterSetIP, "241.0.0.7"))
	forged.Labels = map[string]string{LabelManagedBy: "anything"}
	unknowing := node()
	unknowing.Federations = []string{""}
	noRange := node()
	noRange.ClusterSetIPs = nil
	for name, c := range map[string]struct {
		node    Node
		service *corev1.Service
		want    string
	}{
		"a Service of the cluster's own": {node(), unmarked, "the Service is not one of federation another, a-federation"},
		"a mark that nobody has":         {node(), forged, "the Service is not one of federation another, a-federation"},
		"no mark, no federation":         {unknowing, unmarked, "is not one of federation"},
		"no range":                       {noRange, es1(annotated(AnnotationClusterSetIP, "241.0.0.7")), "241.0.0.7 is not in the ranges []"},
	} {
		m := New(c.node)
		change := m.Update(append(m.SetSlice(slice("a", "10.180.1.1")), m.SetService(c.service))...)
		if p, _ := m.frontend(sent(packet)); p != nil || !strings.Contains(strings.Join(change.Reasons, "\n"), c.want) {
			t.Errorf("%s: %v has the address, reasons %q", name, p, change.Reasons)
		}
	}
}

// Nor does anybody send traffic out of the cluster by an EndpointSlice that looks like the federation's.
func TestOnlyAFederationsSlicesAreOfOtherClusters(t *testing.T) {
	for name, mark := range map[string]string{"none": "", "one that nobody has": "anything"} {
		forged := remote("west-a", "rb", "", "203.0.113.66")
		if delete(forged.Labels, LabelManagedBy); mark != "" {
			forged.Labels[LabelManagedBy] = mark
		}
		ports, reasons := Build(new(node()), es1(), []*discoveryv1.EndpointSlice{slice("a", "10.180.2.11 notready"), remote("east-a", "rb", "", "203.0.113.1"), forged})
		if len(ports) != 1 || backends(ports[0].Cluster) != string(ports[0].Cluster.Tier)+": 203.0.113.1:9200" || len(reasons) != 1 || !strings.Contains(reasons[0], "EndpointSlice west-a") {
			t.Errorf("mark %s: %s, reasons %q", name, backends(ports[0].Cluster), reasons)
		}
	}
}

func TestATraceTellsOfOtherClusters(t *testing.T) {
	m := New(node())
	s := es1(annotated(AnnotationClusterSetIP, "241.0.0.7", AnnotationFallbackBelow, "80%"))
	m.SetSlice(remote("west-a", "rb", "", "203.0.113.1"))
	m.Update(append(m.SetSlice(slice("a", "10.180.2.11", "10.180.2.12 notready")), m.SetService(s))...)
	got := strings.Join(m.Trace(sent("tcp 10.180.9.9 241.0.0.7:9200")).Steps, "\n")
	want := `tcp 10.180.9.9 → 241.0.0.7:9200
241.0.0.7:9200/tcp is the clusterset IP of default/es1:http (KUBE-SVC-LAS23QA33HXV7KBL)
from a pod of this node or cluster: one of 2 backends (ready, but too few of all here: the rest is left to other clusters)
→ 10.180.2.11:9200, 62.5 % of new connections, source address kept
→ 203.0.113.1:9200, 37.5 % of new connections, masqueraded, as it goes to cluster west-a`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
