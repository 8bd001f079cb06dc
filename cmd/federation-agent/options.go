package main

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/tunnel"
	"federation/cmd/internal/logformat"
)

// options are the flags.
type options struct {
	log        logformat.Flag
	cluster    string
	bootstrap  string
	servers    []string
	certDir    string
	certSecret string
	account    string
	kubeconfig string
	configMap  string
	ready      int
	metrics    string
}

func newOptions() *options {
	return &options{certDir: "/var/lib/federation-agent", configMap: v1beta1.FederationNamespace + "/federation-agent", ready: tunnel.DefaultReady}
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.cluster, "cluster", "", "`NAME` of the cluster in the federation (required)")
	fs.StringVar(&o.bootstrap, "bootstrap-kubeconfig", "", "kubeconfig `FILE` of the federation: its address, its certificate authority and, for the first start, a bootstrap token (required)")
	fs.StringArrayVar(&o.servers, "server", nil, "`URL` of a process of the federation, as https://fed-1:6443; given again for each, for every one needs a connection; without it that of --bootstrap-kubeconfig")
	fs.StringVar(&o.certDir, "cert-dir", o.certDir, "`FOLDER` in which the agent keeps its key and certificate")
	fs.StringVar(&o.certSecret, "cert-secret", "", "`NAMESPACE/NAME` of a Secret of the cluster in which it keeps them instead; the Secret must be there")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `FILE` of the cluster; without it that of the pod")
	fs.StringVar(&o.account, "account", "", "`NAMESPACE/NAME` of the service account as which the federation acts in the cluster: the agent gets tokens of it; without it as the agent itself")
	fs.StringVar(&o.configMap, "config-map", o.configMap, "`NAMESPACE/NAME` of a ConfigMap in the cluster: while it has paused: \"true\", the federation can only read")
	fs.IntVar(&o.ready, "ready-connections", o.ready, "connections that are kept ready at each process of the federation, from 1 to 8")
	fs.StringVar(&o.metrics, "metrics-bind-address", "", "`HOST:PORT` on which /metrics, /healthz and /readyz are served, without TLS; without it nowhere")
}

// validate names the flag, its value and what is allowed.
func (o *options) validate() error {
	if errs := validation.IsDNS1123Label(o.cluster); len(errs) > 0 {
		return fmt.Errorf("--cluster %q: must be the name of a Cluster: %s", o.cluster, errs[0])
	}
	if o.bootstrap == "" {
		return errors.New("--bootstrap-kubeconfig is required: make one with kubectl federation token create " + o.cluster)
	}
	for _, s := range o.servers {
		if err := tunnel.CheckServer(s); err != nil {
			return fmt.Errorf("--server %w", err)
		}
	}
	if o.certDir == "" && o.certSecret == "" {
		return errors.New(`--cert-dir "": must be a folder`)
	}
	for flag, value := range map[string]string{"config-map": o.configMap, "cert-secret": o.certSecret, "account": o.account} {
		if namespace, name, ok := strings.Cut(value, "/"); (value != "" || flag == "config-map") && (!ok || namespace == "" || name == "" || strings.Contains(name, "/")) {
			return fmt.Errorf("--%s %q: must be NAMESPACE/NAME", flag, value)
		}
	}
	if o.ready < 1 || o.ready > tunnel.MostReady {
		return fmt.Errorf("--ready-connections %d: must be from 1 to %d", o.ready, tunnel.MostReady)
	}
	if o.metrics != "" {
		if _, _, err := net.SplitHostPort(o.metrics); err != nil {
			return fmt.Errorf("--metrics-bind-address %q: must be HOST:PORT (%v)", o.metrics, err)
		}
	}
	return nil
}
