package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/hack/forward"
	"federation/nodeagent/nettest"
	"federation/nodeagent/ruleset"
)

// asAgent makes the test's own program run as the agent: only a process can be killed.
const asAgent = "TEST_AS_AGENT"

func TestMain(m *testing.M) {
	switch os.Getenv(asAgent) {
	case "yes":
		main()
		return
	case "confined":
		confined()
	}
	code := m.Run()
	if shared != nil {
		shared.kill()
		_ = os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// site is a rig whose first node reaches a real kube-apiserver.
type site struct {
	*testing.T
	*nettest.Rig
	*controlPlane
	mode string // and, after a space, which kind of iptables
}

// The agent as a process on a node, with a real kube-apiserver: changes arrive, its death and the API server's go
// unnoticed, and it leaves nothing behind after a cleanup.
func TestAgentOnANode(t *testing.T) {
	for _, mode := range proxyModes() {
		t.Run(mode, func(t *testing.T) {
			s := newSite(t, mode)
			client, here, there := s.Nodes[0].Pod(t, "client"), s.Nodes[0].Pod(t, "here"), s.Nodes[1].Pod(t, "there")
			here.ServeHTTP(t, 8080)
			there.ServeHTTP(t, 8080)
			vip := s.service("web-" + mode)
			s.endpoints("web-"+mode, here)

			agent := s.serve()
			s.arrives(client, vip, here)
			s.endpoints("web-"+mode, there)
			s.arrives(client, vip, there)
			if out, err := s.second(); err == nil || !strings.Contains(string(out), "another federation-nodeagent serves this node") {
				t.Errorf("a second agent: %v %s", err, out)
			}
			trace := s.run("trace", "--from", client.V4.String(), "--to", vip.String())
			if want := "→ " + there.V4.String() + ":8080, 100.0 % of new connections, source address kept"; !strings.Contains(trace, want) {
				t.Errorf("trace says\n%swant %q in it", trace, want)
			}

			s.end(agent, syscall.SIGKILL)
			s.gets(client, vip, there)
			s.endpoints("web-"+mode, here)
			agent = s.serve()
			s.arrives(client, vip, here)
			s.end(agent, syscall.SIGTERM)
			s.gets(client, vip, here)
			s.run("--cleanup")
			if _, err := client.Get(vip); err == nil {
				t.Error("the Service is reached after --cleanup")
			}
		})
	}
}

// newSite makes a rig whose first node reaches the tests' control plane.
func newSite(t *testing.T, mode string) *site {
	t.Helper()
	s := &site{t, nettest.New(t), controlPlaneOf(t), mode}
	s.forward()
	return s
}

// forward lets the node reach the API server at the address that the kubeconfig has.
func (s *site) forward() {
	address := strings.TrimPrefix(s.config.Host, "https://")
	var l net.Listener
	if err := s.Nodes[0].Do(func() (err error) { l, err = net.Listen("tcp", address); return err }); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { l.Close() })
	go forward.Serve(l, address)
}

// service makes a Service without selector, with annotations, and returns its address.
func (s *site) service(name string, annotations ...string) netip.AddrPort {
	s.Helper()
	meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{ruleset.LabelManagedBy: "a-federation"}, Annotations: map[string]string{}}
	for i := 0; i < len(annotations); i += 2 {
		meta.Annotations[annotations[i]] = annotations[i+1]
	}
	made, err := s.kube.CoreV1().Services("default").Create(s.Context(), &corev1.Service{
		ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return netip.AddrPortFrom(netip.MustParseAddr(made.Spec.ClusterIP), 80)
}

// endpoints makes pods the endpoints of a Service.
func (s *site) endpoints(service string, pods ...*nettest.Host) {
	s.Helper()
	s.slice(service, map[string]string{discoveryv1.LabelServiceName: service}, at(pods...))
}

// scarce makes a pod the only ready one of two endpoints.
func (s *site) scarce(service string, pod, unready *nettest.Host) {
	s.Helper()
	both, no := at(pod, unready), false
	both[1].Conditions.Ready = &no
	s.slice(service, map[string]string{discoveryv1.LabelServiceName: service}, both)
}

func at(hosts ...*nettest.Host) (out []discoveryv1.Endpoint) {
	for _, h := range hosts {
		out = append(out, discoveryv1.Endpoint{Addresses: []string{h.V4.String()}})
	}
	return out
}

// otherCluster gives a Service a host as load balancer of another cluster, as the federation does.
func (s *site) otherCluster(service string, far *nettest.Host) {
	s.Helper()
	s.slice(service+"-far", map[string]string{ruleset.LabelManagedBy: "a-federation", ruleset.LabelRemoteService: service, ruleset.LabelSourceCluster: "far"}, at(far))
}

func (s *site) slice(slice string, labels map[string]string, endpoints []discoveryv1.Endpoint) {
	s.Helper()
	name, port, protocol := "", int32(8080), corev1.ProtocolTCP
	out := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: slice, Labels: labels},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
		Endpoints:   endpoints,
	}
	api := s.kube.DiscoveryV1().EndpointSlices("default")
	if _, err := api.Update(s.Context(), out, metav1.UpdateOptions{}); err != nil {
		if _, err = api.Create(s.Context(), out, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
	}
}

// command returns the agent's, or one of its commands.
func (s *site) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append(args, "--kubeconfig", s.kubeconfig, "--hostname-override", "m-node-1",
		"--cluster-cidr", nettest.ClusterV4.String(), "--nodeport-addresses", "0.0.0.0/0,::/0")...) // the Node has no address of the rig's
	if len(args) == 0 || args[0] == "--cleanup" {
		mode, backend, _ := strings.Cut(s.mode, " ")
		cmd.Args = append(cmd.Args, "--proxy-mode", mode, "--iptables-backend", cmp.Or(backend, "auto"))
	}
	cmd.Env = append(os.Environ(), asAgent+"=yes")
	return cmd
}

// run runs a command on the node to its end and returns its output.
func (s *site) run(args ...string) string {
	s.Helper()
	cmd := s.command(args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := s.Nodes[0].Do(cmd.Run); err != nil {
		s.Fatalf("%v: %v\n%s", args, err, out.String())
	}
	return out.String()
}

// second runs one more agent on the node.
func (s *site) second() (out []byte, err error) {
	err = s.Nodes[0].Do(func() (err error) { out, err = s.command().CombinedOutput(); return err })
	return out, err
}

func (s *site) serve() *exec.Cmd { return s.begin(s.command()) }

// begin starts a command on the node, which ends with the test.
func (s *site) begin(cmd *exec.Cmd) *exec.Cmd {
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := s.Nodes[0].Do(cmd.Start); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if s.Failed() {
			s.Log(log.String())
		}
	})
	return cmd
}

func (s *site) end(agent *exec.Cmd, by os.Signal) {
	if err := agent.Process.Signal(by); err != nil {
		s.Fatal(err)
	}
	_ = agent.Wait() // by SIGKILL it ends with an error
}

func (s *site) arrives(client *nettest.Host, to netip.AddrPort, server *nettest.Host) {
	s.Helper()
	start := time.Now()
	eventually(s.T, server.Name+" answers", func() error { return s.ask(client, to, server) })
	s.Logf("%s: live after %v", s.mode, time.Since(start).Round(time.Millisecond))
}

func (s *site) gets(client *nettest.Host, to netip.AddrPort, server *nettest.Host) {
	s.Helper()
	if err := s.ask(client, to, server); err != nil {
		s.Error(err)
	}
}

func (s *site) ask(client *nettest.Host, to netip.AddrPort, server *nettest.Host) error {
	got, err := client.Get(to)
	if err == nil && got.Server != server.Name {
		err = fmt.Errorf("%s answers, want %s", got.Server, server.Name)
	}
	return err
}

func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
