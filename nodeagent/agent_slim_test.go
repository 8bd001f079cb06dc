package nodeagent

import (
	"fmt"
	"net/netip"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/nodeagent/ruleset"
)

// What slim leaves of objects that have everything makes the same Ports.
func TestSlimChangesNoPort(t *testing.T) {
	a := &Agent{Config: Config{NodeName: "n1"}}
	node := ruleset.Node{Name: "n1", Zone: "z1", Region: "r1", ServiceProxyName: "ours", ClusterSetIPs: []netip.Prefix{netip.MustParsePrefix("10.200.0.0/16")}, Federations: []string{"a-federation"}}
	web := service("web", "10.0.0.1")
	web.Labels = map[string]string{ruleset.LabelServiceProxyName: "ours", ruleset.LabelManagedBy: "a-federation", "app": "web"}
	web.Annotations = map[string]string{ruleset.AnnotationFallbackBelow: "100%", ruleset.AnnotationClusterSetIP: "10.200.0.1", "note": "long"}
	web.Spec.Selector = map[string]string{"app": "web"}
	internal := corev1.ServiceInternalTrafficPolicyCluster
	web.Spec.InternalTrafficPolicy = &internal
	here := slice("web", "10.1.0.1", "10.1.0.2", "10.1.0.3")
	ready, not, other := true, false, "n2"
	here.Endpoints[0].Conditions.Ready, here.Endpoints[1].Conditions.Ready = &ready, &not
	here.Endpoints[1].NodeName, here.Endpoints[2].NodeName = &other, nil
	here.Endpoints[0].TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: "web-1"}
	here.OwnerReferences = []metav1.OwnerReference{{Kind: "Service", Name: "web"}}
	there := slice("web", "203.0.113.1")
	there.Name, there.Endpoints[0].NodeName = "west", nil
	there.Labels = map[string]string{ruleset.LabelManagedBy: "a-federation", ruleset.LabelRemoteService: "web", ruleset.LabelSourceCluster: "west", corev1.LabelTopologyRegion: "r1"}
	there.Annotations = map[string]string{ruleset.AnnotationWeight: "5"}
	hinted := slice("web", "10.1.0.9")
	hinted.Endpoints[0].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "z1"}}}

	for name, slices := range map[string][]*discoveryv1.EndpointSlice{"ready and remote": {here, there}, "hints": {hinted}} {
		want, why := ruleset.Build(&node, web, slices)
		if len(want) != 1 || len(why) > 0 {
			t.Fatalf("%s: %v, %v", name, want, why)
		}
		service, err := a.slim(web.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		var slimmed []*discoveryv1.EndpointSlice
		for _, s := range slices {
			o, err := a.slim(s.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			slimmed = append(slimmed, o.(*discoveryv1.EndpointSlice))
		}
		if got, _ := ruleset.Build(&node, service.(*corev1.Service), slimmed); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s, not %s", name, fmt.Sprint(got), fmt.Sprint(want))
		}
		if s := service.(*corev1.Service); s.Spec.Selector != nil || len(s.Annotations) != 2 || slimmed[0].OwnerReferences != nil || slimmed[0].Endpoints[0].TargetRef != nil {
			t.Errorf("%s: something is kept that no rule needs", name)
		}
	}
}
