package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	"federation/apiserver/client"
	"federation/clusterregistry/join"
	drainplan "federation/controllers/drain/plan"
	"federation/controllers/explain"
)

type unjoinCommand struct {
	sides
	genericiooptions.IOStreams
	dry client.DryRun
	yes bool
}

func newUnjoin(streams genericiooptions.IOStreams) *cobra.Command {
	o := &unjoinCommand{IOStreams: streams}
	c := &cobra.Command{
		Use:   "unjoin NAME",
		Short: "Take a cluster out of the federation",
		Long: `Take a cluster out of the federation.

Its Cluster and Secret at the federation are deleted, its addresses leave DNS, its replicas are
placed on the other clusters, and account and rights in the cluster are removed, by the federation's
own credential unless a flag names another. A cluster that cannot be reached is taken out all
the same; what had to stay behind is said.

Workloads stay in the cluster and keep running, beside those that other clusters start in their place:
drain it first. Where replicas are placed there, and it is neither drained nor lost, it asks for the
cluster's name, which --yes replaces.`,
		Example: `  kubectl federation drain east-a
  kubectl federation unjoin east-a

  # What would become of it
  kubectl federation unjoin east-a --dry-run

  # With your own credential for the cluster, when the federation's is lost
  kubectl federation unjoin east-a --member-context east`,
		Args: oneName,
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	o.addFlags(c)
	addDryRunFlag(c, &o.dry)
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask, though replicas are placed there")
	return c
}

func (o *unjoinCommand) run(ctx context.Context, name string) error {
	if err := errors.Join(o.check(), o.dry.Check()); err != nil {
		return err
	}
	f, err := o.target().connect()
	if err != nil {
		return err
	}
	if done, err := o.confirm(ctx, f, name); done || err != nil {
		return err
	}
	member, noCredential := o.memberClient(ctx, f, name)
	if noCredential != nil && o.memberContext+o.memberKubeconfig != "" {
		return noCredential
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	left, err := join.Unjoin(ctx, join.Request{
		Name: name, Federation: f.Kube, FederationDynamic: f.Dynamic, Member: member,
		Say: stepPrinter(o.IOStreams),
	})
	if err != nil {
		return err
	}
	o.printResult(name, left, noCredential)
	return nil
}

// confirm prints what would stay behind, and asks if the cluster still serves. done means that nothing is to be
// changed.
func (o *unjoinCommand) confirm(ctx context.Context, f *client.Federation, name string) (done bool, err error) {
	c, err := f.Cluster(ctx, name)
	if err != nil || o.yes && o.dry == client.DryRunNone {
		return false, nil // unjoining the rest of a removed cluster continues below
	}
	found, err := explain.PlacedIn(ctx, f, name)
	if err != nil {
		return false, fmt.Errorf("what is placed in cluster %s is not known (--yes unjoins it all the same): %w", name, err)
	}
	serves := len(found) > 0 && c.OutOfService() != v1beta1.Drained && !drainplan.IsLost(c)
	if serves {
		var placed int64
		for _, r := range found {
			placed += r.Placed
		}
		tell(o.ErrOut, "%s of %s placed in cluster %s: other clusters start as many in their place at once, and these keep running,\nunmanaged. To move them first: kubectl federation drain %s\n",
			phrase.Count(placed, "replica"), phrase.Count(int64(len(found)), "object"), name, name)
		for _, r := range found[:min(len(found), 5)] {
			tell(o.ErrOut, "  %s: %d placed\n", r.String(), r.Placed)
		}
	}
	if o.dry != client.DryRunNone {
		tell(o.Out, "cluster/%s would leave the federation%s: its Cluster, Secret, account and rights go, its workloads stay\n", name, o.dry.Suffix())
		return true, nil
	}
	if !serves {
		return false, nil
	}
	tell(o.ErrOut, "To unjoin it all the same, type its name: ")
	if !isTyped(o.In, name) {
		return false, fmt.Errorf("cluster %s was not unjoined: it serves, and its name was not typed (--yes does not ask)", name)
	}
	return false, nil
}

// memberClient returns a client for the cluster: by the flags, else with the federation's stored credential.
func (o *unjoinCommand) memberClient(ctx context.Context, f *client.Federation, name string) (kubernetes.Interface, error) {
	config, err := o.member()
	if config == nil && err == nil {
		if config, err = f.StoredConfig(ctx, name); err == nil {
			config.Timeout = callTimeout / 3
		}
	}
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// printResult prints what happened to the cluster and its workloads.
func (o *unjoinCommand) printResult(name string, left join.Left, noCredential error) {
	tell(o.Out, "cluster %s has left the federation\n", name)
	account, kubectl := join.AccountName(left.FederationUID), "kubectl "+o.memberFlags()
	if left.Behind != nil && !apierrors.IsNotFound(left.Behind) {
		why := left.Behind
		if noCredential != nil {
			why = noCredential
		}
		tell(o.Out, `
Account and rights in the cluster could not be removed: %v
To remove them when it can be reached (account and bindings go with the role, the namespace stays):
  %s delete clusterrole %s
`, why, kubectl, account)
	}
	if len(left.DaemonSets) > 0 {
		tell(o.Out, `
With them goes the DaemonSet %s. Rules that it wrote stay on the nodes as they are
until something else serves Services there; federation-nodeagent --cleanup takes them away.
`, strings.Join(left.DaemonSets, ", "))
	}
	selector := v1beta1.ManagedByLabel + "=" + left.FederationUID
	tell(o.Out, `
Workloads that the federation made there keep running, and keep the label
%s. If the cluster joins again, the federation takes them up again.
To delete them instead:
  %s delete %s --all-namespaces -l %s
`, selector, kubectl, spreadKinds(), selector)
	if len(left.CustomKinds) > 0 { // separately: kubectl rejects all if one of them does not exist
		tell(o.Out, "  %s delete %s --all-namespaces -l %s\n", kubectl, strings.Join(left.CustomKinds, ","), selector)
	}
}

// spreadKinds returns the namespaced kinds, those that others need last.
func spreadKinds() string {
	var words []string
	for _, r := range v1beta1.FederatedResources {
		if r.Resource != "namespaces" {
			words = append(words, r.GroupResource().String())
		}
	}
	slices.Reverse(words)
	return strings.Join(words, ",")
}
