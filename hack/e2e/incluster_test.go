package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/dnsprovider/servertest"
)

// startClusterDNS runs a real CoreDNS for east-a, with what docs/in-cluster-names.md says for its Corefile, and returns its address.
func startClusterDNS(t *testing.T) string {
	t.Helper()
	coredns := filepath.Join(s.root, "_output", "bin", "coredns")
	if _, err := os.Stat(coredns); err != nil {
		t.Skip("CoreDNS is not built: `make test-coredns` builds it and tests with it")
	}
	page, err := os.ReadFile(filepath.Join(s.root, "docs", "in-cluster-names.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```corefile\n(.*?)```").FindSubmatch(page)
	if blocks == nil {
		t.Fatal("docs/in-cluster-names.md has no block of type corefile")
	}
	port, inner := servertest.FreePort(t), servertest.FreePort(t)
	kubeconfig := filepath.Join(s.dir, "members", "east-a", "kubeconfig")
	config := strings.NewReplacer(
		"fed.svc.", s.env["FEDERATION_NAME"]+".svc.", `\.fed\.`, `\.`+s.env["FEDERATION_NAME"]+`\.`, "example.com", s.env["DNS_ZONE"],
		":53 {", fmt.Sprintf(":%d {\n    bind 127.0.0.1", port), "5300", fmt.Sprint(inner), "/etc/resolv.conf", s.env["DNS_ADDRESS"],
		"ignore empty_service", fmt.Sprintf("ignore empty_service\n        endpoint %s\n        kubeconfig %s", s.members["east-a"].config.Host, kubeconfig),
	).Replace(string(blocks[1]))
	servertest.Run(t, exec.Command(coredns, "-conf", servertest.Write(t, t.TempDir(), "Corefile", config)))
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// TestNamesInACluster asks a member's DNS for a federated Service whose endpoints there go and come back.
func TestNamesInACluster(t *testing.T) {
	server := startClusterDNS(t)
	const name = "inside"
	serve(t, name, 3)

	local, err := s.members["east-a"].client.CoreV1().Services(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	neighbour, err := s.members["east-b"].client.CoreV1().Services(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	prefix := strings.Join([]string{name, ns, s.env["FEDERATION_NAME"], "svc", ""}, ".")
	question := prefix + "cluster.local"
	here := []string{local.Spec.ClusterIP}
	nearby := []string{prefix + "a.east." + s.env["DNS_ZONE"] + ".", prefix + "east." + s.env["DNS_ZONE"] + ".", neighbour.Status.LoadBalancer.Ingress[0].IP}
	answers := func(want []string) time.Duration {
		t.Helper()
		return eventually(t, 60*time.Second, func() string {
			if rcode, got := ask(server, question, dns.TypeA); rcode != "NOERROR" || !slices.Equal(got, want) {
				return fmt.Sprintf("%s: %s %v, want %v", question, rcode, got, want)
			}
			return ""
		})
	}
	answers(here)
	pods, err := s.members["east-a"].client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil || len(pods.Items) != 1 {
		t.Fatal(err, len(pods.Items))
	}
	setReady(t, pods.Items[0].Name, "False")
	t.Logf("no endpoint here: a CNAME of the zone's name after %s", answers(nearby).Round(time.Millisecond))
	setReady(t, pods.Items[0].Name, "True")
	t.Logf("an endpoint here again: the local Service after %s", answers(here).Round(time.Millisecond))

	// What is nowhere is an alias of a name that is not there.
	question = "none." + strings.TrimPrefix(question, name+".")
	answers([]string{"none." + strings.TrimPrefix(nearby[0], name+".")})
}
