package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/dnsprovider/servertest"
)

const (
	providersZone = "ha.test."
	goodKey       = "c2l4dGVlbiBieXRlcyBvciBtb3JlIG9mIHNlY3JldA=="
	wrongKey      = "YW5vdGhlciBzaXh0ZWVuIGJ5dGVzIG9mIHNlY3JldA=="
)

// knot is a real Knot DNS with one zone, which takes updates with a key.
type knot struct {
	address string
	process *os.Process
}

func startKnot(t *testing.T, zone string) *knot {
	t.Helper()
	address, process := servertest.Knot{
		Zone: zone, File: "@ 60 IN SOA ns admin 1 3600 600 86400 5\n@ 60 IN NS ns\nns 60 IN A 127.0.0.1\n",
		Keys: []servertest.KnotKey{{Name: "federation", Secret: goodKey, May: "transfer, update"}},
	}.Start(t)
	return &knot{address, process}
}

// standing is what kubectl federation status says of the DNS providers.
type standing struct {
	Healthy      bool `json:"healthy"`
	DNSProviders []struct {
		Name      string      `json:"name"`
		Published bool        `json:"published"`
		Reason    string      `json:"reason"`
		Message   string      `json:"message"`
		Since     metav1.Time `json:"since"`
	} `json:"dnsProviders"`
}

// provider is what is said of one provider: whether it is published, its reason and its message; "" for nothing.
func provider(t *testing.T, kubeconfig, name string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(s.root, "_output", "bin", "kubectl-federation"), "status", "-o", "json", "--kubeconfig", kubeconfig).Output()
	if err != nil {
		t.Fatalf("kubectl federation status: %v\n%s", err, out)
	}
	var is standing
	if err := json.Unmarshal(out, &is); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, p := range is.DNSProviders {
		if p.Name == name {
			return fmt.Sprintf("%t %s %s", p.Published, p.Reason, p.Message)
		}
	}
	return ""
}

// says waits until that begins as it should, and has the words.
func says(t *testing.T, kubeconfig, name, begin string, words ...string) {
	t.Helper()
	took := eventually(t, time.Minute, func() string {
		is := provider(t, kubeconfig, name)
		if !strings.HasPrefix(is, begin) || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(is, w) }) {
			return fmt.Sprintf("%s: %q, want %q with %q", name, is, begin, words)
		}
		return ""
	})
	t.Logf("%s says %s after %s", name, begin, took)
}

// TestProvidersOfTheZone has a whole process keep its zone at home and at four servers: one that is right, one that ends, one
// whose key is another, and one that does not have the zone. Each goes on or says what is wrong, and none delays another.
func TestProvidersOfTheZone(t *testing.T) {
	good, dying, foreign := startKnot(t, providersZone), startKnot(t, providersZone), startKnot(t, "other.test.")
	p := &pair{name: "providers", dir: filepath.Join(s.dir, "providers")}
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.end(t) })
	keys := servertest.Dir(t)
	right, wrong := servertest.Write(t, keys, "right", goodKey), servertest.Write(t, keys, "wrong", wrongKey)
	entry := func(name string, at *knot, key string) string {
		return fmt.Sprintf("- name: %s\n  rfc2136: {server: %s, key: {name: federation, algorithm: hmac-sha256, secretFile: %s}}\n", name, at.address, key)
	}
	file := servertest.Write(t, keys, "providers.yaml", "providers:\n"+entry("good", good, right)+entry("dying", dying, right)+entry("badkey", good, wrong)+entry("badzone", foreign, right))
	h := &half{dataDir: filepath.Join(p.dir, "0"), dns: "127.0.0.1:" + freePort(t)}
	h.run = func() *process {
		return p.process(t, p.name, "serve", "--data-dir="+h.dataDir, "--secure-port="+freePort(t), "--name=ha", "--dns-zone=ha.test", "--dns-bind-address="+h.dns, "--dns-providers="+file)
	}
	p.halves = []*half{h, h} // both are the one process
	p.startHalf(t, h, "serve")
	p.join(t)
	t.Cleanup(func() { // after what was applied is deleted: what others have in the zone is theirs, and nothing else is left
		eventually(t, time.Minute, func() string {
			if rcode, answers := ask(good.address, p.host(), dns.TypeA); rcode != "NXDOMAIN" {
				return fmt.Sprintf("%s %v", rcode, answers)
			}
			return ""
		})
		if rcode, answers := ask(good.address, "ns."+providersZone, dns.TypeA); rcode != "NOERROR" || !slices.Equal(answers, []string{"127.0.0.1"}) {
			t.Errorf("the server's own record: %s %v", rcode, answers)
		}
	})
	addresses := p.apply(t) // which waits for the built-in server
	at := func(server string, want ...string) {
		t.Helper()
		took := eventually(t, 30*time.Second, func() string { return p.answer(&half{dns: server}, want) })
		t.Logf("%s answers %v after %s", server, want, took)
	}
	at(good.address, addresses...)
	at(dying.address, addresses...)
	says(t, h.kubeconfig(), "built-in", "true Published")
	says(t, h.kubeconfig(), "good", "true Published")
	says(t, h.kubeconfig(), "badkey", "false Failing", "BADSIG")
	says(t, h.kubeconfig(), "badzone", "false Failing", "ha.test.", "NOTAUTH")

	// A server ends, a member's endpoints go: the others follow at once, and the object and the provider say what is missing.
	if err := dying.process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.members[haMembers[0]].client.CoreV1().Services(ns).Delete(t.Context(), p.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	says(t, h.kubeconfig(), "dying", "false Failing", "connection refused")
	var now []string
	eventually(t, time.Minute, func() string { // the copy is made anew, with another address maybe
		if now = p.addresses(t); len(now) != len(haMembers) {
			return fmt.Sprintf("addresses %v", now)
		}
		return p.answer(h, now)
	})
	at(good.address, now...)
	says(t, h.kubeconfig(), "good", "true Published")
	eventually(t, time.Minute, func() string {
		service, err := h.fed.client.CoreV1().Services(ns).Get(t.Context(), p.name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(service.Status.Conditions, v1beta1.ConditionDNSPublished)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != "ProviderOutOfSync" || !strings.Contains(c.Message, "provider dying") {
			return fmt.Sprintf("condition %+v", c)
		}
		return ""
	})
}
