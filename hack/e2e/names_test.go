package e2e

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"federation/apiserver/apis/federation/v1beta1"
)

const dnsAccount = "federation-dns"

// nameServer is a federation-dns: one of the pair that serves the zone.
type nameServer struct {
	dns, health string
	run         func() *process
	process     *process
}

// startNameServer runs a federation-dns with no more rights than docs/federation-dns.md gives it.
func startNameServer(t *testing.T, kubeconfig, log string) *nameServer {
	t.Helper()
	n := &nameServer{dns: "127.0.0.1:" + freePort(t), health: "127.0.0.1:" + freePort(t)}
	n.run = func() *process {
		return startProcess(t, "federation-dns", log, "--zone="+s.env["DNS_ZONE"], "--kubeconfig="+kubeconfig,
			"--listen="+n.dns, "--metrics-bind-address="+n.health, "--rate-limit=-1")
	}
	n.process = n.run()
	t.Cleanup(func() { n.end(t, syscall.SIGTERM) })
	return n
}

// ready waits until it answers for the zone, and returns how long that took.
func (n *nameServer) ready(t *testing.T) time.Duration {
	t.Helper()
	return eventually(t, 30*time.Second, func() string {
		answer, err := http.Get("http://" + n.health + "/readyz")
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return answer.Status
		}
		return ""
	})
}

// end ends it, and waits for that.
func (n *nameServer) end(t *testing.T, how syscall.Signal) {
	t.Helper()
	if err := n.process.Process.Signal(how); err != nil {
		t.Error(err)
	}
	select {
	case <-n.process.ended:
	case <-time.After(30 * time.Second):
		t.Fatalf("it does not end; see %s", n.process.log)
	}
	if how == syscall.SIGTERM && !n.process.ProcessState.Success() {
		t.Errorf("%v; see %s", n.process.ProcessState, n.process.log)
	}
}

// dnsKubeconfig makes an account for DNS servers as docs/federation-dns.md says, and returns the file with its token.
func dnsKubeconfig(t *testing.T) string {
	t.Helper()
	accounts, bindings := s.fed.client.CoreV1().ServiceAccounts(v1beta1.FederationNamespace), s.fed.client.RbacV1().ClusterRoleBindings()
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: dnsAccount}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return accounts.Delete(ctx, dnsAccount, metav1.DeleteOptions{}) })
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: dnsAccount},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "federation-dns"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: v1beta1.FederationNamespace, Name: dnsAccount}},
	}
	if _, err := bindings.Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return bindings.Delete(ctx, dnsAccount, metav1.DeleteOptions{}) })
	token, err := accounts.CreateToken(t.Context(), dnsAccount, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(s.env["FEDERATION_KUBECONFIG"])
	if err != nil {
		t.Fatal(err)
	}
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// inUse is a name that somebody asks for all the time, at a pair of servers.
type inUse struct {
	*stub
	*detector
	pair    []*nameServer
	address map[string]string // of each member
}

// named waits until both servers give the addresses of these members and no others.
func (u *inUse) named(t *testing.T, members ...string) time.Duration {
	t.Helper()
	var want []string
	for _, m := range members {
		want = append(want, u.address[m])
	}
	slices.Sort(want)
	return eventually(t, 90*time.Second, func() string {
		for _, server := range u.servers {
			rcode, got := ask(server, u.name, dns.TypeA)
			if slices.Sort(got); !slices.Equal(got, want) {
				return fmt.Sprintf("%s: %s %v, want %v", server, rcode, got, want)
			}
		}
		return ""
	})
}

// TestANameInUse has a name asked for 100 times a second while members die, hang, come back and are drained, while the
// federation is killed, and while each server of the pair ends or is killed. No question may stay without an address,
// and none may have that of a cluster for longer than a second after the federation knows that it does not serve.
func TestANameInUse(t *testing.T) {
	home(t)
	began := time.Now()
	u := startInUse(t)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { u.stub.run(ctx) })
	running.Go(func() { u.detector.run(ctx) })
	u.namedAll(t)

	for _, n := range u.pair {
		for _, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			n.end(t, how)
			n.process = n.run()
			t.Logf("a server (%s) answered again %.1f s after its start", how, n.ready(t).Seconds())
		}
	}
	u.lose(t, "east-b", func() func() { return s.stop(t, "east-b") })
	u.lose(t, "west-a", func() func() {
		s.signal(t, syscall.SIGKILL, "members", "west-a", "pid")
		return func() { up(t) }
	})
	u.killFederation(t)
	u.drain(t, "east-a")

	stop()
	running.Wait()
	late := u.judge(t, u.detector, u.address)
	t.Logf("%.0f s; %s", time.Since(began).Seconds(), u.figures())
	t.Logf("the address of a cluster that does not serve was last given out %s after that was known", late.Round(time.Millisecond))
}

// serve makes a ReplicaSet and its Service at the federation, and waits until it has all its names.
func serve(t *testing.T, name string, replicas int32) {
	t.Helper()
	sets, services := s.fed.client.AppsV1().ReplicaSets(ns), s.fed.client.CoreV1().Services(ns)
	if _, err := sets.Create(t.Context(), replicaSet(name, replicas, nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return sets.Delete(ctx, name, background) })
	if _, err := services.Create(t.Context(), loadBalancer(name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return services.Delete(ctx, name, background) })
	named(t, name, names...)
}

func startInUse(t *testing.T) *inUse {
	t.Helper()
	const name = "used"
	serve(t, name, 6)
	u := &inUse{
		stub:     &stub{name: strings.Join([]string{name, ns, s.env["FEDERATION_NAME"], "svc", s.env["DNS_ZONE"]}, ".")},
		detector: &detector{out: map[string][]span{}, surely: map[string]time.Time{}}, address: map[string]string{},
	}
	for member, c := range s.members {
		service, err := c.client.CoreV1().Services(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		u.address[member] = service.Status.LoadBalancer.Ingress[0].IP
	}
	kubeconfig := dnsKubeconfig(t)
	for _, log := range []string{"federation-dns-1", "federation-dns-2"} {
		n := startNameServer(t, kubeconfig, log)
		u.pair, u.servers = append(u.pair, n), append(u.servers, n.dns)
		n.ready(t)
	}
	u.namedAll(t)
	return u
}

func (u *inUse) namedAll(t *testing.T) time.Duration {
	t.Helper()
	return u.named(t, names...)
}

// lose loses a member, and has it back.
func (u *inUse) lose(t *testing.T, member string, begin func() (end func())) {
	t.Helper()
	lost := time.Now()
	end := begin()
	u.named(t, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == member })...)
	gone := time.Now()
	t.Logf("%s: known to be lost after %.2f s, out of DNS after %.2f s", member, u.last(t, member).Sub(lost).Seconds(), gone.Sub(lost).Seconds())
	end()
	back := time.Now()
	u.namedAll(t)
	t.Logf("%s: in DNS again %.2f s after its return", member, time.Since(back).Seconds())
}

// killFederation kills the federation, and has it back. Meanwhile a server is started anew, which can know nothing; and a
// member hangs while the federation starts.
func (u *inUse) killFederation(t *testing.T) {
	t.Helper()
	s.signal(t, syscall.SIGKILL, "federation.pid")
	u.pair[0].end(t, syscall.SIGTERM)
	u.pair[0].process = u.pair[0].run()
	eventually(t, 30*time.Second, func() string { // it answers, and has nothing to say
		if rcode, _ := ask(u.pair[0].dns, u.name, dns.TypeA); rcode != "SERVFAIL" {
			return rcode + ", want SERVFAIL"
		}
		return ""
	})
	started := make(chan error, 1)
	go func() { started <- s.up() }() // it returns when all members are ready
	eventually(t, 60*time.Second, func() string {
		_, err := s.fed.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return errText(err)
	})
	resume, hung := s.stop(t, beyond), time.Now()
	u.named(t, "east-a", "west-a")
	t.Logf("%s hung when the federation started: out of DNS %.1f s after that", beyond, time.Since(hung).Seconds())
	resume()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	u.namedAll(t)
}

// drain empties a cluster, and undoes it.
func (u *inUse) drain(t *testing.T, member string) {
	t.Helper()
	others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == member })
	for _, verb := range []struct {
		args []string
		want []string
	}{{[]string{"drain", member, "--ttl=1s", "--force", "--timeout=180s"}, others}, {[]string{"undrain", member, "--timeout=180s"}, names}} {
		began := time.Now()
		if out, err := s.kubectl(t, "", append([]string{"federation"}, verb.args...)...); err != nil {
			t.Fatalf("%v: %v\n%s", verb.args, err, out)
		}
		u.named(t, verb.want...)
		t.Logf("%s %s took %.1f s", verb.args[0], member, time.Since(began).Seconds())
	}
}

// up starts what does not run; flags are more of the federation's.
func up(t *testing.T, flags ...string) {
	t.Helper()
	if err := s.up(flags...); err != nil {
		t.Fatal(err)
	}
}
