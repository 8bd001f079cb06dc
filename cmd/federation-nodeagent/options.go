package main

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"federation/cmd/internal/logformat"
	"federation/nodeagent/ruleset"
)

// options are the parsed flags.
type options struct {
	log                          logformat.Flag
	kubeconfig, master, hostname string
	proxyMode                    string
	clusterCIDR, detectLocal     string
	podBridge, podPrefix         string
	nodePortAddresses            []string
	masqueradeAll                bool
	serviceProxyName             string
	scope, clusterSetIPs         string
	federations                  []string
	blackholeLease, inside       string
	qps                          float32
	burst                        int

	iptables            string
	metrics, healthz    string
	lockDir             string
	minSync, lookPeriod time.Duration
	cleanup, initOnly   bool
	sysctls             sysctls
}

// addWatchFlags adds the flags that determine the rules; all commands have them.
func (o *options) addWatchFlags(f *pflag.FlagSet) {
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "`FILE` with the address of the API server and a credential; without it, and without --master, those of the pod that the agent runs in")
	f.StringVar(&o.master, "master", "", "`URL` of the API server, over that of the kubeconfig")
	f.Float32Var(&o.qps, "kube-api-qps", 5, "`NUMBER` of requests a second to the API server")
	f.IntVar(&o.burst, "kube-api-burst", 10, "`NUMBER` of requests at once to the API server")
	f.StringVar(&o.hostname, "hostname-override", "", "`NAME` of this Node; else the host's name")
	f.StringVar(&o.clusterCIDR, "cluster-cidr", "", "`RANGE[,RANGE]` of the addresses of pods, one a family: what does not come from there to a cluster IP is masqueraded")
	f.StringVar(&o.detectLocal, "detect-local-mode", "ClusterCIDR", "by what pods are known: ClusterCIDR, NodeCIDR (the Node's spec.podCIDRs), BridgeInterface or InterfaceNamePrefix")
	f.StringVar(&o.podBridge, "pod-bridge-interface", "", "`NAME` of the bridge that pods are at, for --detect-local-mode BridgeInterface")
	f.StringVar(&o.podPrefix, "pod-interface-name-prefix", "", "`PREFIX` of the names of pods' interfaces, for --detect-local-mode InterfaceNamePrefix")
	f.StringVar(&o.proxyMode, "proxy-mode", "iptables", "how rules get into the kernel: "+strings.Join(proxyModes(), " or "))
	f.StringSliceVar(&o.nodePortAddresses, "nodeport-addresses", nil, "`RANGES` of this node's addresses at which node ports are served, or primary: the first of each family that the Node object names. Of a family of which nothing is said, all save loopback. Without it, as kube-proxy: primary in mode nftables, else all")
	f.BoolVar(&o.masqueradeAll, "masquerade-all", false, "masquerade all that goes to a cluster IP")
	f.StringVar(&o.scope, "scope", scopeAll, "`SCOPE` all: serve every Service, in place of kube-proxy; federated: beside another service proxy, serve clusterset IPs, and Services annotated federation.kubernetes.io/fallback: \"true\" while other clusters are to serve them")
	f.StringVar(&o.clusterSetIPs, "clusterset-ip-range", "", "`RANGE[,RANGE]` of clusterset IPs, as the federation's flag has it: others are not served, and without it none. Only Services that a federation of --federation-uid made have any")
	f.StringSliceVar(&o.federations, "federation-uid", nil, "`UID[,UID]` of the federations that this cluster is a member of, each that of its namespace kube-system: clusterset IPs, and addresses of other clusters, are taken from objects that bear one as mark, and without it from none")
	f.StringVar(&o.blackholeLease, "blackhole-lease", "", "`NAMESPACE/NAME` of a Lease: while somebody renews it, and for 30 s after that, drop what comes from outside to external IPs, load balancer IPs and node ports, and answer 503 at health check node ports. For drills of the federation; needs --proxy-mode nftables and --scope all. Without it nobody can ask for that")
	f.StringVar(&o.inside, "inside", "", "`RANGE[,RANGE]` of the cluster's nodes and pods, which --blackhole-lease takes for no clients outside, beside this node and the pods that --detect-local-mode tells")
	f.StringVar(&o.serviceProxyName, "service-proxy-name", "", "serve only Services whose label service.kubernetes.io/service-proxy-name is this `NAME`; else those without the label")
}

func (o *options) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.iptables, "iptables-backend", "auto", "`KIND` of iptables: nft, legacy, or auto: the one that has rules of kubelet or kube-proxy, else the one that the command iptables is")
	f.StringVar(&o.metrics, "metrics-bind-address", "127.0.0.1:10249", "`ADDRESS` of /metrics; \"\": none; beside kube-proxy (--scope federated) port 10349")
	f.StringVar(&o.healthz, "healthz-bind-address", "0.0.0.0:10256", "`ADDRESS` of /healthz; \"\": none; beside kube-proxy (--scope federated) port 10356")
	f.StringVar(&o.lockDir, "lock-dir", "/run/federation-nodeagent", "`FOLDER` of the node, which only root can write to, with the lock that keeps a second agent from serving the same node")
	f.DurationVar(&o.minSync, "iptables-min-sync-period", 0, "least `TIME` between two writes of rules; 0: none, as what comes during a write is gathered anyhow")
	f.DurationVar(&o.lookPeriod, "iptables-sync-period", 30*time.Second, "`TIME` after which rules are compared with the kernel at the latest, where somebody else has changed something; that the tables were flushed is seen within seconds")
	f.BoolVar(&o.cleanup, "cleanup", false, "take all rules away and end; with --scope federated only those of that scope, else also kube-proxy's")
	f.BoolVar(&o.initOnly, "init-only", false, "set sysctls and end, so that who serves the node need not be able to")
	o.sysctls.addFlags(f)
	addForeignFlags(f)
}

// check validates the flags.
func (o *options) check() error {
	if err := o.sysctls.check(); err != nil {
		return err
	}
	return o.checkWatch()
}

func (o *options) checkWatch() error {
	if !slices.Contains(proxyModes(), o.proxyMode) {
		return fmt.Errorf("--proxy-mode %q: want %s", o.proxyMode, strings.Join(proxyModes(), " or "))
	}
	if o.scope != scopeAll && o.scope != scopeFederated {
		return fmt.Errorf("--scope %q: want %s or %s", o.scope, scopeAll, scopeFederated)
	}
	if err := o.checkBlackhole(); err != nil {
		return err
	}
	for flag, ranges := range map[string]string{"--cluster-cidr": o.clusterCIDR, "--clusterset-ip-range": o.clusterSetIPs, "--inside": o.inside} {
		if _, err := prefixes(flag, strings.Split(ranges, ",")); err != nil {
			return err
		}
	}
	needs := map[string]string{"BridgeInterface": o.podBridge, "InterfaceNamePrefix": o.podPrefix, "ClusterCIDR": "-", "NodeCIDR": "-"}
	switch value, known := needs[o.detectLocal]; {
	case !known:
		return fmt.Errorf("--detect-local-mode %q: want ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix", o.detectLocal)
	case value == "":
		return fmt.Errorf("--detect-local-mode %s needs --pod-bridge-interface or --pod-interface-name-prefix", o.detectLocal)
	}
	return nil
}

// checkBlackhole returns why the agent cannot drop traffic from outside. iptables has no rule that the kernel itself
// would end.
func (o *options) checkBlackhole() error {
	namespace, name, named := strings.Cut(o.blackholeLease, "/")
	switch {
	case o.blackholeLease == "" && o.inside != "":
		return fmt.Errorf("--inside %q needs --blackhole-lease", o.inside)
	case o.blackholeLease == "":
		return nil
	case !named || namespace == "" || name == "" || strings.Contains(name, "/"):
		return fmt.Errorf("--blackhole-lease %q: want NAMESPACE/NAME", o.blackholeLease)
	case o.proxyMode != "nftables" || o.scope != scopeAll:
		return fmt.Errorf("--blackhole-lease needs --proxy-mode nftables and --scope %s, not %s and %s: only there the kernel itself ends what nobody renews", scopeAll, o.proxyMode, o.scope)
	}
	return nil
}

// prefixes reads ranges; empty ones are none.
func prefixes(flag string, texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range texts {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%s %q: want ranges like 10.180.0.0/14", flag, text)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

func (o *options) nodeName() (string, error) {
	if o.hostname != "" {
		return o.hostname, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("this host has no name; --hostname-override gives one: %w", err)
	}
	return strings.ToLower(name), nil
}

// pods returns how pods are recognized; podCIDRs are the Node object's.
func (o *options) pods(podCIDRs []string) (ruleset.Pods, error) {
	switch o.detectLocal {
	case "BridgeInterface":
		return ruleset.Pods{Bridge: o.podBridge}, nil
	case "InterfaceNamePrefix":
		return ruleset.Pods{InterfacePrefix: o.podPrefix}, nil
	case "NodeCIDR":
		cidrs, err := prefixes("Node spec.podCIDRs", podCIDRs)
		return ruleset.Pods{CIDRs: cidrs}, err
	}
	cidrs, err := prefixes("--cluster-cidr", strings.Split(o.clusterCIDR, ","))
	return ruleset.Pods{CIDRs: cidrs}, err
}
