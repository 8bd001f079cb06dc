package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"federation/apiserver"
	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/validation"
	"federation/clusterregistry/limits"
	"federation/clusterregistry/tunnel"
	"federation/cmd/internal/logformat"
	"federation/cmd/internal/process"
	"federation/controllers/election"
	"federation/controllers/explain"
	"federation/controllers/manager"
	"federation/controllers/placement"
	propagationplan "federation/controllers/propagation/plan"
	"federation/controllers/review"
	shardsplan "federation/controllers/shards/plan"
	"federation/controllers/supervisor"
	"federation/dnsprovider/authoritative"
)

func serveCommand() *cobra.Command {
	server, controllers := apiserver.NewOptions(), newControllersOptions()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run everything in one process: etcd, apiserver, controllers and DNS",
		Long: `Run a whole federation in one process: etcd, apiserver, controllers and the authoritative DNS server.

The first start makes certificates, keys and a kubeconfig in the data directory; later starts use them.
With --etcd-servers an external etcd is used, and several processes may serve one federation: they share the
work of the controllers, and one of them at a time places and fails over.`,
		Example: `  federation serve --data-dir /var/lib/federation --name prod --dns-zone example.com --dns-bind-address :53
  kubectl --kubeconfig /var/lib/federation/admin.kubeconfig get clusters`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), server, controllers) },
	}
	server.AddFlags(cmd.Flags())
	controllers.addFlags(cmd.Flags())
	return cmd
}

func serve(ctx context.Context, o *apiserver.Options, controllers *controllersOptions) error {
	if err := controllers.validate(); err != nil {
		return err
	}
	controllers.tracingConfig = o.TracingConfig
	controllers.tunnel = tunnel.NewHub(election.ProcessName())
	o.Tunnel = controllers.tunnel
	return controllers.withDNS(ctx, func(ctx context.Context, dns *authoritative.Server) error {
		return runServer(ctx, o, controllers, func(ctx context.Context, config *rest.Config) error {
			return controllers.keepRunning(ctx, config, dns, len(o.Etcd.Servers) > 0)
		})
	})
}

func apiserverCommand() *cobra.Command {
	server := apiserver.NewOptions()
	cmd := &cobra.Command{
		Use:   "apiserver",
		Short: "Run the apiserver alone, with embedded etcd or in front of an external one",
		Example: `  federation apiserver --data-dir /var/lib/federation \
    --etcd-servers https://10.0.0.1:2379,https://10.0.0.2:2379,https://10.0.0.3:2379 \
    --etcd-cafile ca.crt --etcd-certfile client.crt --etcd-keyfile client.key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runServer(cmd.Context(), server, nil, nil) },
	}
	server.AddFlags(cmd.Flags())
	return cmd
}

// runServer runs the apiserver and, once it is ready, what goes with it. When either ends, so does the other. The
// server ends last: controllers that end still write to it, for example that their Lease is free. names, if they are not nil, have
// the federation's name and zone.
func runServer(ctx context.Context, o *apiserver.Options, names *controllersOptions, then func(context.Context, *rest.Config) error) error {
	reviewer, explainer := &review.Reviewer{}, &explain.Explainer{}
	o.ReviewFailover, o.ReviewPlacement = reviewer.ReviewFailover, explainer.ReviewPlacement
	decideInServer(o, names, explainer)
	config, err := o.Complete()
	if err != nil {
		return err
	}
	server, err := config.New(ctx)
	if err != nil && ctx.Err() != nil {
		return nil // asked to end before there was anything to end
	}
	if err != nil {
		return err
	}
	client, kube, err := manager.NewClients(server.ControllersConfig())
	if err != nil {
		return err
	}
	reviewer.Use(client, kube)
	group, ctx := errgroup.WithContext(ctx)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	ready := make(chan struct{})
	group.Go(supervisor.Protected(serving, "apiserver", func(ctx context.Context) error { return server.Run(ctx, func() { close(ready) }) }))
	group.Go(supervisor.Protected(ctx, "controllers", func(ctx context.Context) error {
		defer stop()
		select {
		case <-ctx.Done():
			return nil
		case <-ready:
		}
		logformat.Announce("federation: ready; kubectl --kubeconfig %s get clusters", server.KubeconfigPath())
		if then == nil {
			<-ctx.Done()
			return nil
		}
		return then(ctx, server.ControllersConfig())
	}))
	return group.Wait()
}

// decideInServer has the server place new objects, try overrides and answer placement reviews, by the functions of the controllers.
func decideInServer(o *apiserver.Options, names *controllersOptions, explainer *explain.Explainer) {
	admitter := placement.NewAdmitter()
	o.Place, o.Clusters, o.CountClusters = admitter.Place, admitter.Clusters, admitter.CountClusters
	o.BeforeReady = func(ctx context.Context, config *rest.Config) error {
		client, err := manager.NewClient(config)
		if err != nil {
			return err
		}
		if err := explainer.Use(config, limits.EachAnswer(8<<20)); err != nil {
			return err
		}
		caches, err := manager.InformersOf(config, client, shardsplan.All)
		if err != nil {
			return err
		}
		return admitter.Follow(ctx, caches.ForResource, caches.Start)
	}
	o.TryOverrides = func(policy *v1beta1.PlacementPolicy, object *unstructured.Unstructured) error {
		return propagationplan.TryOverrides(policy, object, admitter.Clusters())
	}
	if names != nil {
		admitter.SecretsEverywhere = names.propagateSecrets == secretsAll
		o.ReadyChecks = map[string]func() error{"federation-controllers": names.parts.Check}
		o.NamesInDNS = func() *validation.DNSNames {
			return &validation.DNSNames{Federation: names.name, Zone: names.zone, NoApex: len(names.others) == 0, Grants: admitter.DNSNameGrants(), Places: admitter.Zones()}
		}
	}
}

func controllersCommand() *cobra.Command {
	o := newControllersOptions()
	var kubeconfig, metrics string
	cmd := &cobra.Command{
		Use:   "controllers",
		Short: "Run the controllers and DNS alone, against a federation apiserver",
		Long: `Run the controllers and the DNS server against a federation apiserver that runs elsewhere.

Several such processes share the work: one at a time places and fails over (a Lease in federation-system says
which), each propagates a share of the objects, and all of them answer DNS.`,
		Example: `  federation controllers --kubeconfig /var/lib/federation/controllers.kubeconfig --name prod --dns-zone example.com`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kubeconfig == "" {
				return fmt.Errorf("--kubeconfig is required: the controllers.kubeconfig in the apiserver's data directory")
			}
			if err := o.validate(); err != nil {
				return err
			}
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("--kubeconfig %q: %w", kubeconfig, err)
			}
			return process.RunWithMetrics(cmd.Context(), metrics, o.parts.Check, func(ctx context.Context) error {
				return o.withDNS(ctx, func(ctx context.Context, dns *authoritative.Server) error {
					return o.keepRunning(ctx, config, dns, true)
				})
			})
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the federation apiserver, with the controllers' identity (required)")
	cmd.Flags().StringVar(&metrics, "metrics-bind-address", "", "HOST:PORT on which /metrics, /healthz and /readyz are served, without TLS; without it nowhere")
	cmd.Flags().StringVar(&o.tracingConfig, "tracing-config-file", "", apiserver.TracingUsage)
	o.addFlags(cmd.Flags())
	return cmd
}
