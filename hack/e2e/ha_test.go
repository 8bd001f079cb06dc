package e2e

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
	"federation/dnsprovider/servertest"
)

// pair is a federation of two halves on one external etcd, over members that another federation has too.
type pair struct {
	name, dir string
	etcd      []string // the flags
	halves    []*half
	processes []*process
}

// half can do alone what the pair does.
type half struct {
	dataDir, dns string
	metrics      string // of the controllers, where they are a process of their own
	fed          cluster
	controllers  *process // in the layout "serve" its apiserver too
	run          func() *process
}

func (h *half) kubeconfig() string { return filepath.Join(h.dataDir, "admin.kubeconfig") }

var haMembers = []string{"east-a", "west-a"}

// TestALeaderIsKilled writes through one apiserver, reads through the other, and kills the process that
// does the work amid writes: the other one takes over, and the names answer all along.
func TestALeaderIsKilled(t *testing.T) {
	for _, layout := range []string{"parts", "serve"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			p := &pair{name: "ha-" + layout, dir: filepath.Join(s.dir, "ha-"+layout)}
			if err := os.RemoveAll(p.dir); err != nil {
				t.Fatal(err)
			}
			p.etcd = startEtcd(t, p.dir) // outlives the processes
			t.Cleanup(func() { p.end(t) })
			p.start(t, layout)
			p.join(t)
			want := p.apply(t)
			p.killLeader(t, want)
			p.endLeader(t)
		})
	}
}

func (p *pair) start(t *testing.T, layout string) {
	t.Helper()
	for i := range 2 {
		h := &half{dataDir: filepath.Join(p.dir, strconv.Itoa(i)), dns: "127.0.0.1:" + freePort(t)}
		if i > 0 { // what the first one made, the second one must have before it starts
			if err := os.CopyFS(filepath.Join(h.dataDir, "pki"), os.DirFS(filepath.Join(p.halves[0].dataDir, "pki"))); err != nil {
				t.Fatal(err)
			}
		}
		server := append([]string{"--data-dir=" + h.dataDir, "--secure-port=" + freePort(t)}, p.etcd...)
		controllers := []string{"--name=ha", "--dns-zone=ha.test", "--dns-bind-address=" + h.dns}
		log := p.name + "-" + strconv.Itoa(i)
		if layout == "serve" {
			h.run = func() *process { return p.process(t, log, slices.Concat([]string{"serve"}, server, controllers)...) }
		} else {
			p.process(t, log+"-apiserver", append([]string{"apiserver"}, server...)...)
			own := "--kubeconfig=" + filepath.Join(h.dataDir, "controllers.kubeconfig")
			h.metrics = "127.0.0.1:" + freePort(t)
			controllers = append(controllers, own, "--metrics-bind-address="+h.metrics)
			h.run = func() *process { return p.process(t, log, append([]string{"controllers"}, controllers...)...) }
		}
		p.halves = append(p.halves, h)
		p.startHalf(t, h, layout)
	}
}

// startHalf returns when its API is ready, and its controllers run.
func (p *pair) startHalf(t *testing.T, h *half, layout string) {
	t.Helper()
	if layout == "serve" {
		h.controllers = h.run()
	}
	eventually(t, 60*time.Second, func() string {
		fed, err := connect(h.kubeconfig())
		if err != nil {
			return err.Error()
		}
		h.fed = fed
		_, err = fed.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return errText(err)
	})
	if layout != "serve" {
		h.controllers = h.run()
	}
}

// join makes members of another federation members of this one too, and has them leave in the end.
func (p *pair) join(t *testing.T) {
	t.Helper()
	for _, member := range haMembers {
		args := func(verb string) []string {
			return []string{verb, member, "--kubeconfig", p.halves[0].kubeconfig(), "--member-kubeconfig", filepath.Join(s.dir, "members", member, "kubeconfig")}
		}
		if out, err := exec.Command(filepath.Join(s.root, "_output", "bin", "kubectl-federation"), args("join")...).CombinedOutput(); err != nil {
			t.Fatalf("join %s: %v\n%s", member, err, out)
		}
		t.Cleanup(func() {
			if out, err := exec.Command(filepath.Join(s.root, "_output", "bin", "kubectl-federation"), append(args("unjoin"), "--yes")...).CombinedOutput(); err != nil {
				t.Errorf("unjoin %s: %v\n%s", member, err, out)
			}
		})
	}
}

func (p *pair) host() string { return p.name + "." + ns + ".ha.svc.ha.test" }

// apply writes through the first half a workload with its name in DNS, and waits until it stands. It
// returns the addresses.
func (p *pair) apply(t *testing.T) (addresses []string) {
	t.Helper()
	kube := p.halves[0].fed.client
	if _, err := kube.AppsV1().ReplicaSets(ns).Create(t.Context(), replicaSet(p.name, 6, nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := kube.CoreV1().Services(ns).Create(t.Context(), loadBalancer(p.name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.write(t, 0, "before", 20)
	t.Cleanup(func() { p.deleteAll(t) })
	eventually(t, 60*time.Second, func() string {
		rs, err := p.halves[1].fed.client.AppsV1().ReplicaSets(ns).Get(t.Context(), p.name, metav1.GetOptions{})
		if err != nil || rs.Status.ReadyReplicas != 6 {
			return fmt.Sprintf("read through the other apiserver: %v, %+v", err, rs.Status)
		}
		if addresses = p.addresses(t); len(addresses) != len(haMembers) {
			return fmt.Sprintf("addresses %v", addresses)
		}
		return ""
	})
	for _, h := range p.halves {
		eventually(t, 30*time.Second, func() string { return p.answer(h, addresses) })
	}
	return addresses
}

// addresses are those that the members gave the Service.
func (p *pair) addresses(t *testing.T) (out []string) {
	for _, member := range haMembers {
		service, err := s.members[member].client.CoreV1().Services(ns).Get(t.Context(), p.name, metav1.GetOptions{})
		if err == nil && len(service.Status.LoadBalancer.Ingress) == 1 {
			out = append(out, service.Status.LoadBalancer.Ingress[0].IP)
		}
	}
	slices.Sort(out)
	return out
}

// answer asks the DNS server of a half, and says what is wrong with the answer.
func (p *pair) answer(h *half, want []string) string {
	rcode, got := ask(h.dns, p.host(), dns.TypeA)
	if slices.Sort(got); rcode != "NOERROR" || !slices.Equal(got, want) {
		return fmt.Sprintf("DNS at %s: %s %v, want %v", h.dns, rcode, got, want)
	}
	return ""
}

// write creates ConfigMaps through a half.
func (p *pair) write(t *testing.T, half int, when string, n int) {
	t.Helper()
	for i := range n {
		c := configMap(fmt.Sprintf("%s-%s-%d", p.name, when, i))
		if _, err := p.halves[half].fed.client.CoreV1().ConfigMaps(ns).Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// held are the ConfigMaps of this federation in a member, by name.
func (p *pair) held(t *testing.T, member string) map[string]types.UID {
	t.Helper()
	list, err := s.members[member].client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{LabelSelector: v1beta1.ManagedByLabel})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]types.UID{}
	for _, c := range list.Items {
		if strings.HasPrefix(c.Name, p.name+"-") {
			out[c.Name] = c.UID
		}
	}
	return out
}

func (p *pair) hold(t *testing.T, n int) time.Duration {
	t.Helper()
	return eventually(t, 60*time.Second, func() string {
		for _, member := range haMembers {
			if got := len(p.held(t, member)); got != n {
				return fmt.Sprintf("%s holds %d ConfigMaps, want %d", member, got, n)
			}
		}
		return ""
	})
}

// leader is the half whose process the Lease names.
func (p *pair) leader(t *testing.T) int {
	t.Helper()
	leads := -1
	eventually(t, 60*time.Second, func() string {
		for i, h := range p.halves {
			lease, err := h.fed.client.CoordinationV1().Leases(v1beta1.FederationNamespace).Get(t.Context(), "federation-controllers", metav1.GetOptions{})
			if err != nil || lease.Spec.HolderIdentity == nil {
				continue // this half is the one that was killed, or nobody leads
			}
			for i, h := range p.halves {
				if strings.Contains(*lease.Spec.HolderIdentity, fmt.Sprintf("-%d-", h.controllers.Process.Pid)) {
					leads = i
					return ""
				}
			}
			return fmt.Sprintf("half %d: %s leads, which is none of ours", i, *lease.Spec.HolderIdentity)
		}
		return "nobody leads"
	})
	return leads
}

func (p *pair) killLeader(t *testing.T, addresses []string) {
	t.Helper()
	p.hold(t, 20)
	before := map[string]map[string]types.UID{}
	for _, member := range haMembers {
		before[member] = p.held(t, member)
	}
	leads := p.leader(t)
	other := 1 - leads
	stop := p.watch(p.halves[other], addresses)
	p.halves[leads].controllers.kill(t)
	killed := time.Now()
	p.write(t, other, "after", 20)
	p.hold(t, 40)
	t.Logf("%s: what was written after the leader's death was in all members %.1f s after it", p.name, time.Since(killed).Seconds())
	eventually(t, 30*time.Second, func() string { // who takes the shards over is faster
		if now := p.leader(t); now != other {
			return fmt.Sprintf("half %d leads, want %d", now, other)
		}
		return ""
	})
	p.halves[other].measures(t)
	for _, bad := range stop() {
		t.Error(bad)
	}
	for member, was := range before {
		now := p.held(t, member)
		maps.DeleteFunc(now, func(name string, _ types.UID) bool { return was[name] == "" })
		if !maps.Equal(was, now) {
			t.Errorf("%s: copies were made anew: %v, before %v", member, now, was)
		}
	}
	p.replicas(t)
	p.halves[leads].controllers = p.halves[leads].run()
	took := eventually(t, 60*time.Second, func() string { return p.answer(p.halves[leads], addresses) })
	t.Logf("%s: the one that was killed answered DNS again %.1f s after its start", p.name, took.Seconds())
}

// endLeader asks the process that leads to end: it gives its Lease back, and the other takes over at once.
func (p *pair) endLeader(t *testing.T) {
	t.Helper()
	leads := p.leader(t)
	old := p.halves[leads].controllers
	if err := old.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	p.write(t, 1-leads, "last", 1)
	p.hold(t, 41)
	t.Logf("%s: what was written after the leader was asked to end was in all members %.1f s after it", p.name, time.Since(ended).Seconds())
	<-old.ended
	t.Logf("%s: it ended %.1f s after it was asked to, at most", p.name, time.Since(ended).Seconds())
	p.halves[leads].controllers = p.halves[leads].run()
	eventually(t, 60*time.Second, func() string {
		_, err := p.halves[0].fed.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return errText(err)
	})
}

// measures checks that the half that leads says so in its metrics.
func (h *half) measures(t *testing.T) {
	t.Helper()
	ask := func() ([]byte, error) {
		return h.fed.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	}
	if h.metrics != "" {
		ask = func() ([]byte, error) {
			answer, err := http.Get("http://" + h.metrics + "/metrics")
			if err != nil {
				return nil, err
			}
			defer answer.Body.Close()
			return io.ReadAll(answer.Body)
		}
	}
	got, err := ask()
	for _, member := range haMembers {
		if want := fmt.Sprintf("\nfederation_cluster_ready{cluster=%q} 1\n", member); err != nil || !strings.Contains(string(got), want) {
			t.Errorf("metrics lack %s (%v)", want, err)
		}
	}
}

// replicas checks that there are neither more nor fewer than were asked for.
func (p *pair) replicas(t *testing.T) {
	t.Helper()
	total := 0
	for _, member := range haMembers {
		pods, err := s.members[member].client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + p.name})
		if err != nil {
			t.Fatal(err)
		}
		total += len(pods.Items)
	}
	if total != 6 {
		t.Errorf("%d pods, want 6", total)
	}
}

// watch asks DNS all the time until it is stopped, and returns what was not as it should be.
func (p *pair) watch(h *half, want []string) (stop func() []string) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var bad []string
	wg.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			if wrong := p.answer(h, want); wrong != "" && len(bad) < 3 {
				bad = append(bad, wrong)
			}
		}
	})
	return func() []string {
		cancel()
		wg.Wait()
		return bad
	}
}

// deleteAll deletes through one half, and waits until the other one and the members have nothing.
func (p *pair) deleteAll(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	kube, labelled := p.halves[0].fed.client, metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"}
	err := kube.CoreV1().ConfigMaps(ns).DeleteCollection(ctx, background, labelled)
	for _, e := range []error{err, kube.CoreV1().Services(ns).Delete(ctx, p.name, background), kube.AppsV1().ReplicaSets(ns).Delete(ctx, p.name, background)} {
		if e != nil {
			t.Error(e)
		}
	}
	for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		left, err := p.halves[1].fed.client.CoreV1().ConfigMaps(ns).List(ctx, labelled)
		if err != nil || len(left.Items) > 0 {
			continue
		}
		_, err = p.halves[1].fed.client.AppsV1().ReplicaSets(ns).Get(ctx, p.name, metav1.GetOptions{})
		if err != nil {
			break
		}
	}
	if ctx.Err() != nil {
		t.Error("objects are left")
	}
}

// startEtcd runs an etcd that wants client certificates, and returns the flags to reach it.
func startEtcd(t *testing.T, dir string) []string {
	t.Helper()
	files, err := pki.Ensure(filepath.Join(dir, "etcd-pki"), pki.Request{Server: "https://unused", Hosts: []string{"127.0.0.1"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c := embed.NewConfig()
	c.Dir = filepath.Join(dir, "etcd")
	c.ListenClientUrls = []url.URL{{Scheme: "https", Host: "127.0.0.1:0"}}
	c.ListenPeerUrls = nil
	c.ClientTLSInfo = transport.TLSInfo{CertFile: files.ServingCert, KeyFile: files.ServingKey, TrustedCAFile: files.CA, ClientCertAuth: true}
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	server, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return []string{"--etcd-servers=https://" + server.Clients[0].Addr().String(), "--etcd-cafile=" + files.CA,
		"--etcd-certfile=" + files.AdminCert, "--etcd-keyfile=" + files.AdminKey}
}

func freePort(t *testing.T) string { return strconv.Itoa(servertest.FreePort(t)) }

// process is one of ours. One that is not killed must end well when it is asked to.
type process struct {
	*exec.Cmd
	log    string
	ended  chan struct{}
	killed bool
}

func (p *pair) process(t *testing.T, log string, args ...string) *process {
	t.Helper()
	one := startProcess(t, "federation", log, args...)
	p.processes = append(p.processes, one)
	return one
}

// startProcess runs one of our programs with a log of that name.
func startProcess(t *testing.T, program, name string, args ...string) *process {
	t.Helper()
	log := filepath.Join(s.dir, "logs", name+".log")
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() // the process has its own handle
	one := &process{Cmd: exec.Command(filepath.Join(s.root, "_output", "bin", program), args...), log: log, ended: make(chan struct{})}
	one.Stdout, one.Stderr = out, out
	if err := one.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = one.Wait() // ProcessState tells
		close(one.ended)
	}()
	return one
}

func (one *process) kill(t *testing.T) {
	t.Helper()
	one.killed = true
	if err := one.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-one.ended
}

// end ends those that were started last first: controllers before their apiserver.
func (p *pair) end(t *testing.T) {
	t.Helper()
	for _, one := range slices.Backward(p.processes) {
		began := time.Now()
		_ = one.Process.Signal(syscall.SIGTERM) // fails when it has ended
		select {
		case <-one.ended:
		case <-time.After(30 * time.Second):
			t.Errorf("it does not end; see %s", one.log)
			one.kill(t)
		}
		t.Logf("%s ended in %.1f s", filepath.Base(one.log), time.Since(began).Seconds())
		if !one.killed && !one.ProcessState.Success() {
			said, _ := os.ReadFile(one.log)
			t.Errorf("%v; %s ends with\n%s", one.ProcessState, one.log, said[max(0, len(said)-4096):])
		}
	}
}
