package ruleset_test

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/nodeagent/ruleset"
)

// A Service with one endpoint, and where a pod's connection to it goes.
func ExampleModel_Trace() {
	model := ruleset.New(ruleset.Node{Name: "n1", Pods: ruleset.Pods{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.180.0.0/16")}}})
	port := int32(8080)
	key := model.SetService(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.0.0.7", ClusterIPs: []string{"10.0.0.7"}, Ports: []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80}}},
	})
	model.SetSlice(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Port: &port, Name: new(""), Protocol: new(corev1.ProtocolTCP)}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.180.2.2"}}},
	})
	model.Update(key)
	path := model.Trace(ruleset.Packet{From: netip.MustParseAddr("10.180.9.9"), To: netip.MustParseAddrPort("10.0.0.7:80"), Protocol: corev1.ProtocolTCP})
	fmt.Println(path.Route.To, path.Pool.Backends[0].Addr)
	// Output:
	// cluster 10.180.2.2:8080
}
