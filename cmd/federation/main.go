// Command federation is the control plane of a federation of Kubernetes clusters: etcd, apiserver,
// controllers and DNS in one process, or a part of them alone.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/metrics/prometheus/version" // kubernetes_build_info, by which alerts know our API server from others
	"k8s.io/component-base/version"

	"federation/cmd/internal/gc"
	"federation/cmd/internal/logformat"
	"federation/cmd/internal/logs"
	"federation/controllers/supervisor"
)

func main() {
	if err := command().ExecuteContext(signals()); err != nil {
		logformat.Fail("federation", err)
		os.Exit(1)
	}
}

// headroom of the heap for garbage, in bytes.
const headroom = 128 << 20

// signals returns a context that ends with the first SIGTERM or SIGINT; the second one ends us at once.
func signals() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan os.Signal, 2)
	signal.Notify(got, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-got
		cancel()
		<-got
		os.Exit(1)
	}()
	return ctx
}

func command() *cobra.Command {
	logging := logsapi.NewLoggingConfiguration()
	root := &cobra.Command{
		Use:   "federation",
		Short: "One API for many Kubernetes clusters",
		Long: `federation is the control plane of a federation of Kubernetes clusters.

Start it with "federation serve", join clusters with "kubectl federation join", and use plain
kubectl with the kubeconfig that the first start writes: what you apply is spread over the clusters,
gets one name in DNS, and moves when a cluster dies.`,
		Version:       version.Get().GitVersion,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			supervisor.ContainPanics()
			gc.Tune(cmd.Context(), headroom)
			rest.SetDefaultWarningHandler(rest.NoWarnings{})
			return logs.Start(logging)
		},
	}
	logs.AddFlags(logging, root.PersistentFlags())
	root.AddCommand(serveCommand(), apiserverCommand(), controllersCommand(), pkiCommand())
	return root
}
