package crosscluster

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/crosscluster/plan"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/nodeagent/ruleset"
)

// The node agent does not import the federation's API, so both declare what they have in common.
func TestTheNodeAgentSaysTheSame(t *testing.T) {
	for ours, theirs := range map[string]string{
		v1beta1.ManagedByLabel:          ruleset.LabelManagedBy,
		v1beta1.RemoteServiceLabel:      ruleset.LabelRemoteService,
		v1beta1.SourceClusterLabel:      ruleset.LabelSourceCluster,
		v1beta1.WeightAnnotation:        ruleset.AnnotationWeight,
		v1beta1.ClusterSetIPAnnotation:  ruleset.AnnotationClusterSetIP,
		v1beta1.FallbackAnnotation:      ruleset.AnnotationFallback,
		v1beta1.FallbackBelowAnnotation: ruleset.AnnotationFallbackBelow,
	} {
		if ours != theirs {
			t.Errorf("%s is %s to the node agent", ours, theirs)
		}
	}
	if plan.MaxWeight != ruleset.MaxWeight {
		t.Errorf("weights go to %d, the node agent's to %d", plan.MaxWeight, ruleset.MaxWeight)
	}
}

// The node agent routes to the clusters of the slices by weight, nearer ones first.
func TestTheNodeAgentReadsTheSlices(t *testing.T) {
	web := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{
			v1beta1.ClusterSetIPAnnotation: v1beta1.ClusterSetIPAuto, v1beta1.FallbackAnnotation: "true", v1beta1.FallbackBelowAnnotation: "100%",
		}},
		Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.10", Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}}},
	}
	at := func(cluster, region, address string, weight uint32) servicednsplan.Offer {
		return servicednsplan.Offer{Cluster: cluster, Region: region, Weight: weight, Addresses: []netip.Addr{netip.MustParseAddr(address)}}
	}
	var got []*discoveryv1.EndpointSlice
	for _, op := range plan.Operate(plan.Input{Member: "east-a", Federation: "fed", Service: web, Offers: []servicednsplan.Offer{
		at("east-a", "east", "192.0.2.1", 1), at("east-b", "east", "192.0.2.2", 300), at("west-a", "west", "192.0.2.3", 7),
	}}) {
		got = append(got, op.Slice)
	}
	for region, want := range map[string]ruleset.Backend{
		"east": {Addr: netip.MustParseAddrPort("192.0.2.2:80"), Weight: 300, Cluster: "east-b"},
		"west": {Addr: netip.MustParseAddrPort("192.0.2.3:80"), Weight: 7, Cluster: "west-a"},
	} {
		ports, reasons := ruleset.Build(&ruleset.Node{Region: region, Federated: true, Federations: []string{"fed"}}, web, got)
		if len(ports) != 1 || len(reasons) > 0 {
			t.Fatalf("%d ports, %q", len(ports), reasons)
		}
		if b := ports[0].Cluster.Backends; len(b) != 1 || b[0] != want {
			t.Errorf("in region %s: %+v, want %+v", region, b, want)
		}
	}
}
