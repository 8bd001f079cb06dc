package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	"federation/controllers/explain"
)

type explainCommand struct {
	target
	genericiooptions.IOStreams
	output  output
	all     bool
	timeout time.Duration
}

func newExplain(streams genericiooptions.IOStreams) *cobra.Command {
	o := &explainCommand{IOStreams: streams}
	c := &cobra.Command{
		Use:   "explain KIND/NAME",
		Short: "Say where an object is, why, and what it waits for",
		Long: `Say of an object, for each cluster: what is wanted there, what is there, whether the copy is in sync,
since when, and what it waits for; then why, by the rules and numbers that placed it; and the last
decisions with their cause.

DESIRED  replicas that the placement has in the cluster (+ those that it would have if it had room),
         or yes and no for objects without replicas
CURRENT  replicas that the copy in the cluster asks for, and READY those that are ready
DONE     of a Job: completions that the cluster has done, of those that it is asked for. What a lost
         cluster left undone is divided in another round; then they are those of this round
COPY     in sync; behind (something is yet to be written); progressing (its number changes as others
         get ready); missing; leaving; conflict (not the federation's, left alone); unreachable

Of a Service it says, too, which endpoints of other clusters each cluster has, as EndpointSlices that
node agents read: it compares what is there with what the federation decides from what its API says now.

Of an Ingress of class federation it says which of the federation's load balancers serve it, and whether
they are alive; for each host and path, which share of requests each cluster gets, and why; and what of
it is not served. Load balancers whose clusters get other shares are shown apart: in other regions, or
where one does not reach a cluster.

The federation answers it, to whoever may get the object: a PlacementReview. It asks the clusters itself,
and one that does not answer holds up nobody. Who may not list Clusters sees those where the object is
placed.`,
		Example: `  kubectl federation explain replicaset/web
  kubectl federation explain deploy web -n shop
  kubectl federation explain configmap/settings -o yaml
  kubectl federation explain service/web
  kubectl federation explain ingress/front

  # Where something is missing
  kubectl federation explain rs/web -o json | jq '.clusters[] | select(.copy == "missing") | .name'`,
		Args: func(_ *cobra.Command, args []string) error {
			_, _, err := objectArgs(args)
			return err
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	c.ValidArgsFunction = func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		words, directive := o.completeWith(func(ctx context.Context, f *client.Federation, args []string) []string {
			return completeObjects(ctx, f, args, prefix)
		})(c, args, prefix)
		if !strings.Contains(prefix, "/") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return words, directive
	}
	o.addFlags(c)
	o.output.addFlag(c)
	c.Flags().StringVarP(&o.namespace, "namespace", "n", "", "namespace of the object; without it that of the context")
	c.Flags().BoolVar(&o.all, "all", false, fmt.Sprintf("show all clusters, not only %d", maxRows))
	c.Flags().DurationVar(&o.timeout, "member-timeout", explain.MemberTimeout, "how long the federation waits for one cluster's answer, at most 3s")
	_ = c.RegisterFlagCompletionFunc("namespace", o.completeWith(completeNamespaces)) // fails only for a flag that is not there
	return c
}

func completeNamespaces(ctx context.Context, f *client.Federation, _ []string) (names []string) {
	page, err := f.Metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).List(ctx, metav1.ListOptions{Limit: client.PageSize})
	if err != nil {
		return nil
	}
	for _, ns := range page.Items {
		names = append(names, ns.Name)
	}
	return names
}

func (o *explainCommand) run(ctx context.Context, args []string) error {
	if err := o.output.check(); err != nil {
		return err
	}
	if o.timeout <= 0 || o.timeout > explain.MemberTimeout {
		return fmt.Errorf("--member-timeout %v: must be more than 0 and at most %v", o.timeout, explain.MemberTimeout)
	}
	word, name, err := objectArgs(args)
	if err != nil {
		return err
	}
	f, err := o.connect()
	if err != nil {
		return err
	}
	resource, namespaced, err := f.Resource(word)
	if err != nil {
		return err
	}
	spec := v1beta1.PlacementReviewSpec{Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Name: name, MemberTimeout: &metav1.Duration{Duration: o.timeout}}
	if namespaced {
		spec.Namespace = f.Namespace
	}
	x, err := f.ReviewPlacement(ctx, spec)
	if err != nil {
		return err
	}
	if o.output != "table" {
		return o.output.print(o.Out, x)
	}
	rows := maxRows
	if o.all {
		rows = math.MaxInt
	}
	printExplanation(o.Out, x, rows, time.Now())
	return nil
}
