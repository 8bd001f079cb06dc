// Package addons has what a join can install in a cluster beside the federation's account: the node agent, federation-agent, and the names of
// imported Services in CoreDNS.
package addons

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/join"
	"federation/hack/manifests"
)

// NodeAgent is the node agent as it is installed in a cluster.
type NodeAgent struct {
	Image string
	// Mode is its --proxy-mode, and Args are more flags of it.
	Mode string
	Args []string
	// Server is HOST:PORT at which nodes reach the cluster's API server; without it that of the kubeconfig.
	Server string
	// Blackhole lets drills have it drop what comes from outside.
	Blackhole bool
}

// serveFederation makes the agent believe what bears the federation's mark, and serve its clusterset IPs, unless its arguments say whose and which.
func (a *NodeAgent) serveFederation(uid string, info *v1beta1.Info) {
	a.add("--federation-uid=", uid)
	if info != nil {
		a.add("--clusterset-ip-range=", info.ClusterSetIPRanges)
	}
}

// add adds a flag that has a value and is not given yet.
func (a *NodeAgent) add(flag, value string) {
	if value != "" && !slices.ContainsFunc(a.Args, func(arg string) bool { return strings.HasPrefix(arg, flag) }) {
		a.Args = append(a.Args, flag+value)
	}
}

// AddTo adds its installation to a join. server is the URL of the cluster's API server in the kubeconfig, uid the federation's; info may be nil.
func (a *NodeAgent) AddTo(ctx context.Context, r *join.Request, server, uid string, info *v1beta1.Info) (err error) {
	a.serveFederation(uid, info)
	if err := a.refuseBesideKubeProxy(ctx, r.Member); err != nil {
		return err
	}
	r.Also, err = a.objects(server)
	return err
}

// refuseBesideKubeProxy keeps two service proxies from serving the same Services.
func (a *NodeAgent) refuseBesideKubeProxy(ctx context.Context, member kubernetes.Interface) error {
	_, err := member.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, "kube-proxy", metav1.GetOptions{})
	if apierrors.IsNotFound(err) || a.BesideProxy() {
		return nil
	}
	if err == nil {
		err = errors.New("the cluster has the DaemonSet kube-system/kube-proxy: delete that first (its rules stay until the node agent's are there), or have the node agent serve beside it with --nodeagent-args=--scope=federated")
	}
	return err
}

// BesideProxy reports whether the agent serves beside another service proxy.
func (a *NodeAgent) BesideProxy() bool { return slices.Contains(a.Args, "--scope=federated") }

// objects returns the objects to install; server is the URL of the API server in the kubeconfig.
func (a *NodeAgent) objects(server string) (out []*unstructured.Unstructured, err error) {
	if a.Server != "" {
		server = "https://" + a.Server
	}
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("--nodeagent-server %q: want HOST:PORT", a.Server)
	}
	all := manifests.NodeAgent
	if a.Blackhole {
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
func (a *NodeAgent) setFlags(content map[string]any, server *url.URL) (map[string]any, error) {
	d := &appsv1.DaemonSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, d); err != nil {
		return nil, err
	}
	pod := &d.Spec.Template.Spec
	c := &pod.Containers[0]
	c.Image = a.Image
	for i, arg := range c.Args {
		if strings.HasPrefix(arg, "--proxy-mode=") {
			c.Args[i] = "--proxy-mode=" + a.Mode
		}
	}
	if a.Blackhole {
		c.Args = append(c.Args, v1beta1.BlackholeFlag+"="+v1beta1.FederationNamespace+"/"+v1beta1.DrillLease)
	}
	c.Args = append(c.Args, a.Args...)
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
	if a.BesideProxy() {
		for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
			probe.HTTPGet.Port = intstr.FromInt32(10356) // the other one has 10256
		}
	}
	if a.Mode == "iptables" {
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

// daemonSet returns what would be installed.
func (a *NodeAgent) daemonSet(t *testing.T, server string) *appsv1.DaemonSet {
	t.Helper()
	objects, err := a.objects(server)
	if err != nil {
		t.Fatal(err)
	}
	d := &appsv1.DaemonSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[len(objects)-1].Object, d); err != nil {
		t.Fatal(err)
	}
	return d
}
