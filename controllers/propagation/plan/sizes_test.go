package plan

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// The report of addresses fits into its room, says how much it leaves out, and gives up clusters only when each has one address at most: first
// those with nothing ready, then those that are not seen, and never one that serves for one that does not.
func TestFitIngressesKeepsWhoServes(t *testing.T) {
	chance := rand.New(rand.NewPCG(61, 1))
	for range 2000 {
		var s v1beta1.ServiceIngresses
		was := map[string]v1beta1.ClusterServiceIngress{}
		for i := range 1 + chance.IntN(30) {
			c := v1beta1.ClusterServiceIngress{Cluster: fmt.Sprintf("cluster-%02d", i)}
			for j := range chance.IntN(maxAddresses + 1) {
				c.Items = append(c.Items, corev1.LoadBalancerIngress{IP: fmt.Sprintf("192.0.%d.%d", i, j)})
			}
			if chance.IntN(4) == 0 {
				c.Seen = new(false)
			}
			s.Items, was[c.Cluster] = append(s.Items, c), c
		}
		most := chance.IntN(6000)
		text := fitIngresses(s, most)
		got := v1beta1.ParseServiceIngresses(text)
		if text == "" {
			t.Fatalf("nothing is said of %d clusters in %d bytes", len(s.Items), most)
		}
		if len(text) > most && len(got.Items) > 0 {
			t.Fatalf("%d bytes are more than %d: %s", len(text), most, text)
		}
		kept, addresses, all, longest, least := map[string]bool{}, 0, 0, 0, 2
		for _, c := range got.Items {
			kept[c.Cluster], longest = true, max(longest, len(c.Items))
			if addresses += len(c.Items); !reflect.DeepEqual(c.Items, was[c.Cluster].Items[:len(c.Items)]) || (c.Items == nil) != (was[c.Cluster].Items == nil) {
				t.Fatalf("%s is said to have %v, has %v", c.Cluster, c.Items, was[c.Cluster].Items)
			}
			least = min(least, worthOf(c))
		}
		for _, c := range s.Items {
			if all += len(c.Items); !kept[c.Cluster] && (worthOf(c) > least || longest > 1) {
				t.Fatalf("%d bytes: %+v is left out of %s", most, c, text)
			}
		}
		omitted := v1beta1.OmittedIngresses{Addresses: all - addresses, Clusters: len(s.Items) - len(got.Items)}
		if none := omitted == (v1beta1.OmittedIngresses{}); none != (got.Omitted == nil) || !none && *got.Omitted != omitted {
			t.Fatalf("%d bytes: %+v is said to be left out, is %+v", most, got.Omitted, omitted)
		}
		if len(s.String()) <= most && text != s.String() {
			t.Fatalf("all fits into %d bytes, and it is %s", most, text)
		}
	}
}

// worthOf ranks what is said of a cluster: 2 if it serves and is seen, 1 if it is not seen, 0 if nothing is ready.
func worthOf(c v1beta1.ClusterServiceIngress) int {
	if len(c.Items) == 0 {
		return 0
	}
	return map[bool]int{true: 2, false: 1}[c.Seen == nil || *c.Seen]
}

// Of pods by cluster the largest numbers are kept, as many as fit, and nothing is said where none does.
func TestFittedPodsAreTheLargest(t *testing.T) {
	chance := rand.New(rand.NewPCG(62, 1))
	for range 3000 {
		pods := map[string]int64{}
		for i := range 1 + chance.IntN(12) {
			pods[strings.Repeat("c", 1+chance.IntN(4))+fmt.Sprint(i)] = int64(chance.IntN(30) * chance.IntN(30))
		}
		whole, _ := json.Marshal(pods)
		most := chance.IntN(len(whole) + 10)
		text, got := fittedPods(pods, most), map[string]int64{}
		if text != "" && json.Unmarshal([]byte(text), &got) != nil || len(text) > most {
			t.Fatalf("%d bytes of %d: %s", len(text), most, text)
		}
		next := "" // the largest that is missing
		for name, n := range pods {
			if is, kept := got[name]; kept && is != n {
				t.Fatalf("%s has %d, want %d", name, is, n)
			} else if !kept && (next == "" || n > pods[next] || n == pods[next] && name < next) {
				next = name
			}
		}
		for name, n := range got {
			if next != "" && (n < pods[next] || n == pods[next] && name > next) {
				t.Fatalf("%d bytes: %s is kept, %s is not: %s of %s", most, name, next, text, whole)
			}
		}
		if next != "" {
			got[next] = pods[next]
			if with, _ := json.Marshal(got); len(with)+len(got) < most { // it counts one byte too many for each
				t.Fatalf("%s would fit into %d bytes, too: %s", next, most, text)
			}
		}
	}
}

// The total status has each address once, sorted, and none that no load balancer can have. Objects that are no load balancers, and Ingresses
// of the federation's own class, have none.
func TestLoadBalancerIsTheUnion(t *testing.T) {
	copies := []Copy{{Cluster: "a", Object: parse(t, lbs("192.0.2.9", "192.0.2.1", "127.0.0.1", "0.0.0.0"))}, {Cluster: "b"}, {Cluster: "c", Object: parse(t,
		lbs("192.0.2.1", "2001:db8::1", "224.0.0.1"))}}
	service, ingress := parse(t, service), parse(t, "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\nspec: {ingressClassName: nginx}")
	const want = `{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"},{"ip":"192.0.2.9"},{"ip":"2001:db8::1"}]}}`
	if got := asJSON(serviceStatus(service, copies)); got != want {
		t.Errorf("Service: got %s, want %s", got, want)
	}
	if got := asJSON(ingressStatus(ingress, copies)); got != want {
		t.Errorf("Ingress: got %s, want %s", got, want)
	}
	_ = unstructured.SetNestedField(service.Object, "ClusterIP", "spec", "type")
	_ = unstructured.SetNestedField(ingress.Object, v1beta1.IngressClassName, "spec", "ingressClassName")
	if got := asJSON(serviceStatus(service, copies)) + asJSON(ingressStatus(ingress, copies)); got != "{}{}" {
		t.Errorf("a Service of type ClusterIP and an Ingress of our class: got %s, want nothing", got)
	}
	var many []Copy
	for i := range 300 {
		var addresses []string
		for j := range 10 {
			addresses = append(addresses, fmt.Sprintf("192.%d.%d.%d", i/250+1, i%250, j+1))
		}
		many = append(many, Copy{Object: parse(t, lbs(addresses...))})
	}
	_ = unstructured.SetNestedField(service.Object, "LoadBalancer", "spec", "type")
	union, _, _ := unstructured.NestedSlice(serviceStatus(service, many), "loadBalancer", "ingress")
	if len(union) != 300*(maxUnion/300) {
		t.Errorf("%d addresses of 300 clusters with 10 each, want %d of each", len(union), maxUnion/300)
	}
}

// lbs returns a Service with load balancer addresses.
func lbs(addresses ...string) string {
	text := "apiVersion: v1\nkind: Service\nstatus: {loadBalancer: {ingress: ["
	for _, a := range addresses {
		text += "{ip: '" + a + "'}, "
	}
	return text + "]}}"
}

// A condition names ten clusters at most, and says how many more there are.
func TestJoinedIsBounded(t *testing.T) {
	var texts []string
	for i := range 13 {
		texts = append(texts, fmt.Sprint(i))
		want := strings.Join(texts[:min(10, len(texts))], "; ")
		if more := len(texts) - 10; more > 0 {
			want += fmt.Sprintf("; and %d more", more)
		}
		if got := joinBounded(texts); got != want || texts[i] != fmt.Sprint(i) {
			t.Errorf("%d texts: got %q, want %q; the last is %q", len(texts), got, want, texts[i])
		}
	}
}
