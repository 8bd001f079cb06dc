// Command federation-agent runs in a member cluster whose connection is Pull: it connects out to the federation, and forwards what comes to the cluster's
// own API.
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
	o := newOptions()
	root := &cobra.Command{
		Use:   "federation-agent --cluster NAME --bootstrap-kubeconfig FILE",
		Short: "Connect a cluster that nobody can connect to with its federation",
		Long: `Connect a cluster with a federation that cannot connect to it, as behind NAT.

federation-agent runs in the cluster. It connects out to the federation, and forwards what the federation asks to the
cluster's API server, with the credential of its own account: what that may do is what the federation may do here. The
federation gets no credential of the cluster.

The first start needs a bootstrap token, which is good once: "kubectl federation token create" makes one, in the
kubeconfig that --bootstrap-kubeconfig reads. With it the agent gets a certificate, keeps it in --cert-dir, and renews it
before it expires.

To stop the federation from changing anything here, at once, set paused: "true" in the ConfigMap of --config-map.`,
		Example: `  # At the federation: the cluster, and a token for its agent
  kubectl federation token create east-a > bootstrap.kubeconfig

  # In the cluster, or on a host that reaches its API
  federation-agent --cluster east-a --bootstrap-kubeconfig bootstrap.kubeconfig --kubeconfig account.kubeconfig`,
		Version:       version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			o.log.Apply(os.Stderr)
			return o.run(c.Context())
		},

		DisableFlagsInUseLine: true,
	}
	o.addFlags(root.Flags())
	o.log.Add(root, "`LEVEL` of the log: 0 warnings and errors; 2 also each change")
	return root
}
