package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"federation/clusterregistry/wire"
	"federation/cmd/internal/logformat"
	"federation/cmd/internal/process"
	"federation/controllers/election"
	"federation/controllers/lbprovider"
	"federation/controllers/lbprovider/plan"
	"federation/controllers/lbprovider/vip"
	"federation/nodeagent/conntrack"
	"federation/nodeagent/nftables"
	"federation/nodeagent/ruleset"
)

// providerTable is the name of the provider's nftables, beside those of a node agent.
const providerTable = "federation-lb"

// providerOptions are the flags of the command provider.
type providerOptions struct {
	log        *logformat.Flag
	kubeconfig string
	pools      []string
	device     string
	namespace  string
	name       string
	nodeHealth uint16
	metrics    string
	settings   plan.Settings
}

func providerCommand(log *logformat.Flag) *cobra.Command {
	o := &providerOptions{log: log, namespace: "kube-system", nodeHealth: 10256, settings: plan.Settings{Class: plan.Class}}
	c := &cobra.Command{
		Use:   "provider --kubeconfig FILE --pools NETWORKS --interface NAME",
		Short: "Give Services of type LoadBalancer of one cluster addresses, and lead these to its nodes",
		Long: `Be the load balancer provider of one cluster, where no cloud is.

A Service of type LoadBalancer and of the class federation.kubernetes.io/cluster-local gets an address of a pool for
each of its families; its status is the record. This machine answers at these addresses, and its kernel leads
connections to node ports: of nodes that are ready and whose service proxy says at /healthz that it is well, and with
externalTrafficPolicy Local of those with a ready endpoint. Services of other classes are left alone.

Run two or more, on machines of one network segment that are no nodes of the cluster. One holds a Lease and the
addresses; if it dies, another one takes them in seconds. IP forwarding must be on.`,
		Example: `  # On two machines beside the nodes
  federation-lb provider --kubeconfig provider.kubeconfig --pools 192.0.2.64/26,2001:db8::100/120 --interface eth1`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.log.Apply(os.Stderr)
			return o.run(c.Context())
		},

		DisableFlagsInUseLine: true,
	}
	o.addFlags(c.Flags())
	return c
}

func (o *providerOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `FILE` of the cluster (required)")
	fs.StringSliceVar(&o.pools, "pools", nil, "`NETWORKS` in CIDR notation that Services get addresses of, in this order; nobody else may use them (required)")
	fs.StringVar(&o.device, "interface", "", "`NAME` of the interface that answers at the addresses (required)")
	fs.StringVar(&o.settings.Class, "load-balancer-class", o.settings.Class, "`CLASS` of the Services that are served, as spec.loadBalancerClass has it")
	fs.BoolVar(&o.settings.Default, "default", false, "serve Services without a class, too: only where no cloud and no other provider does")
	fs.StringVar(&o.namespace, "lease-namespace", o.namespace, "`NAMESPACE` of the Lease "+lbprovider.LeaseName)
	fs.StringVar(&o.name, "name", "", "`NAME` of this provider in the Lease, which no other one has; by default of the host and the process")
	fs.Uint16Var(&o.nodeHealth, "node-health-port", o.nodeHealth, "`PORT` at which nodes say at /healthz that their service proxy is well; where none says so, all nodes are used; 0: they are not asked")
	fs.StringVar(&o.metrics, "metrics-bind-address", "127.0.0.1:9155", "`HOST:PORT` on which /metrics, /healthz and /readyz are served, without TLS; empty: nowhere")
}

// validate names the flag, its value and what is allowed.
func (o *providerOptions) validate() error {
	if o.kubeconfig == "" || o.device == "" || len(o.pools) == 0 {
		return errors.New("--kubeconfig, --interface, --pools: all of them are required")
	}
	for _, text := range o.pools {
		p, err := netip.ParsePrefix(text)
		if err != nil || !p.Addr().IsGlobalUnicast() || p.Addr().Is4In6() {
			return fmt.Errorf("--pools %q: must be networks in CIDR notation, as 192.0.2.64/26", text)
		}
		for _, other := range o.settings.Pools {
			if other.Overlaps(p) {
				return fmt.Errorf("--pools %q: must not overlap with %s", text, other)
			}
		}
		o.settings.Pools = append(o.settings.Pools, p.Masked())
	}
	if errs := validation.IsQualifiedName(o.settings.Class); len(errs) > 0 || !strings.Contains(o.settings.Class, "/") {
		return fmt.Errorf("--load-balancer-class %q: must be a name with a prefix, as %s", o.settings.Class, plan.Class)
	}
	if errs := validation.IsDNS1123Label(o.namespace); len(errs) > 0 {
		return fmt.Errorf("--lease-namespace %q: %s", o.namespace, errs[0])
	}
	if _, _, err := net.SplitHostPort(o.metrics); o.metrics != "" && err != nil {
		return fmt.Errorf("--metrics-bind-address %q: must be HOST:PORT (%v)", o.metrics, err)
	}
	return nil
}

// checkForwarding fails where the kernel does not forward packets of a pool's family.
func (o *providerOptions) checkForwarding() error {
	for _, p := range o.settings.Pools {
		name := "net/ipv4/ip_forward"
		if p.Addr().Is6() {
			name = "net/ipv6/conf/all/forwarding"
		}
		if text, err := os.ReadFile("/proc/sys/" + name); err != nil || strings.TrimSpace(string(text)) == "0" {
			return fmt.Errorf("--pools %s: the kernel must forward packets: sysctl -w %s=1", p, strings.ReplaceAll(name, "/", "."))
		}
	}
	return nil
}

// run provides until ctx ends.
func (o *providerOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	if err := o.checkForwarding(); err != nil {
		return err
	}
	process.LimitMemory()
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("--kubeconfig %q: %w", o.kubeconfig, err)
	}
	config.UserAgent, config.QPS = "federation-lb-provider/"+version, -1
	kube, err := kubernetes.NewForConfig(wire.Protobuf(config))
	if err != nil {
		return fmt.Errorf("--kubeconfig %q: %w", o.kubeconfig, err)
	}
	device, err := vip.Open(o.device, o.settings.Pools)
	if err != nil {
		return fmt.Errorf("--interface: %w", err)
	}
	made, err := o.config(kube, device)
	if err != nil {
		return err
	}
	events := record.NewBroadcaster()
	defer events.Shutdown()
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	lbprovider.RegisterMetrics()
	p, err := lbprovider.New(made, events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: lbprovider.LeaseName}))
	if err != nil {
		return err
	}
	return process.RunWithMetrics(ctx, o.metrics, p.Ready, func(ctx context.Context) error { p.Run(ctx); return nil })
}

// config connects the provider with the kernel.
func (o *providerOptions) config(kube kubernetes.Interface, device *vip.Interface) (c lbprovider.Config, err error) {
	writer, err := nftables.NewNamed(providerTable)
	if err != nil {
		return c, fmt.Errorf("nftables: %w", err)
	}
	flows, err := conntrack.Open()
	if err != nil {
		return c, fmt.Errorf("conntrack: %w", err)
	}
	if o.name == "" {
		o.name = election.ProcessName()
	}
	return lbprovider.Config{
		Settings: o.settings, Kube: kube, Writer: writer, Holder: device, LeaseNamespace: o.namespace, Name: o.name, NodeHealthPort: o.nodeHealth,
		Watch: func(ctx context.Context, lost func()) {
			if err := writer.Watch(ctx, lost); err != nil {
				klog.ErrorS(err, "Changes of the rules by others are not seen any more")
				<-ctx.Done()
			}
		},
		Flows: func(changes []ruleset.PortChange) {
			begin := time.Now()
			if n, err := flows.Remove(changes); err != nil {
				klog.ErrorS(err, "Cannot end flows whose node is gone")
			} else if n > 0 {
				klog.V(2).InfoS("Ended flows whose node is gone", "flows", n, "took", time.Since(begin))
			}
		},
	}, nil
}
