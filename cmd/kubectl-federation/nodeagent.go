package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	"federation/clusterregistry/join"
	"federation/hack/manifests"
)

// nodeAgent configures the installation of the node agent in a member.
type nodeAgent struct {
	with, blackhole     bool
	image, mode, server string
	args                []string
}

func (a *nodeAgent) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&a.with, "with-nodeagent", false, "install the node agent in the cluster, in place of kube-proxy")
	f.StringVar(&a.image, "nodeagent-image", "federation-nodeagent", "`IMAGE` of the node agent")
	f.StringVar(&a.mode, "nodeagent-mode", "nftables", "its --proxy-mode: nftables, or iptables, which needs an image that has iptables")
	f.StringVar(&a.server, "nodeagent-server", "", "`HOST:PORT` at which nodes reach the cluster's API server, no cluster IP; without it the one in the kubeconfig")
	f.BoolVar(&a.blackhole, "allow-blackhole", false, "let failover drills of the method Blackhole have the node agent drop what comes to Services from outside: it and the federation get the right to one Lease. Joining again without it takes that away")
	f.StringSliceVar(&a.args, "nodeagent-args", nil, "more `FLAGS` of it, such as --cluster-cidr=10.180.0.0/14, which it needs where Nodes have no spec.podCIDRs")
}

func (a *nodeAgent) check(f *pflag.FlagSet) error {
	if a.mode != "nftables" && a.mode != "iptables" {
		return fmt.Errorf("--nodeagent-mode %q: want nftables or iptables", a.mode)
	}
	for _, name := range []string{"nodeagent-image", "nodeagent-mode", "nodeagent-server", "nodeagent-args", "allow-blackhole"} {
		if f.Changed(name) && !a.with {
			return fmt.Errorf("--%s needs --with-nodeagent", name)
		}
	}
	if a.blackhole && (a.mode != "nftables" || a.besideProxy()) {
		return errors.New("--allow-blackhole needs --nodeagent-mode nftables, and no --nodeagent-args=--scope=federated: only there the kernel itself ends what nobody renews")
	}
	return nil
}

// serveFederation makes the agent believe what bears the federation's mark, and serve its clusterset IPs, unless its arguments say whose and which.
func (a *nodeAgent) serveFederation(uid string, info *v1beta1.Info) {
	a.add("--federation-uid=", uid)
	if info != nil {
		a.add("--clusterset-ip-range=", info.ClusterSetIPRanges)
	}
}

// add adds a flag that has a value and is not given yet.
func (a *nodeAgent) add(flag, value string) {
	if value != "" && !slices.ContainsFunc(a.args, func(arg string) bool { return strings.HasPrefix(arg, flag) }) {
		a.args = append(a.args, flag+value)
	}
}

// addToJoin adds the agent's installation to a join.
func (a *nodeAgent) addToJoin(ctx context.Context, member *rest.Config, core kubernetes.Interface, r *join.Request) (err error) {
	info, err := (&client.Federation{Kube: core}).Info(ctx)
	if err != nil {
		return err
	}
	system, err := core.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("at the federation: namespace %s, whose UID names the federation: %w", metav1.NamespaceSystem, err)
	}
	a.serveFederation(string(system.UID), info)
	if err := a.refuseBesideKubeProxy(ctx, r.Member); err != nil {
		return err
	}
	r.Also, err = a.objects(member.Host)
	return err
}

// refuseBesideKubeProxy keeps two service proxies from serving the same Services.
func (a *nodeAgent) refuseBesideKubeProxy(ctx context.Context, member kubernetes.Interface) error {
	_, err := member.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, "kube-proxy", metav1.GetOptions{})
	if apierrors.IsNotFound(err) || a.besideProxy() {
		return nil
	}
	if err == nil {
		err = errors.New("the cluster has the DaemonSet kube-system/kube-proxy: delete that first (its rules stay until the node agent's are there), or have the node agent serve beside it with --nodeagent-args=--scope=federated")
	}
	return err
}

// besideProxy reports whether the agent serves beside another service proxy.
func (a *nodeAgent) besideProxy() bool { return slices.Contains(a.args, "--scope=federated") }

// objects returns the objects to install; server is the URL of the API server in the kubeconfig.
func (a *nodeAgent) objects(server string) (out []*unstructured.Unstructured, err error) {
	if a.server != "" {
		server = "https://" + a.server
	}
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("--nodeagent-server %q: want HOST:PORT", a.server)
	}
	all := manifests.NodeAgent
	if a.blackhole {
		before, daemonSet, _ := bytes.Cut(all, []byte("---\napiVersion: apps/v1\n"))
		all = slices.Concat(before, []byte("---\n"), manifests.NodeAgentBlackhole, []byte("---\napiVersion: apps/v1\n"), daemonSet)
	}
	out, err = decodeObjects(all)
	for _, obj := range out {
		if obj.GetKind() == "DaemonSet" && err == nil {
			obj.Object, err = a.setFlags(obj.Object, u)
		}
	}
	return out, err
}

// decodeObjects returns the objects of a manifest.
func decodeObjects(manifest []byte) (out []*unstructured.Unstructured, err error) {
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		obj := &unstructured.Unstructured{}
		if err := documents.Decode(&obj.Object); err == io.EOF {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out = append(out, obj)
	}
}

// setFlags sets the flags in the DaemonSet.
func (a *nodeAgent) setFlags(content map[string]any, server *url.URL) (map[string]any, error) {
	d := &appsv1.DaemonSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, d); err != nil {
		return nil, err
	}
	pod := &d.Spec.Template.Spec
	c := &pod.Containers[0]
	c.Image = a.image
	for i, arg := range c.Args {
		if strings.HasPrefix(arg, "--proxy-mode=") {
			c.Args[i] = "--proxy-mode=" + a.mode
		}
	}
	if a.blackhole {
		c.Args = append(c.Args, v1beta1.BlackholeFlag+"="+v1beta1.FederationNamespace+"/"+v1beta1.DrillLease)
	}
	c.Args = append(c.Args, a.args...)
	port := server.Port()
	if port == "" {
		port = "443"
	}
	for i := range c.Env {
		switch c.Env[i].Name {
		case "KUBERNETES_SERVICE_HOST":
			c.Env[i].Value = server.Hostname()
		case "KUBERNETES_SERVICE_PORT":
			c.Env[i].Value = port
		}
	}
	if a.besideProxy() {
		for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
			probe.HTTPGet.Port = intstr.FromInt32(10356) // the other one has 10256
		}
	}
	if a.mode == "iptables" {
		viaIptables(pod)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	delete(content, "status")
	return content, err
}

// viaIptables gives the agent what iptables needs: raw sockets, and the lock that its users on the node share.
func viaIptables(pod *corev1.PodSpec) {
	const lock, file = "xtables-lock", "/run/xtables.lock"
	c, create := &pod.Containers[0], corev1.HostPathFileOrCreate
	c.SecurityContext.Capabilities.Add = append(c.SecurityContext.Capabilities.Add, "NET_RAW")
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: lock, MountPath: file})
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: lock, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: file, Type: &create},
	}})
}
