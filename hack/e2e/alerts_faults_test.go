package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/keyutil"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
	"federation/clusterregistry/join"
	"federation/controllers/shards"
)

// beside is a federation without clusters, of two processes. Its controllers read the authority of the API's certificate from a file, and its etcd is behind a path that can be slow.
type beside struct {
	*half
	authority string
	processes *pair
	path      *wire // to etcd
}

func startBeside(t *testing.T) *beside {
	t.Helper()
	p := &pair{name: "alerts", dir: filepath.Join(s.dir, "alerts")}
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
	h := &half{dataDir: filepath.Join(p.dir, "data"), dns: "127.0.0.1:" + freePort(t), metrics: "127.0.0.1:" + freePort(t)}
	etcd := startEtcd(t, p.dir)
	b := &beside{h, filepath.Join(p.dir, "ca.crt"), p, newWire(t, strings.TrimPrefix(etcd[0], "--etcd-servers=https://"))}
	etcd[0] = "--etcd-servers=https://" + b.path.Addr().String()
	t.Cleanup(func() { p.end(t) })
	p.process(t, "alerts-apiserver", append([]string{"apiserver", "--data-dir=" + h.dataDir, "--secure-port=" + freePort(t)}, etcd...)...)
	kubeconfig := filepath.Join(p.dir, "kubeconfig")
	h.run = func() *process {
		config, err := clientcmd.LoadFromFile(filepath.Join(h.dataDir, "controllers.kubeconfig"))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range config.Clusters {
			if err := os.WriteFile(b.authority, c.CertificateAuthorityData, 0o600); err != nil {
				t.Fatal(err)
			}
			c.CertificateAuthority, c.CertificateAuthorityData = b.authority, nil
		}
		if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
			t.Fatal(err)
		}
		return p.process(t, "alerts-controllers", "controllers", "--kubeconfig="+kubeconfig, "--name=alerts", "--dns-zone=alerts.test", "--dns-bind-address="+h.dns, "--metrics-bind-address="+h.metrics)
	}
	p.startHalf(t, h, "parts")
	return b
}

// scraped are the scrape_configs of its processes. The API server asks etcd for its size in each scrape, which may take seconds.
func (b *beside) scraped() string {
	dir := filepath.Join(b.dataDir, "pki")
	return scraped("beside", b.metrics) + fmt.Sprintf("- job_name: beside-api\n  scrape_interval: 10s\n  scrape_timeout: 10s\n  scheme: https\n  static_configs: [{targets: ['%s']}]\n  tls_config: {ca_file: '%s', cert_file: '%s', key_file: '%s'}\n",
		strings.TrimPrefix(b.fed.config.Host, "https://"), filepath.Join(dir, "ca.crt"), filepath.Join(dir, "admin.crt"), filepath.Join(dir, "admin.key"))
}

// slowEtcd has requests to etcd take over half a second, until the alert fires.
func (b *beside) slowEtcd(t *testing.T, a *alerts) {
	t.Helper()
	a.silent(t, "FederationEtcdSlow")
	b.path.setLatency(300 * time.Millisecond)
	a.fires(t, "FederationEtcdSlow", `job="beside-api"`)
	b.path.setLatency(0)
}

// breakTable writes into the table of shards what is none, and then does what the runbook says.
func (b *beside) breakTable(t *testing.T, a *alerts) {
	t.Helper()
	a.silent(t, "FederationShardsUnassigned")
	leases := b.fed.client.CoordinationV1().Leases(v1beta1.FederationNamespace)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"what?"}}}`, shards.TableAnnotation)
	if _, err := leases.Patch(t.Context(), shards.TableName, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	a.fires(t, "FederationShardsUnassigned")
	if err := leases.Delete(t.Context(), shards.TableName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.clears(t, "FederationShardsUnassigned")
}

// loseAuthority takes the file of the authority away, and then the Lease of the process that leads: when that leads again it cannot read the file, and its part `leader` fails, again and again.
func (b *beside) loseAuthority(t *testing.T, a *alerts) {
	t.Helper()
	const part = `component="leader"`
	const leads = `federation_component_up{component="failover"} == 1`
	eventually(t, time.Minute, func() string {
		if n, err := a.count(leads); err != nil || n == 0 {
			return fmt.Sprintf("%s: %d series, %v", leads, n, err)
		}
		return ""
	})
	a.silent(t, "FederationComponentDown")
	away := b.authority + ".away"
	if err := os.Rename(b.authority, away); err != nil {
		t.Fatal(err)
	}
	patch := fmt.Sprintf(`{"spec":{"holderIdentity":"nobody","leaseDurationSeconds":10,"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
	if _, err := b.fed.client.CoordinationV1().Leases(v1beta1.FederationNamespace).Patch(t.Context(), v1beta1.LeaderLease, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	a.fires(t, "FederationComponentDown", part)
	if err := os.Rename(away, b.authority); err != nil {
		t.Fatal(err)
	}
	a.clears(t, "FederationComponentDown", part)
}

// end ends its processes: FederationDown is of all processes.
func (b *beside) end(t *testing.T) {
	t.Helper()
	b.processes.end(t)
	b.processes.processes = nil
}

// expiring has somebody show a client certificate that ends in three days.
func (a *alerts) expiring(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "somebody"}, PublicKey: key.Public()}
	signed, err := pki.FilesIn(filepath.Join(s.dir, "federation")).SignClient(request, "1", 72*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(s.fed.config)
	config.CertData, config.KeyData = signed, private
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	a.silent(t, "FederationClientCertificateExpiring")
	if _, err := client.Discovery().ServerVersion(); err != nil {
		t.Fatal(err)
	}
	a.fires(t, "FederationClientCertificateExpiring", `job="federation"`)
}

// balanced has a load balancer of the federation whose clusters have an address where nobody listens, and then somebody does.
func (a *alerts) balanced(t *testing.T, loadBalancerMetrics string) {
	t.Helper()
	const name = "balanced"
	address, port := ownAddress(t), freePort(t)
	number, _ := strconv.Atoi(port) // it is one
	serve(t, name, 3)
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/ports/0/port","value":%d}]`, number)
	if _, err := s.fed.client.CoreV1().Services(ns).Patch(t.Context(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	sayAddress(t, name, address)
	class := v1beta1.IngressClassName
	ingresses := s.fed.client.NetworkingV1().Ingresses(ns)
	if _, err := ingresses.Create(t.Context(), &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressSpec{
		IngressClassName: &class, Rules: []networkingv1.IngressRule{{Host: "balanced.test", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
			Path: "/", PathType: new(networkingv1.PathTypePrefix), Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: name, Port: networkingv1.ServiceBackendPort{Number: int32(number)}}},
		}}}}}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return ingresses.Delete(ctx, name, background) })
	lb := startProcess(t, "federation-lb", "federation-lb-alerts", "--kubeconfig="+s.env["FEDERATION_KUBECONFIG"], "--http-bind-address=127.0.0.1:"+freePort(t), "--https-bind-address=", "--metrics-bind-address="+loadBalancerMetrics,
		"--local-targets="+address+"/32", "--drain-delay=0s")
	t.Cleanup(func() { _ = lb.Process.Signal(syscall.SIGTERM); <-lb.ended })
	a.fires(t, "FederationLoadBalancerTargetsFailing")
	defer listen(t, net.JoinHostPort(address, port))()
	a.clears(t, "FederationLoadBalancerTargetsFailing")
}

// listen answers requests at an address until the returned function is called.
func listen(t *testing.T, address string) (end func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // until it is closed
	return func() { _ = server.Close() }
}

// sayAddress has all members say that their load balancer of a Service has this address.
func sayAddress(t *testing.T, service, address string) {
	t.Helper()
	status := []byte(fmt.Sprintf(`{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, address))
	for _, m := range s.members {
		if _, err := m.client.CoreV1().Services(ns).Patch(t.Context(), service, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
}

// forbidNameServers takes the rights of federation-dns away until the returned function is called.
func forbidNameServers(t *testing.T) (allow func()) {
	t.Helper()
	bindings := s.fed.client.RbacV1().ClusterRoleBindings()
	binding, err := bindings.Get(t.Context(), dnsAccount, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := bindings.Delete(t.Context(), dnsAccount, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		binding.ObjectMeta = metav1.ObjectMeta{Name: dnsAccount}
		if _, err := bindings.Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// copyAll copies a directory with what its files may be.
func copyAll(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// denial is a ValidatingAdmissionPolicy with its binding, which refuses writes.
func denial(name, operations, resource, group, unless string) string {
	return fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [%[4]q], apiVersions: ["*"], operations: [%[2]s], resources: [%[3]s]}]}
  validations: [{expression: %[5]q, message: refused by a test}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`, name, operations, resource, group, unless)
}

// applyIn applies objects to an API, until the returned function is called or the test ends.
func applyIn(t *testing.T, kubeconfig, objects string) (remove func()) {
	t.Helper()
	do := func(ctx context.Context, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(ctx, "kubectl", append([]string{"--kubeconfig=" + kubeconfig}, append(args, "-f", "-")...)...)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(s.root, "_output", "bin")+":"+os.Getenv("PATH"))
		cmd.Stdin = strings.NewReader(objects)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("kubectl %v: %v: %s", args, err, out)
		}
	}
	do(t.Context(), "apply")
	there := true
	remove = func() {
		t.Helper()
		if there {
			there = false
			do(context.Background(), "delete", "--ignore-not-found")
		}
	}
	t.Cleanup(remove)
	return remove
}

// refused has a member refuse what the federation writes there, until the alert fires: five minutes later no more writes are counted that failed.
func (a *alerts) refused(t *testing.T) {
	t.Helper()
	allow := applyIn(t, filepath.Join(s.dir, "members", "east-a", "kubeconfig"), denial("refused", "CREATE, UPDATE", "configmaps", "", "!object.metadata.name.startsWith('refused-')"))
	eventually(t, 30*time.Second, func() string { // API servers look for policies each second
		_, err := s.members["east-a"].client.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("refused-0"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "refused by a test") {
			return fmt.Sprintf("the policy does not refuse: %v", err)
		}
		return ""
	})
	for i := range 20 {
		applyConfigMap(t, fmt.Sprintf("refused-%d", i))
	}
	a.fires(t, "FederationMemberRefusesWrites", `cluster="east-a"`)
	a.silent(t, "FederationMemberRefusesWrites", `cluster="east-b"`)
	allow()
}

// checked has load balancers checked at a port of this machine where nobody listens, and then somebody does. Members say that they have the address of the machine: that of the loopback interface is no load balancer's.
func (a *alerts) checked(t *testing.T) {
	t.Helper()
	address := ownAddress(t)
	const name = "checked"
	serve(t, name, 3)
	sayAddress(t, name, address)
	host := strings.Join([]string{name, ns, s.env["FEDERATION_NAME"], "svc", s.env["DNS_ZONE"]}, ".")
	eventually(t, 30*time.Second, func() string {
		if rcode, got := s.lookup(t, host, 1); !slices.Equal(got, []string{address}) {
			return fmt.Sprintf("%s %v, want %s", rcode, got, address)
		}
		return ""
	})
	port := freePort(t)
	check := fmt.Sprintf(`%s={"healthCheck":{"type":"TCP","port":%s,"periodSeconds":1,"timeoutSeconds":1}}`, v1beta1.DNSAnnotation, port)
	if out, err := s.kubectl(t, "", "annotate", "service", name, check); err != nil {
		t.Fatal(out)
	}
	a.fires(t, "FederationDNSHealthChecksFailing")
	defer listen(t, net.JoinHostPort(address, port))()
	a.clears(t, "FederationDNSHealthChecksFailing")
	if out, err := s.kubectl(t, "", "annotate", "service", name, v1beta1.DNSAnnotation+"-"); err != nil {
		t.Fatal(out)
	}
}

// ownAddress is an address of this machine that is not of the loopback interface; who connects to it stays on the machine all the same.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Fatal("this machine has no IPv4 address but that of its loopback interface: load balancers cannot be checked there")
	return ""
}

// lost has two members lost in turn, the first of which has lost its fences, and a DNS provider that does not answer meanwhile.
func (a *alerts) lost(t *testing.T, provider *knot) {
	t.Helper()
	const first, second = "west-a", "east-b"
	uid, err := join.FederationUID(t.Context(), s.fed.client)
	if err != nil {
		t.Fatal(err)
	}
	fences := s.members[first].client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	all, err := fences.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all.Items {
		if strings.HasPrefix(b.Name, join.AccountName(uid)) {
			if err := fences.Delete(t.Context(), b.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := provider.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.process.Signal(syscall.SIGCONT) })
	resumeFirst := s.stop(t, first)
	a.fires(t, "FederationClusterNotReady", fmt.Sprintf("cluster=%q", first))
	a.silent(t, "FederationFailoverSuspended")
	a.fires(t, "FederationClusterFailedOver")
	resumeSecond := s.stop(t, second)
	a.fires(t, "FederationFailoverSuspended")
	a.fires(t, "FederationDNSProviderOutOfSync", `provider="knot"`)
	resumeFirst()
	resumeSecond()
	if err := provider.process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, alert := range []string{"FederationClusterNotReady", "FederationFailoverSuspended", "FederationClusterFailedOver", "FederationDNSProviderOutOfSync"} {
		a.clears(t, alert)
	}
	a.fires(t, "FederationFencesMissing", fmt.Sprintf("cluster=%q", first))
	joinAgain(t, first)
	a.clears(t, "FederationFencesMissing")
	home(t)
}

// unready has no room for the loss of a zone, and then a member whose room is not known.
func (a *alerts) unready(t *testing.T) {
	t.Helper()
	const zone, name = `domain="east/a"`, "roomy"
	sets, web := s.fed.client.AppsV1().ReplicaSets(ns), replicaSet("roomy", 15, nil)
	web.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: halfANode(t)}
	a.firing(t, "FederationNotSurvivable", false, zone) // as while clusters were lost
	if _, err := sets.Create(t.Context(), web, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return sets.Delete(ctx, name, background) })
	a.fires(t, "FederationNotSurvivable", zone)
	if err := sets.Delete(t.Context(), name, background); err != nil {
		t.Fatal(err)
	}
	a.clears(t, "FederationNotSurvivable", zone)

	const member = "west-a"
	t.Cleanup(func() { joinAgain(t, member) })
	if out, err := unjoin(t, member); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := joinMember(t, member, "--address=127.0.0.1:1", "--timeout=0"); err != nil { // so that nothing is read there yet
		t.Fatalf("%v: %s", err, out)
	}
	forbidPods(t, member)
	address := strings.TrimPrefix(s.members[member].config.Host, "https://")
	patch := fmt.Sprintf(`{"spec":{"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":%q}]}}`, address)
	if _, err := s.fed.dyn.Resource(v1beta1.ClustersResource).Patch(t.Context(), member, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	a.fires(t, "FederationReadinessUnknown", zone)
	joinAgain(t, member)
	a.clears(t, "FederationReadinessUnknown", zone)
	home(t)
}

// forbidPods takes the right to see pods from the federation's account in a member.
func forbidPods(t *testing.T, member string) {
	t.Helper()
	uid, err := join.FederationUID(t.Context(), s.fed.client)
	if err != nil {
		t.Fatal(err)
	}
	roles := s.members[member].client.RbacV1().ClusterRoles()
	role, err := roles.Get(t.Context(), join.AccountName(uid), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range role.Rules {
		if rule := &role.Rules[i]; slices.Contains(rule.APIGroups, "") {
			rule.Resources = slices.DeleteFunc(rule.Resources, func(r string) bool { return r == "pods" })
		}
	}
	if _, err := roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// drilled drills a zone, which nobody has, then fails to, then has a member lost by a drill, and at last one that the federation cannot write how it goes on, for longer than it was to last.
func (a *alerts) drilled(t *testing.T) {
	t.Helper()
	const zone = `domain="east/a"`
	a.fires(t, "FederationDrillLongAgo", zone)
	startDrill(t, "alerts-zone", map[string]any{"method": "Shift", "scope": map[string]any{"zones": []any{"east/a"}}, "holdSeconds": int64(10)})
	drillBecomes(t, "alerts-zone", (*v1beta1.FailoverDrill).IsFinished)
	a.clears(t, "FederationDrillLongAgo", zone)
	a.silent(t, "FederationDrillFailed")

	startDrill(t, "alerts-failed", map[string]any{"method": "Shift", "scope": map[string]any{"clusters": []any{"east-a"}}, "holdSeconds": int64(60), "guardrails": map[string]any{"minReadyPercent": int64(100)}})
	drillBecomes(t, "alerts-failed", isHolding)
	pods, err := s.members["east-a"].client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=alerts"})
	if err != nil || len(pods.Items) == 0 {
		t.Fatal(err, len(pods.Items))
	}
	setReady(t, pods.Items[0].Name, "False")
	if d := drillBecomes(t, "alerts-failed", (*v1beta1.FailoverDrill).IsFinished); d.Status.Outcome != v1beta1.DrillFailed {
		t.Fatalf("%s, %s: %s", d.Status.Outcome, d.Status.Reason, d.Status.Message)
	}
	setReady(t, pods.Items[0].Name, "True")
	a.fires(t, "FederationDrillFailed", `method="Shift"`)

	isolated := []string{`cluster="west-a"`, `drill="alerts-isolated"`}
	startDrill(t, "alerts-isolated", map[string]any{"method": "Isolate", "scope": map[string]any{"clusters": []any{"west-a"}}, "holdSeconds": int64(600)})
	a.fires(t, "FederationClusterInDrill", isolated...)
	time.Sleep(5 * time.Second) // what NotReady would wait for, and more
	a.silent(t, "FederationClusterNotReady")
	if out, err := s.kubectl(t, "", "federation", "drill", "abort", "alerts-isolated", "--reason", "enough"); err != nil {
		t.Fatal(err, out)
	}
	a.clears(t, "FederationClusterInDrill", isolated...)
	drillBecomes(t, "alerts-isolated", (*v1beta1.FailoverDrill).IsFinished)
	home(t)

	startDrill(t, "alerts-overdue", map[string]any{"method": "Shift", "scope": map[string]any{"clusters": []any{"east-b"}}, "holdSeconds": int64(30)})
	drillBecomes(t, "alerts-overdue", isHolding)
	allow := applyIn(t, s.env["FEDERATION_KUBECONFIG"], denial("no-drills", "UPDATE", "failoverdrills/status", v1beta1.GroupName, "false"))
	a.fires(t, "FederationDrillNotRolledBack")
	allow()
	a.clears(t, "FederationDrillNotRolledBack")
	drillBecomes(t, "alerts-overdue", (*v1beta1.FailoverDrill).IsFinished)
	a.clears(t, "FederationDrillFailed")
}

func isHolding(d *v1beta1.FailoverDrill) bool { return d.Status.Phase == v1beta1.DrillHolding }

// startDrill creates a drill that waits for little, and deletes it in the end.
func startDrill(t *testing.T, name string, spec map[string]any) {
	t.Helper()
	spec["reason"], spec["baselineSeconds"], spec["allow"] = "a test", int64(5), []any{v1beta1.DrillQuiet, v1beta1.DrillRested}
	drills := s.fed.dyn.Resource(v1beta1.FailoverDrillsResource)
	if _, err := drills.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "FailoverDrill", "metadata": map[string]any{"name": name}, "spec": spec,
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return drills.Delete(ctx, name, metav1.DeleteOptions{}) })
}

// drillBecomes waits until a drill is as it is to be.
func drillBecomes(t *testing.T, name string, so func(*v1beta1.FailoverDrill) bool) (d *v1beta1.FailoverDrill) {
	t.Helper()
	eventually(t, 2*time.Minute, func() string {
		u, err := s.fed.dyn.Resource(v1beta1.FailoverDrillsResource).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		d = &v1beta1.FailoverDrill{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
			return err.Error()
		}
		if !so(d) {
			text, _ := json.Marshal(d.Status)
			return string(text)
		}
		return ""
	})
	return d
}
