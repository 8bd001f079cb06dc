package servicedns

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"

	"federation/apiserver/apis/federation/v1beta1"
)

// A grant takes a host from a namespace without the grant and gives it to one with it, at once.
func TestAGrantGivesAndTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		front := func(namespace, address string) *unstructured.Unstructured {
			u := ingress("front", "login.example.com", 0, map[string]string{"a": address})
			u.SetNamespace(namespace)
			u.SetCreationTimestamp(metav1.Time{})
			return u
		}
		w := emptyOffice(t)
		w.kube = fake.NewClientset()
		w.put(place("a", "True", "z1", "east"))
		w.put(front("evil", "203.0.113.66"))
		w.start()
		w.put(front("shop", "192.0.2.1"))
		has := func(want string) {
			t.Helper()
			w.wait(time.Minute)
			if lines := w.provider.names(); !slices.Contains(lines, want) {
				t.Errorf("%q, want %q", lines, want)
			}
		}
		has("login A 203.0.113.66")
		grant := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "federation/v1beta1", "kind": "DNSNameGrant",
			"metadata": map[string]any{"name": "login"}, "spec": map[string]any{"suffix": "login.example.com", "namespaces": []any{"shop"}}}}
		w.put(grant)
		has("login A 192.0.2.1")
		if err := w.client.Resource(v1beta1.DNSNameGrantsResource).Delete(t.Context(), "login", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		has("login A 192.0.2.1") // it belongs to shop now
	})
}

// A host belongs to the namespace that had it first: while its object has no address, against an older object that
// claims it later, over a restart, and for an hour after its object is gone.
func TestAHostStaysWithItsNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := emptyOffice(t)
		w.kube = fake.NewClientset()
		front := func(namespace, host string, addresses map[string]string) *unstructured.Unstructured {
			u := ingress("front", host, 0, addresses)
			u.SetNamespace(namespace)
			u.SetCreationTimestamp(metav1.Time{})
			if addresses == nil {
				u.SetAnnotations(nil)
			}
			return u
		}
		answers := func(want string) {
			t.Helper()
			w.wait(5 * time.Second)
			var got []string
			for _, line := range w.provider.names() {
				if strings.HasPrefix(line, "login ") {
					got = append(got, line)
				}
			}
			if strings.Join(got, ";") != want {
				m, _ := w.kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(t.Context(), v1beta1.DNSHostsConfigMap, metav1.GetOptions{})
				t.Errorf("%q, want %q; written down: %v", got, want, m.Data)
			}
		}
		at := map[string]string{"a": "192.0.2.1"}
		w.put(place("a", "True", "z1", "east"))
		w.put(front("evil", "other.example.com", map[string]string{"a": "203.0.113.66"})) // the older one
		w.wait(time.Minute)
		w.put(front("shop", "login.example.com", at))
		end := w.start()
		answers("login A 192.0.2.1")
		w.put(front("evil", "login.example.com", map[string]string{"a": "203.0.113.66"}))
		answers("login A 192.0.2.1")
		w.put(front("shop", "login.example.com", nil)) // no address for a moment
		answers("")
		w.put(front("shop", "login.example.com", at))
		answers("login A 192.0.2.1")
		if err := w.client.Resource(ingressesResource).Namespace("shop").Delete(t.Context(), "front", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		answers("")
		end()
		end = w.start()
		answers("")
		w.wait(50 * time.Minute)
		answers("")
		for len(w.recorder.Events) > 0 {
			if event := <-w.recorder.Events; strings.Contains(event, "shop") {
				t.Errorf("a tenant learns of another one: %s", event)
			}
		}
		w.wait(15 * time.Minute)
		answers("login A 203.0.113.66")
		end()
		var writes int
		for _, a := range w.kube.Actions() {
			if slices.Contains([]string{"create", "update", "patch"}, a.GetVerb()) && a.GetResource().Resource == "configmaps" {
				writes++
			}
		}
		if writes > 10 {
			t.Errorf("%d writes", writes)
		}
	})
}
