// Command federation-nodeagent makes Services work on one node of a member cluster, in place of kube-proxy or beside it.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"federation/cmd/internal/process"
)

// version is set by the linker.
var version = "dev"

func main() { process.Main(command()) }

func command() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:   "federation-nodeagent [--kubeconfig FILE]",
		Short: "Makes Services work on a node, in place of kube-proxy or beside it",
		Long: `Watch Services, EndpointSlices and this Node, and keep the kernel's rules as they say: cluster IPs, node ports,
external IPs and load balancer IPs lead to endpoints; to other clusters where this one has none that is ready.

It needs root, or the capability NET_ADMIN (and NET_RAW for iptables-legacy), in the node's network. Flags have
kube-proxy's names where they mean the same. Run one on each node, and no kube-proxy beside it, unless it is told to
serve only what goes to other clusters: --scope federated.

When it ends, rules stay, so that it can be replaced by a newer one without a connection noticing; --cleanup takes them
away. When the API server cannot be reached, rules stay as they are. Before another --scope or --proxy-mode run --cleanup
with the old ones.`,
		Example: `  # On a node, with the rights of a kubeconfig; pods have addresses of 10.180.0.0/14
  federation-nodeagent --kubeconfig /etc/kubernetes/nodeagent.kubeconfig --cluster-cidr 10.180.0.0/14

  # Beside kube-proxy or Cilium: only what goes to other clusters
  federation-nodeagent --scope federated --kubeconfig /etc/kubernetes/nodeagent.kubeconfig --cluster-cidr 10.180.0.0/14

  # Where would a connection of a pod go, and why?
  federation-nodeagent trace --kubeconfig nodeagent.kubeconfig --cluster-cidr 10.180.0.0/14 --from 10.180.2.7 --to 10.0.147.93:9200

  # Take all rules away
  federation-nodeagent --cleanup`,
		Version: version, Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true, DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.scope == scopeFederated {
				defaultsBesideProxy(c.Flags())
			}
			o.log.Apply(os.Stderr)
			return o.run(c.Context())
		},
	}
	o.addWatchFlags(root.PersistentFlags())
	o.addFlags(root.Flags())
	root.AddCommand(traceCommand(o))
	o.log.Add(root, "`LEVEL` of the log: 0 warnings, errors, and what is not served as a Service says; 2 also which Services are not served at all, and why")
	groupFlags(root)
	completeWith(root, "scope", scopeAll, scopeFederated)
	completeWith(root, "proxy-mode", proxyModes()...)
	completeWith(root, "iptables-backend", "auto", "nft", "legacy")
	completeWith(root, "detect-local-mode", "ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix")
	return root
}
