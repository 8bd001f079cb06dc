package servicedns

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestClustersThatDifferInCapacity: what is said without decoding Clusters is only that nothing but the capacity differs.
func TestClustersThatDifferInCapacity(t *testing.T) {
	read := func(text string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		return u
	}
	is := read(`{metadata: {name: a, uid: u, resourceVersion: "1"}, spec: {dnsWeight: 1}, status: {region: r, capacity: {nodes: 1}}}`)
	for text, want := range map[string]bool{
		`{metadata: {name: a, uid: u, resourceVersion: "2"}, spec: {dnsWeight: 1}, status: {region: r, capacity: {nodes: 2}}}`:                             true,
		`{metadata: {name: a, uid: u}, spec: {dnsWeight: 1}, status: {region: r}}`:                                                                         true,
		`{metadata: {name: a, uid: u}, spec: {dnsWeight: 2}, status: {region: r, capacity: {nodes: 1}}}`:                                                   false,
		`{metadata: {name: a, uid: u}, spec: {dnsWeight: 1}, status: {region: s, capacity: {nodes: 1}}}`:                                                   false,
		`{metadata: {name: a, uid: u}, spec: {dnsWeight: 1}, status: {capacity: {nodes: 1}}}`:                                                              false,
		`{metadata: {name: a, uid: u}, spec: {dnsWeight: 1}, status: {region: r, zones: [z], capacity: {nodes: 1}}}`:                                       false,
		`{metadata: {name: a, uid: v}, spec: {dnsWeight: 1}, status: {region: r, capacity: {nodes: 1}}}`:                                                   false,
		`{metadata: {name: a, uid: u, annotations: {federation.kubernetes.io/drain: x}}, spec: {dnsWeight: 1}, status: {region: r, capacity: {nodes: 1}}}`: false,
		`{metadata: {name: a, uid: u}, spec: {dnsWeight: 1}}`:                                                                                              false,
	} {
		if other := read(text); sameButForCapacity(is, other) != want || sameButForCapacity(other, is) != want {
			t.Errorf("%s differs in its capacity alone: want %t", text, want)
		}
	}
}
