package ruleset

import (
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// node returns the one that the tests are for.
func node() Node {
	return Node{
		Name: "n1", Zone: "za", Region: "ra",
		Addrs:         []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")},
		Pods:          Pods{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.180.0.0/14"), netip.MustParsePrefix("fd00:180::/32")}},
		ClusterSetIPs: []netip.Prefix{netip.MustParsePrefix("241.0.0.0/8"), netip.MustParsePrefix("fd00:241::/32")},
		Federations:   []string{"another", "a-federation"},
	}
}

// es1 returns the Service of the mission's sources.
func es1(change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "es1", CreationTimestamp: metav1.NewTime(time.Unix(100, 0))},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.0.147.93", ClusterIPs: []string{"10.0.147.93"},
			Ports: []corev1.ServicePort{{Name: "http", Protocol: "TCP", Port: 9200, NodePort: 32135}},
		},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "104.197.138.206"}}}},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

// slice has endpoints of es1, each given as its address and words: "@node", "zone=z", "fornode=n", "notready",
// "terminating", "gone" (terminating and not serving).
func slice(name string, endpoints ...string) *discoveryv1.EndpointSlice {
	port, http, tcp := int32(9200), "http", corev1.ProtocolTCP
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "es1"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &http, Port: &port, Protocol: &tcp}},
	}
	for _, text := range endpoints {
		s.Endpoints = append(s.Endpoints, parseEndpoint(text))
	}
	return s
}

func parseEndpoint(text string) discoveryv1.Endpoint {
	words := strings.Fields(text)
	e := discoveryv1.Endpoint{Addresses: words[:1], Hints: &discoveryv1.EndpointHints{}}
	yes, no := true, false
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "zone":
			e.Hints.ForZones = append(e.Hints.ForZones, discoveryv1.ForZone{Name: value})
		case "fornode":
			e.Hints.ForNodes = append(e.Hints.ForNodes, discoveryv1.ForNode{Name: value})
		case "notready":
			e.Conditions = discoveryv1.EndpointConditions{Ready: &no, Serving: &no}
		case "terminating":
			e.Conditions = discoveryv1.EndpointConditions{Ready: &no, Serving: &yes, Terminating: &yes}
		case "gone":
			e.Conditions = discoveryv1.EndpointConditions{Ready: &no, Serving: &no, Terminating: &yes}
		default:
			n := strings.TrimPrefix(w, "@")
			e.NodeName = &n
		}
	}
	return e
}

// remote has load balancer addresses of another cluster.
func remote(cluster, region, weight string, endpoints ...string) *discoveryv1.EndpointSlice {
	s := slice(cluster, endpoints...)
	s.Labels = map[string]string{LabelManagedBy: "a-federation", LabelRemoteService: "es1", LabelSourceCluster: cluster, corev1.LabelTopologyRegion: region}
	s.Annotations = map[string]string{AnnotationWeight: weight}
	return s
}

// backends returns a pool in a line, its tier first.
func backends(p Pool) string {
	out := []string{string(p.Tier) + ":"}
	for _, b := range p.Backends {
		out = append(out, b.Addr.String())
	}
	return strings.Join(out, " ")
}
