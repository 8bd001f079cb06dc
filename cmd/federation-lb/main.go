// Command federation-lb is the load balancer over the clusters of a federation: it serves Ingresses of class federation, and sends each
// request to a cluster that serves.
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
		Use:   "federation-lb --kubeconfig FILE [--region NAME]",
		Short: "Load balancer over the clusters of a federation",
		Long: `Serve the Ingresses of class "federation", in front of the clusters' own load balancers.

federation-lb watches the federation. A backend of an Ingress is a federated Service of type LoadBalancer: requests
go to its addresses in the clusters, as DNS gives them out: not to those that are drained, lost, or have nothing
ready. Clusters of the load balancer's own region come first; the share that they miss goes to others. A cluster
that dies costs no GET: the request is sent to another one.

It needs a token of a service account in the namespace federation-load-balancers, which may read what routes follow
from, and of Secrets only the certificates of these Ingresses. When the federation is away, it goes on with what it
has. Run two or more, at different places.

On SIGTERM it drains: it has clients close their connections, and ends when none is left. Start a new one before:
both listen at the same port (SO_REUSEPORT).`,
		Example: `  # A load balancer in region east, on ports 80 and 443; DNS answers with its address
  federation-lb --kubeconfig lb.kubeconfig --region east --addresses 192.0.2.80

  # Behind a load balancer of a cloud that speaks PROXY protocol v2, with a log of requests
  federation-lb --kubeconfig lb.kubeconfig --region east --proxy-protocol --trusted-peers 10.0.0.0/8 --access-log -

  # Where does a request go, and why?
  federation-lb trace --host www.example.com --path /cart`,
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
	root.AddCommand(traceCommand(), providerCommand(&o.log))
	o.log.Add(root, "`LEVEL` of the log: 0 warnings and errors; 2 also each change")
	return root
}
