package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"federation/hack/manifests"
)

// The manifest of the DaemonSet is valid, and sufficient for the agent to serve a node: the account's permissions, the
// capabilities, a read-only root with nothing but the program (and for iptables the programs of this machine), and the
// mounts.
func TestRightsOfTheDaemonSet(t *testing.T) {
	c := controlPlaneOf(t)
	d := apply(t, c)
	token, err := c.kube.CoreV1().ServiceAccounts(d.Namespace).CreateToken(t.Context(), d.Spec.Template.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for mode, more := range map[string][]string{"nftables": nil, "iptables nft": nil, legacy: {"NET_RAW"}} {
		t.Run(mode, func(t *testing.T) {
			mode, backend, viaIptables := strings.Cut(mode, " ")
			s := newSite(t, mode)
			client, here, there := s.Nodes[0].Pod(t, "client"), s.Nodes[0].Pod(t, "here"), s.Nodes[1].Pod(t, "there")
			here.ServeHTTP(t, 8080)
			there.ServeHTTP(t, 8080)
			vip := s.service("confined-" + mode + backend)
			s.endpoints("confined-"+mode+backend, here)
			root := containerRoot(t, c, token.Status.Token, viaIptables)

			run := func(args ...string) *exec.Cmd {
				cmd := asContainer(d, root, append(capabilities(d), more...))
				cmd.Args = append(cmd.Args, "--proxy-mode="+mode)
				if viaIptables {
					cmd.Args = append(cmd.Args, "--iptables-backend="+backend)
				} else { // it is ready when it has seen the Lease
					cmd.Args = append(cmd.Args, "--blackhole-lease=federation-system/failover-drill")
				}
				cmd.Args = append(cmd.Args, args...)
				return s.begin(cmd)
			}
			agent := run()
			s.arrives(client, vip, here)
			s.wellProbed(d)
			s.endpoints("confined-"+mode+backend, there)
			s.arrives(client, vip, there)
			s.end(agent, syscall.SIGTERM)
			s.sysctlsWereSet()
			if err := run("--cleanup").Wait(); err != nil {
				t.Errorf("--cleanup: %v", err)
			}
			if _, err := client.Get(vip); err == nil {
				t.Error("the Service is reached after --cleanup")
			}
			without := asContainer(d, root, nil)
			var out bytes.Buffer
			without.Stderr, without.Args = &out, append(without.Args, "--proxy-mode=nftables")
			if err := s.Nodes[0].Do(without.Run); err == nil || !strings.Contains(out.String(), "CAP_NET_ADMIN") || strings.Count(out.String(), "\n") > 1 {
				t.Errorf("without capabilities: %v %s", err, out.String())
			}
		})
	}
}

// sysctlsWereSet fails unless the agent set one on the first node.
func (s *site) sysctlsWereSet() {
	s.Helper()
	if err := s.Nodes[0].Do(func() error {
		text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established")
		if err == nil && strings.TrimSpace(string(text)) != "86400" {
			err = errors.New("nf_conntrack_tcp_timeout_established was not set: " + string(text))
		}
		return err
	}); err != nil {
		s.Error(err)
	}
}

// wellProbed fails unless the container's probes succeed on the first node.
func (s *site) wellProbed(d *appsv1.DaemonSet) {
	s.Helper()
	c := d.Spec.Template.Spec.Containers[0]
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
		eventually(s.T, probe.HTTPGet.Path, func() error {
			var c net.Conn
			err := s.Nodes[0].Do(func() (err error) {
				c, err = net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", probe.HTTPGet.Port.IntValue()))
				return err
			})
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := fmt.Fprintf(c, "GET %s HTTP/1.0\r\n\r\n", probe.HTTPGet.Path); err != nil {
				return err
			}
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err == nil && answer.StatusCode != http.StatusOK {
				err = errors.New(answer.Status)
			}
			return err
		})
	}
}

// apply applies the manifests, and returns the DaemonSet.
func apply(t *testing.T, c *controlPlane) *appsv1.DaemonSet {
	t.Helper()
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	d := &appsv1.DaemonSet{}
	both := slices.Concat(manifests.NodeAgent, []byte("---\n"), manifests.NodeAgentBlackhole)
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(both), 4096); ; {
		obj := &unstructured.Unstructured{}
		if err := documents.Decode(&obj.Object); err == io.EOF {
			return d
		} else if err != nil {
			t.Fatal(err)
		}
		plural, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
		var api dynamic.ResourceInterface = client.Resource(plural)
		if obj.GetNamespace() != "" {
			api = client.Resource(plural).Namespace(obj.GetNamespace())
		}
		if _, err := api.Create(t.Context(), obj, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Fatal(err)
		}
		if obj.GetKind() == "DaemonSet" {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, d); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func capabilities(d *appsv1.DaemonSet) (names []string) {
	for _, c := range d.Spec.Template.Spec.Containers[0].SecurityContext.Capabilities.Add {
		names = append(names, string(c))
	}
	return names
}

// containerRoot makes the files in a container of the agent.
func containerRoot(t *testing.T, c *controlPlane, token string, withPrograms bool) string {
	t.Helper()
	root, account := t.TempDir(), "var/run/secrets/kubernetes.io/serviceaccount"
	for _, dir := range []string{"proc", "node/sys/net", account, "run/federation-nodeagent"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	linked, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	if linked.Section(".interp") != nil {
		t.Fatal("the root is empty but for the program, which needs shared libraries: test with CGO_ENABLED=0, as make does")
	}
	for file, content := range map[string][]byte{
		"federation-nodeagent": program, account + "/token": []byte(token), account + "/ca.crt": c.config.CAData, "run/xtables.lock": nil,
	} {
		if err := os.WriteFile(filepath.Join(root, file), content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if withPrograms {
		for _, dir := range []string{"usr", "etc"} {
			if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, link := range []string{"bin", "sbin", "lib", "lib64"} {
			if err := os.Symlink("usr/"+link, filepath.Join(root, link)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

// asContainer returns the agent as the DaemonSet's container.
func asContainer(d *appsv1.DaemonSet, root string, capabilities []string) *exec.Cmd {
	c := d.Spec.Template.Spec.Containers[0]
	cmd := exec.Command(os.Args[0])
	for _, arg := range c.Args {
		if !strings.HasPrefix(arg, "--proxy-mode=") {
			cmd.Args = append(cmd.Args, strings.ReplaceAll(arg, "$(NODE_NAME)", "m-node-1"))
		}
	}
	host, port, _ := net.SplitHostPort(strings.TrimPrefix(shared.config.Host, "https://"))
	cmd.Env = []string{asAgent + "=confined", "CONFINED_IN=" + root, "CAPABILITIES=" + strings.Join(capabilities, " "),
		"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port, "PATH=/usr/sbin:/usr/bin"}
	return cmd
}
