package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/controllers/explain"
	explainplan "federation/controllers/explain/plan"
	"federation/controllers/servicedns/plan"
)

type dnsCommand struct {
	target
	genericiooptions.IOStreams
	output        output
	allNamespaces bool
}

func newDNS(streams genericiooptions.IOStreams) *cobra.Command {
	o := &dnsCommand{IOStreams: streams}
	c := &cobra.Command{
		Use:   "dns [SERVICE|KIND/NAME]",
		Short: "List the names of Services and Ingresses in DNS, what they answer, and why",
		Long: `List every name that Services and Ingresses have in the federation's zone, with what it answers and, for
each cluster, whether its addresses are given out and why.

zone, region and global names stand for the clusters there: one at which nothing serves is a CNAME of
the next level. host names are those of an Ingress' rules, and the extra ones of a Service.

A * marks the clusters whose addresses are in the answers. What is behind "one of" is given one at a
time, by weight or to clients near a region, by servers that can choose: the built-in one.

It decides by the function that the federation runs, from what the API says now. Host names of load
balancers are looked up from here. What a server answers: dig @SERVER NAME.`,
		Example: `  kubectl federation dns
  kubectl federation dns web -n shop
  kubectl federation dns ingress/front -o yaml

  # Names that answer nothing
  kubectl federation dns -A -o json | jq -r '.objects[].names[] | select(.answers == null) | .name'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	o.addFlags(c)
	o.output.addFlag(c)
	c.AddCommand(newDNSDS(streams), newDNSKeys(streams))
	c.Flags().StringVarP(&o.namespace, "namespace", "n", "", "namespace of the objects; without it that of the context")
	c.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "list the names of all namespaces")
	_ = c.RegisterFlagCompletionFunc("namespace", o.completeWith(completeNamespaces)) // fails only for a flag that is not there
	return c
}

func (o *dnsCommand) run(ctx context.Context, args []string) error {
	if err := o.output.check(); err != nil {
		return err
	}
	key, err := dnsKey(args)
	if err != nil {
		return err
	}
	f, err := o.connect()
	if err != nil {
		return err
	}
	in, err := explain.Names(ctx, f)
	if err != nil {
		return err
	}
	shown := func(o plan.Object) bool { return o.Namespace == f.Namespace && (key == "" || key == o.Kind+" "+o.Name) }
	if o.allNamespaces {
		shown = func(o plan.Object) bool { return key == "" || key == o.Kind+" "+o.Name }
	}
	view := explainplan.ViewNames(in, plan.Records(in), shown)
	if key != "" && len(view.Objects) == 0 {
		if o.allNamespaces {
			return fmt.Errorf("%s has no names in DNS in any namespace: say by -n which one you mean, to be told why", strings.ToLower(key))
		}
		kind, name, _ := strings.Cut(key, " ")
		return explain.WhyNoNames(ctx, f, kind, f.Namespace, name, in.Zone)
	}
	if view.Providers, err = f.DNSProviders(ctx); err != nil {
		return err
	}
	if o.output != "table" {
		return o.output.print(o.Out, view)
	}
	printDNS(o.Out, view, time.Now())
	return nil
}

// dnsKey returns "KIND NAME" of the requested object; "" for all.
func dnsKey(args []string) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	kind, name, named := strings.Cut(args[0], "/")
	if !named {
		kind, name = "service", args[0]
	}
	switch {
	case name == "" || strings.Contains(name, "/"):
	case slices.Contains([]string{"service", "services", "svc"}, kind):
		return plan.KindService + " " + name, nil
	case slices.Contains([]string{"ingress", "ingresses", "ing", "ingress.networking.k8s.io"}, kind):
		return plan.KindIngress + " " + name, nil
	}
	return "", fmt.Errorf("give a SERVICE, service/NAME or ingress/NAME, not %q", args[0])
}
