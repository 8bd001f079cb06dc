// Command federation-dns is the authoritative DNS server of a federation as a program of its own. It serves the
// federation's zone by watching the federation, so that two or more can run and none is essential; a master file in
// addition, for names beside the federation's; or only a file.
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
	o := options{}
	root := &cobra.Command{
		Use:   "federation-dns --zone NAME {--kubeconfig FILE | --zone-file FILE}",
		Short: "Authoritative DNS server for the zone of a federation, or for a zone file",
		Long: `Serve one DNS zone, over UDP and TCP.

With --kubeconfig the zone is that of a federation: federation-dns watches it, and needs no more than to
read (cluster role "federation-dns"). Run two or more, at different places: each has the whole zone in
memory, answers by itself, and goes on when the federation is away. Before it has read the federation once
it answers SERVFAIL, so that nobody takes a restart for "no such name".

With --zone-file the records of a master file are served: alone, or beside those of the federation. When
the file changes, or on SIGHUP, it is read again; a file with an error changes nothing.`,
		Example: `  # The zone of a federation, at one of its two name servers
  federation-dns --zone example.com --kubeconfig dns.kubeconfig --listen :53 --name-server-ips 192.0.2.53,198.51.100.53

  # The same, signed; or followed by a server of another kind
  federation-dns --zone example.com --kubeconfig dns.kubeconfig --dnssec-key-file example.com.key --listen :53
  federation-dns --zone example.com --kubeconfig dns.kubeconfig --transfer-key-file tsig.keys --notify 203.0.113.53:53

  # A zone file, with metrics and health
  federation-dns --zone example.com --zone-file example.com.zone --listen 127.0.0.1:5353 --metrics-bind-address 127.0.0.1:9153`,
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
	root.AddCommand(keygenCommand(), dsCommand())
	o.log.Add(root, "`LEVEL` of the log: 0 warnings and errors; 2 also each change")
	return root
}
