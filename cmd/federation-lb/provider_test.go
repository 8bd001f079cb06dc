package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"federation/controllers/lbprovider"
	"federation/controllers/lbprovider/plan"
	"federation/hack/forward"
	"federation/hack/manifests"
	"federation/nodeagent/nettest"
)

// asProgram in the environment has the test's binary be the program.
const asProgram = "FEDERATION_LB_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestFlagsOfTheProviderAreChecked(t *testing.T) {
	all := []string{"provider", "--kubeconfig", "/none", "--interface", "lo", "--pools", "192.0.2.0/24"}
	for want, args := range map[string][]string{
		"all of them are required":           {"provider", "--kubeconfig", "/none"},
		`--pools "192.0.2.1": must be`:       {"provider", "--kubeconfig", "/none", "--interface", "lo", "--pools", "192.0.2.1"},
		`--pools "127.0.0.0/8": must be`:     {"provider", "--kubeconfig", "/none", "--interface", "lo", "--pools", "127.0.0.0/8"},
		"must not overlap with 192.0.2.0/24": append(all, "--pools", "192.0.2.128/25"),
		`--load-balancer-class "x"`:          append(all, "--load-balancer-class", "x"),
		`--lease-namespace "A"`:              append(all, "--lease-namespace", "A"),
		`--metrics-bind-address "here"`:      append(all, "--metrics-bind-address", "here"),
	} {
		if _, err := output(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", args, err, want)
		}
	}
}

// member is a real cluster, two nodes of which are hosts of a rig that run the node agent, and machines beside them.
type member struct {
	*testing.T
	*nettest.Rig
	kube                kubernetes.Interface
	process             *os.Process
	address             string // of the API server
	kubeconfig, provide string // files of an administrator, and of providers
	machines            map[string]*nettest.Host
}

const programs = "../../_output/bin/"

func newMember(t *testing.T) *member {
	m := &member{T: t, Rig: nettest.New(t), machines: map[string]*nettest.Host{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.address = l.Addr().String()
	_, port, _ := net.SplitHostPort(m.address)
	l.Close()
	dir := t.TempDir()
	m.kubeconfig, m.provide = filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "provider.kubeconfig")
	cmd := exec.Command(programs+"member", "--name=m", "--region=ra", "--zone=za", "--nodes=1", "--lb-cidr=203.0.113.0/24", "--data-dir="+dir, "--port="+port)
	if err := cmd.Start(); err != nil {
		t.Fatalf("make build makes it: %v", err)
	}
	m.process = cmd.Process
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	m.eventually("the API server is there", func() error {
		config, err := clientcmd.BuildConfigFromFlags("", m.kubeconfig)
		if err != nil {
			return err
		}
		config.QPS = -1
		if m.kube, err = kubernetes.NewForConfig(config); err == nil {
			_, err = m.kube.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		}
		return err
	})
	m.rights()
	for i, n := range m.Nodes {
		m.node(i, n)
	}
	for i, name := range []string{"lb-a", "lb-b"} {
		m.machines[name] = m.Neighbour(t, name, 20+i)
		m.forward(m.machines[name])
	}
	return m
}

// rights makes the account of providers, and the file by which they log in.
func (m *member) rights() {
	for _, text := range bytes.Split(manifests.LoadBalancerProvider, []byte("\n---\n")) {
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
		if err != nil {
			m.Fatal(err)
		}
		if err := m.create(obj); err != nil {
			m.Fatal(err)
		}
	}
	token, err := m.kube.CoreV1().ServiceAccounts("kube-system").CreateToken(m.Context(), "federation-lb-provider", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		m.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(m.kubeconfig)
	if err != nil {
		m.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	if err := clientcmd.WriteToFile(*config, m.provide); err != nil {
		m.Fatal(err)
	}
}

func (m *member) create(obj runtime.Object) (err error) {
	switch o := obj.(type) {
	case *corev1.ServiceAccount:
		_, err = m.kube.CoreV1().ServiceAccounts(o.Namespace).Create(m.Context(), o, metav1.CreateOptions{})
	case *rbacv1.ClusterRole:
		_, err = m.kube.RbacV1().ClusterRoles().Create(m.Context(), o, metav1.CreateOptions{})
	case *rbacv1.ClusterRoleBinding:
		_, err = m.kube.RbacV1().ClusterRoleBindings().Create(m.Context(), o, metav1.CreateOptions{})
	case *rbacv1.Role:
		_, err = m.kube.RbacV1().Roles(o.Namespace).Create(m.Context(), o, metav1.CreateOptions{})
	case *rbacv1.RoleBinding:
		_, err = m.kube.RbacV1().RoleBindings(o.Namespace).Create(m.Context(), o, metav1.CreateOptions{})
	default:
		err = fmt.Errorf("%T", obj)
	}
	return err
}

// node has a host of the rig be a node of the cluster, with the node agent.
func (m *member) node(i int, n *nettest.Node) {
	m.Helper()
	nodes := m.kube.CoreV1().Nodes()
	made, err := nodes.Create(m.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}, metav1.CreateOptions{})
	if err != nil {
		m.Fatal(err)
	}
	m.eventually("a Node has its address", func() error {
		if made, err = nodes.Get(m.Context(), n.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		ready := func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}
		if !slices.ContainsFunc(made.Status.Conditions, ready) { // the member, which plays its kubelet, would write an address of its own after this one
			return fmt.Errorf("%s is not ready", n.Name)
		}
		made.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.V4.String()}, {Type: corev1.NodeInternalIP, Address: n.V6.String()}}
		_, err = nodes.UpdateStatus(m.Context(), made, metav1.UpdateOptions{})
		return err
	})
	m.forward(n.Host)
	m.begin(n.Host, exec.Command(programs+"federation-nodeagent", "--kubeconfig", m.kubeconfig, "--hostname-override", n.Name, "--proxy-mode", "nftables",
		"--cluster-cidr", nettest.ClusterV4.String(), "--conntrack-max-per-core", "0", "--lock-dir", m.TempDir()))
}

// forward lets a host reach the API server at the address that the kubeconfig has.
func (m *member) forward(h *nettest.Host) {
	var l net.Listener
	if err := h.Do(func() (err error) { l, err = net.Listen("tcp", m.address); return err }); err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { l.Close() })
	go forward.Serve(l, m.address)
}

// begin starts a program on a host, which ends with the test.
func (m *member) begin(h *nettest.Host, cmd *exec.Cmd) *exec.Cmd {
	m.Helper()
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := h.Do(cmd.Start); err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if m.Failed() {
			m.Logf("%s: %s\n%s", h.Name, cmd.Path, log.String())
		}
	})
	return cmd
}

// provider starts one on a machine.
func (m *member) provider(machine string) *exec.Cmd {
	m.Helper()
	cmd := exec.Command(os.Args[0], "provider", "--kubeconfig", m.provide, "--pools", pools, "--interface", "eth0", "--name", fmt.Sprintf("%s-%d", machine, time.Now().UnixNano()))
	cmd.Env = append(os.Environ(), asProgram+"=yes")
	return m.begin(m.machines[machine], cmd)
}

const pools = "192.0.2.64/30,2001:db8:0:2::40/126"

// service makes a Service.
func (m *member) service(name, class string, change ...func(*corev1.Service)) *corev1.Service {
	m.Helper()
	policy := corev1.IPFamilyPolicyPreferDualStack
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, IPFamilyPolicy: &policy, Ports: []corev1.ServicePort{{Port: 80}}}}
	if class != "" {
		s.Spec.LoadBalancerClass = &class
	}
	for _, c := range change {
		c(s)
	}
	made, err := m.kube.CoreV1().Services("default").Create(m.Context(), s, metav1.CreateOptions{})
	if err != nil {
		m.Fatal(err)
	}
	return made
}

func (m *member) get(name string) *corev1.Service {
	m.Helper()
	s, err := m.kube.CoreV1().Services("default").Get(m.Context(), name, metav1.GetOptions{})
	if err != nil {
		m.Fatal(err)
	}
	return s
}

// addressed waits until a Service has an address.
func (m *member) addressed(name string) netip.Addr {
	m.Helper()
	m.eventually(name+" has an address", func() error {
		if len(m.get(name).Status.LoadBalancer.Ingress) == 0 {
			return fmt.Errorf("none")
		}
		return nil
	})
	return netip.MustParseAddr(m.get(name).Status.LoadBalancer.Ingress[0].IP)
}

// endpoints gives a Service a pod on each node.
func (m *member) endpoints(service string, pods map[string]*nettest.Host) {
	name, port, protocol := "", int32(8080), corev1.ProtocolTCP
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}}}
	for node, pod := range pods {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{NodeName: &node, Addresses: []string{pod.V4.String()}})
	}
	if _, err := m.kube.DiscoveryV1().EndpointSlices("default").Create(m.Context(), slice, metav1.CreateOptions{}); err != nil {
		m.Fatal(err)
	}
}

func (m *member) eventually(what string, try func() error) {
	m.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			m.Fatalf("%s: %v", what, err)
		}
	}
}

// link sets a host's interface up or down.
func (m *member) link(h *nettest.Host, set func(netlink.Link) error) {
	m.Helper()
	if err := h.Do(func() error {
		eth0, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return set(eth0)
	}); err != nil {
		m.Fatal(err)
	}
}

// holder is the machine that has the Lease.
func (m *member) holder() string {
	lease, err := m.kube.CoordinationV1().Leases("kube-system").Get(m.Context(), lbprovider.LeaseName, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return strings.Join(strings.Split(*lease.Spec.HolderIdentity+"--", "-")[:2], "-")
}

// visitor asks over a new connection each 10 ms, and waits a second for each answer.
type visitor struct {
	mu      sync.Mutex
	asked   int
	failed  []time.Time
	servers map[string]int
	last    error
}

func (m *member) visit(ctx context.Context, to netip.AddrPort) *visitor {
	v := &visitor{servers: map[string]int{}}
	var running sync.WaitGroup
	m.Cleanup(running.Wait)
	running.Go(func() {
		for tick := time.NewTicker(10 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			running.Go(func() {
				got, err := m.Outside.GetWithin(to, time.Second)
				v.mu.Lock()
				defer v.mu.Unlock()
				if v.asked++; err != nil {
					v.last = err
					v.failed = append(v.failed, time.Now())
				} else {
					v.servers[got.Server]++
				}
			})
		}
	})
	return v
}

// phase does something, goes on for a while, and returns what failed from then on.
func (m *member) phase(v *visitor, what string, lasts time.Duration, do func()) (failed int, until time.Duration) {
	v.mu.Lock()
	v.asked, v.failed, v.servers, v.last = 0, nil, map[string]int{}, nil
	v.mu.Unlock()
	begin := time.Now()
	do()
	time.Sleep(lasts)
	v.mu.Lock()
	defer v.mu.Unlock()
	if failed = len(v.failed); failed > 0 {
		until = slices.MaxFunc(v.failed, time.Time.Compare).Sub(begin)
	}
	m.Logf("%-50s %4d of %4d failed, the last %v after it (%v); answered by %v", what, failed, v.asked, until.Round(10*time.Millisecond), v.last, v.servers)
	return failed, until
}

// TestProvider: a client outside reaches a Service of a real cluster through its address, while nodes, providers and the API go and come back.
func TestProvider(t *testing.T) {
	m := newMember(t)
	web := map[string]*nettest.Host{}
	for _, n := range m.Nodes {
		web[n.Name] = n.Pod(t, "web-"+n.Name)
		web[n.Name].ServeHTTP(t, 8080)
	}
	m.endpoints("web", web)
	m.endpoints("local", map[string]*nettest.Host{m.Nodes[1].Name: web[m.Nodes[1].Name]})
	m.service("web", plan.Class, func(s *corev1.Service) { // a node sends nothing on to another, which may be the one that is cut off
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	})
	m.service("foreign", "example.com/other", func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })
	clouds := m.service("clouds", "") // the member has a provider of its own for these
	providers := map[string]*exec.Cmd{"lb-a": m.provider("lb-a"), "lb-b": m.provider("lb-b")}
	vip := netip.AddrPortFrom(m.addressed("web"), 80)
	if in := m.get("web").Status.LoadBalancer.Ingress; vip.Addr() != netip.MustParseAddr("192.0.2.65") || in[0].IPMode == nil || *in[0].IPMode != corev1.LoadBalancerIPModeProxy {
		t.Errorf("status: %+v", in)
	}
	m.eventually("both nodes answer", func() error {
		seen := map[string]bool{}
		for range 20 {
			got, err := m.Outside.GetWithin(vip, time.Second)
			if err != nil {
				return err
			}
			seen[got.Server] = true
		}
		if len(seen) != 2 {
			return fmt.Errorf("only %v", seen)
		}
		return nil
	})
	m.localService()
	m.exhausted()
	if at := m.addressed("clouds"); !netip.MustParsePrefix("203.0.113.0/24").Contains(at) || len(m.get("foreign").Status.LoadBalancer.Ingress) > 0 {
		t.Errorf("%s has %s, and foreign %v", clouds.Name, at, m.get("foreign").Status)
	}
	m.faults(vip, providers)
}

// localService: with externalTrafficPolicy Local only nodes with an endpoint get connections.
func (m *member) localService() {
	m.service("local", plan.Class, func(s *corev1.Service) {
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		s.Annotations = map[string]string{plan.AddressesAnnotation: "192.0.2.66"}
	})
	at := netip.AddrPortFrom(m.addressed("local"), 80)
	m.eventually("local answers", func() error {
		_, err := m.Outside.GetWithin(at, time.Second)
		return err
	})
	for range 20 {
		if got, err := m.Outside.GetWithin(at, time.Second); err != nil || got.Server != "web-"+m.Nodes[1].Name {
			m.Errorf("local: %v, %v", got, err)
		}
	}
}

// exhausted: a Service for which no address is left gets an event that says so.
func (m *member) exhausted() {
	m.service("late", plan.Class, func(s *corev1.Service) { s.Spec.IPFamilyPolicy = nil })
	m.eventually("an event says that the pool is exhausted", func() error {
		events, err := m.kube.CoreV1().Events("default").List(m.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=late"})
		for _, e := range events.Items {
			if e.Reason == plan.ReasonExhausted {
				return nil
			}
		}
		return fmt.Errorf("%v %v", events.Items, err)
	})
}

// faults counts what a client sees of them.
func (m *member) faults(vip netip.AddrPort, providers map[string]*exec.Cmd) {
	ctx, stop := context.WithCancel(m.Context())
	defer stop()
	v := m.visit(ctx, vip)
	time.Sleep(time.Second)
	within := func(limit time.Duration) func(failed int, until time.Duration) {
		return func(failed int, until time.Duration) {
			if until > limit {
				m.Errorf("requests fail for %v, want at most %v", until, limit)
			}
		}
	}
	within(0)(m.phase(v, "nothing happens", 3*time.Second, func() {}))
	if failed, _ := m.phase(v, "a node is cut off", 8*time.Second, func() { m.link(m.Nodes[1].Host, netlink.LinkSetDown) }); failed > 300 {
		m.Errorf("%d requests failed: half of 800 fail if the node is not left out", failed)
	}
	within(3 * time.Second)(m.phase(v, "it is back", 5*time.Second, func() { m.link(m.Nodes[1].Host, netlink.LinkSetUp) }))
	first := m.holder()
	within(8 * time.Second)(m.phase(v, "the provider with the addresses is killed", 12*time.Second, func() { _ = providers[first].Process.Kill() }))
	second := m.holder()
	if first == second || second == "" {
		m.Errorf("%q has the Lease after %q was killed", second, first)
	}
	m.provider(first)
	time.Sleep(2 * time.Second)
	within(3 * time.Second)(m.phase(v, "the other one is ended by SIGTERM", 5*time.Second, func() { _ = providers[second].Process.Signal(syscall.SIGTERM) }))
	within(0)(m.phase(v, "the API server hangs", 10*time.Second, func() { _ = m.process.Signal(syscall.SIGSTOP) }))
	within(0)(m.phase(v, "it goes on", 5*time.Second, func() { _ = m.process.Signal(syscall.SIGCONT) }))
}
