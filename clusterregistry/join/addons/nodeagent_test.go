package addons

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestNodeAgentIsFilledIn(t *testing.T) {
	a := &NodeAgent{Image: "registry.test/agent:1@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", Mode: "iptables", Args: []string{"--cluster-cidr=10.180.0.0/14"}}
	c := a.daemonSet(t, "https://[2001:db8::1]:6443").Spec.Template.Spec.Containers[0]
	for _, want := range []string{"--proxy-mode=iptables", "--cluster-cidr=10.180.0.0/14", "--hostname-override=$(NODE_NAME)"} {
		if !slices.Contains(c.Args, want) {
			t.Errorf("%s is not in %q", want, c.Args)
		}
	}
	if env := fmt.Sprint(c.Env); c.Image != a.Image || !strings.Contains(env, "{KUBERNETES_SERVICE_HOST 2001:db8::1 ") || !strings.Contains(env, "{KUBERNETES_SERVICE_PORT 6443 ") {
		t.Errorf("image %s, environment %s", c.Image, env)
	}
	a.Server = "api.example.com"
	if env := fmt.Sprint(a.daemonSet(t, "https://127.0.0.1:1").Spec.Template.Spec.Containers[0].Env); !strings.Contains(env, " api.example.com ") || !strings.Contains(env, " 443 ") {
		t.Errorf("environment %s", env)
	}
}

// The Go runtime keeps to a limit that is below that of the container; and there is a policy for the pods' network.
func TestNodeAgentIsBounded(t *testing.T) {
	a := &NodeAgent{Image: "i", Mode: "nftables"}
	c := a.daemonSet(t, "https://127.0.0.1:1").Spec.Template.Spec.Containers[0]
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
	if i < 0 {
		t.Fatal("no GOMEMLIMIT")
	}
	soft, err := resource.ParseQuantity(strings.TrimSuffix(c.Env[i].Value, "B"))
	if hard := c.Resources.Limits.Memory(); err != nil || soft.Value() > hard.Value()*9/10 || soft.Value() < hard.Value()/2 {
		t.Errorf("GOMEMLIMIT %s, %v; the limit is %s", c.Env[i].Value, err, hard)
	}
	objects, err := a.objects("https://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	i = slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "NetworkPolicy" })
	if i < 0 {
		t.Fatal("no NetworkPolicy")
	}
	p := &networkingv1.NetworkPolicy{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, p); err != nil {
		t.Fatal(err)
	}
	pod := a.daemonSet(t, "https://127.0.0.1:1").Spec.Template
	if !maps.Equal(p.Spec.PodSelector.MatchLabels, pod.Labels) || len(p.Spec.PolicyTypes) != 2 || len(p.Spec.Ingress)+len(p.Spec.Egress) > 0 {
		t.Errorf("%+v", p.Spec)
	}
}

// Its container has the permissions that it needs, and no more.
func TestNodeAgentIsNotPrivileged(t *testing.T) {
	for mode, want := range map[string][]corev1.Capability{"nftables": {"NET_ADMIN"}, "iptables": {"NET_ADMIN", "NET_RAW"}} {
		pod := (&NodeAgent{Image: "i", Mode: mode}).daemonSet(t, "https://127.0.0.1:1").Spec.Template.Spec
		s := pod.Containers[0].SecurityContext
		if s.Privileged != nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || !slices.Equal(s.Capabilities.Add, want) {
			t.Errorf("%s: %+v", mode, s)
		}
		if pod.HostPID || pod.HostIPC || len(pod.InitContainers) > 0 {
			t.Errorf("%s: %+v", mode, pod)
		}
	}
}

// If drills may blackhole the cluster, there is a Lease that they renew, and the agent gets its name and may read only
// that one.
func TestNodeAgentThatDrillsMayBlackhole(t *testing.T) {
	const flag = "--blackhole-lease=federation-system/failover-drill"
	a := &NodeAgent{Image: "i", Mode: "nftables"}
	if args := a.daemonSet(t, "https://127.0.0.1:1").Spec.Template.Spec.Containers[0].Args; slices.Contains(args, flag) {
		t.Errorf("without being asked: %q", args)
	}
	a.Blackhole = true
	if args := a.daemonSet(t, "https://127.0.0.1:1").Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, flag) {
		t.Errorf("%s is not in %q", flag, args)
	}
	objects, err := a.objects("https://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, u := range objects {
		found = append(found, u.GetKind()+" "+u.GetName())
		if u.GetKind() == "Role" {
			role := &rbacv1.Role{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, role); err != nil || len(role.Rules) != 1 ||
				!slices.Equal(role.Rules[0].ResourceNames, []string{"failover-drill"}) || !slices.Equal(role.Rules[0].Verbs, []string{"get", "list", "watch"}) {
				t.Errorf("%+v, %v", role.Rules, err)
			}
		}
	}
	for _, want := range []string{"Lease failover-drill", "Role federation-nodeagent-blackhole", "RoleBinding federation-nodeagent-blackhole", "DaemonSet federation-nodeagent", "ClusterRole federation-nodeagent"} {
		if !slices.Contains(found, want) {
			t.Errorf("%s is not among %q", want, found)
		}
	}
}

func TestNodeAgentIsNotInstalledBesideKubeProxy(t *testing.T) {
	a := &NodeAgent{}
	without, with := fake.NewSimpleClientset(), fake.NewSimpleClientset(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy"}})
	if err := a.refuseBesideKubeProxy(t.Context(), without); err != nil {
		t.Error(err)
	}
	if err := a.refuseBesideKubeProxy(t.Context(), with); err == nil || !strings.Contains(err.Error(), "kube-system/kube-proxy: delete that first") {
		t.Errorf("beside kube-proxy: %v", err)
	}
	a.Args = []string{"--scope=federated"}
	c := a.daemonSet(t, "https://127.0.0.1:1").Spec.Template.Spec.Containers[0]
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
		if port := probe.HTTPGet.Port.IntValue(); port != 10356 {
			t.Errorf("beside kube-proxy the port %d is asked, which is kube-proxy's", port)
		}
	}
	if err := a.refuseBesideKubeProxy(t.Context(), with); err != nil {
		t.Errorf("only what is federated, beside kube-proxy: %v", err)
	}
}

func TestTheNodeAgentBelievesTheFederation(t *testing.T) {
	for want, c := range map[string]struct {
		args []string
		info *v1beta1.Info
	}{
		"--federation-uid=u":                                       {nil, &v1beta1.Info{}},
		"--v=2 --federation-uid=u":                                 {[]string{"--v=2"}, nil},
		"--federation-uid=u --clusterset-ip-range=10.200.0.0/16":   {nil, &v1beta1.Info{ClusterSetIPRanges: "10.200.0.0/16"}},
		"--clusterset-ip-range=10.200.0.0/17 --federation-uid=u":   {[]string{"--clusterset-ip-range=10.200.0.0/17"}, &v1beta1.Info{ClusterSetIPRanges: "10.200.0.0/16"}},
		"--federation-uid=u,v --clusterset-ip-range=10.200.0.0/16": {[]string{"--federation-uid=u,v"}, &v1beta1.Info{ClusterSetIPRanges: "10.200.0.0/16"}},
	} {
		a := NodeAgent{Args: c.args}
		if a.serveFederation("u", c.info); strings.Join(a.Args, " ") != want {
			t.Errorf("arguments %q, want %q", a.Args, want)
		}
	}
}
