package main

import (
	"os"
	"strings"
	"text/template"
)

// files are what the programs of a node read, below /run/node.
var files = map[string]string{
	"containerd.toml": `version = 2
root = "/run/node/containerd"
state = "/run/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "local/pause:1"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "/run/node/cni"
`,
	"cni/pods.conflist": `{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipMasq": false,
   "ipam": {"type": "host-local", "dataDir": "/run/addresses", "ranges": [[{"subnet": "{{.PodCIDR}}"}]], "routes": [{"dst": "0.0.0.0/0"}]}}
]}
`,
	"resolv.conf": "nameserver {{.Gateway}}\n",
	"kubelet.yaml": `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: /run/node/ca.crt}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
cgroupRoot: {{.Cgroup}}
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
clusterDNS: ["{{.ClusterDNS}}"]
clusterDomain: cluster.local
resolvConf: /run/node/resolv.conf
podLogsDir: /run/node/logs
volumePluginDir: /run/node/plugins
imageGCHighThresholdPercent: 100 # images are given once, none can be fetched again
evictionHard: {memory.available: 1Mi, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%, imagefs.inodesFree: 0%}
`,
	"kube-proxy.yaml": `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: {{.KubeProxyMode}}
clusterCIDR: {{.ClusterCIDR}}
hostnameOverride: {{.Name}}
clientConnection: {kubeconfig: /run/node/proxy.kubeconfig}
conntrack: {maxPerCore: 0, min: 0}
`,
}

// configure writes the files.
func (o *options) configure() error {
	if err := os.MkdirAll("/run/node/cni", 0o755); err != nil {
		return err
	}
	values := map[string]string{
		"Name": o.name, "PodCIDR": o.podCIDR, "Gateway": o.gateway, "Cgroup": o.cgroup, "ClusterDNS": o.clusterDNS,
		"ClusterCIDR": o.clusterCIDR, "KubeProxyMode": o.kubeProxyMode(),
	}
	for name, text := range files {
		var b strings.Builder
		if err := template.Must(template.New(name).Parse(text)).Execute(&b, values); err != nil {
			return err
		}
		if err := os.WriteFile("/run/node/"+name, []byte(b.String()), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) kubeletFlags() []string {
	ip, _, _ := strings.Cut(o.address, "/")
	return []string{
		"--config=/run/node/kubelet.yaml", "--kubeconfig=/run/node/kubelet.kubeconfig", "--root-dir=/run/node/kubelet",
		"--hostname-override=" + o.name, "--node-ip=" + ip, "--v=1",
	}
}

// proxyCommands are what makes Services work on this node, each with its flags.
func (o *options) proxyCommands() [][]string {
	kubeProxy := []string{"/run/bin/kube-proxy", "--config=/run/node/kube-proxy.yaml"}
	agent := []string{"/run/bin/federation-nodeagent",
		"--kubeconfig=/run/node/proxy.kubeconfig", "--hostname-override=" + o.name, "--cluster-cidr=" + o.clusterCIDR, "--federation-uid=" + o.federation,
	}
	switch {
	case o.proxy == "none":
		return nil
	case o.proxy == "federated":
		return [][]string{kubeProxy, append(agent, "--proxy-mode=nftables", "--scope=federated")}
	case strings.HasPrefix(o.proxy, "kube-proxy-"):
		return [][]string{kubeProxy}
	}
	return [][]string{append(agent, "--proxy-mode="+o.proxy)}
}

// kubeProxyMode is that of kube-proxy, where there is one.
func (o *options) kubeProxyMode() string {
	if o.proxy == "federated" {
		return "nftables"
	}
	return strings.TrimPrefix(o.proxy, "kube-proxy-")
}
