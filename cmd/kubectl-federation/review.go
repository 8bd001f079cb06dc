package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	"federation/apiserver/client"
	"federation/controllers/drill/outside"
)

type failoverCommand struct {
	target
	spec   v1beta1.FailoverReviewSpec
	output output
	all    bool
}

func newPlanFailover(streams genericiooptions.IOStreams) *cobra.Command {
	o := &failoverCommand{}
	c := &cobra.Command{
		Use:   "failover (--cluster CLUSTER | --zone [REGION/]ZONE | --region REGION)...",
		Short: "Show what would happen if clusters were lost",
		Long: `Show what would happen if clusters were lost: which replicas would move where, what would fit nowhere,
which DNS answers would change, which routes of load balancers would have no cluster left, which of the
federation's load balancers are in the lost zones and regions, and whether the limits of failover would
hold it. Nothing is changed.

The federation answers, by the very functions that would do it, from what it knows at this moment.
A zone stands for the clusters that have no nodes outside of it.

At the end it says of each method whether a drill of the clusters would be allowed now.`,
		Example: `  kubectl federation plan failover --cluster east-a

  # All of a region's zones a, and one more cluster
  kubectl federation plan failover --zone east/a --cluster west-a

  # How many replicas would fit nowhere
  kubectl federation plan failover --region east -o json | jq .status.replicasUnschedulable`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), streams.Out) },
	}
	f := c.Flags()
	f.StringSliceVar(&o.spec.Clusters, "cluster", nil, "clusters by `name`")
	f.StringSliceVar(&o.spec.Zones, "zone", nil, "zones, as `REGION/ZONE` or ZONE")
	f.StringSliceVar(&o.spec.Regions, "region", nil, "`regions`")
	f.BoolVar(&o.all, "all", false, fmt.Sprintf("show all objects and names, not only %d of each", maxRows))
	c.MarkFlagsOneRequired("cluster", "zone", "region")
	o.output.addFlag(c)
	o.addFlags(c)
	o.complete(c)
	return c
}

func (o *failoverCommand) complete(c *cobra.Command) {
	zones := func(c *v1beta1.Cluster) (names []string) {
		for _, z := range c.Status.Zones {
			names = append(names, strings.TrimPrefix(c.Status.Region+"/"+z, "/"))
		}
		return names
	}
	regions := func(c *v1beta1.Cluster) []string {
		return slices.DeleteFunc([]string{c.Status.Region}, func(r string) bool { return r == "" })
	}
	for flag, offered := range map[string]func(context.Context, *client.Federation, []string) []string{
		"cluster": clusterNames, "zone": placeNames(zones), "region": placeNames(regions),
	} {
		_ = c.RegisterFlagCompletionFunc(flag, o.completeWith(offered)) // fails only for a flag that is not there
	}
}

func (o *failoverCommand) run(ctx context.Context, out io.Writer) error {
	if err := o.output.check(); err != nil {
		return err
	}
	f, err := o.connect()
	if err != nil {
		return err
	}
	r, err := f.Review(ctx, o.spec)
	if err != nil {
		return withKnownClusters(ctx, f, err)
	}
	if o.output != "table" {
		return o.output.print(out, r)
	}
	rows := maxRows
	if o.all {
		rows = math.MaxInt
	}
	printReview(out, &r.Status, rows)
	verdicts, err := outside.MayBegin(ctx, f, r)
	if err != nil {
		tell(out, "\nWhether a drill would be allowed now cannot be seen: %v\n", err)
		return nil
	}
	tell(out, "\nWould a drill of it be allowed now?\n")
	for _, v := range verdicts {
		if v.Reason != "" {
			tell(out, "  %-9s no, %s: %s\n", v.Method, v.Reason, v.Message)
		} else {
			tell(out, "  %-9s yes\n", v.Method)
		}
	}
	return nil
}

// withKnownClusters adds the existing clusters to the error of a review that was rejected for an unknown one.
func withKnownClusters(ctx context.Context, f *client.Federation, refused error) error {
	if !apierrors.IsInvalid(refused) && !apierrors.IsBadRequest(refused) {
		return refused
	}
	all, err := f.Clusters(ctx)
	if err != nil {
		return refused
	}
	var names []string
	for _, c := range all {
		names = append(names, fmt.Sprintf("%s (%s)", c.Name, placeText(c)))
	}
	return fmt.Errorf("%s; there are: %s", client.Errors(refused), phrase.Some(names))
}

// placeText returns a cluster's place as REGION/ZONES.
func placeText(c *v1beta1.Cluster) string {
	if c.Status.Region == "" && len(c.Status.Zones) == 0 {
		return "no region"
	}
	return c.Status.Region + "/" + strings.Join(c.Status.Zones, ",")
}

// maxRows is the maximum of rows in a printed table.
const maxRows = 20

func printReview(out io.Writer, s *v1beta1.FailoverReviewStatus, rows int) {
	tell(out, "If %s were lost:\n\n", phrase.Some(s.Clusters))
	if s.SuspendedReason != "" {
		tell(out, "NOTHING WOULD MOVE BY ITSELF: %s\n\n", s.SuspendedReason)
	}
	printMoves(out, s, rows)
	printRecords(out, s, rows)
	printRoutesLost(out, s, rows)
}

func printMoves(out io.Writer, s *v1beta1.FailoverReviewStatus, rows int) {
	if len(s.Moves) == 0 {
		tell(out, "No replica would move.\n")
		return
	}
	tell(out, "%s would move, of %s", phrase.Count(s.ReplicasMoved, "replica"), phrase.Count(int64(len(s.Moves)), "object"))
	if s.ReplicasUnschedulable > 0 {
		tell(out, "; %s would fit nowhere", phrase.Count(s.ReplicasUnschedulable, "replica"))
	}
	tell(out, ":\n")
	w := newTable(out, "  OBJECT\tFROM\tTO\tNOTE")
	for _, m := range s.Moves[:min(rows, len(s.Moves))] {
		from, to := fromTo(m)
		tell(w, "  %s\t%s\t%s\t%s\n", objectName(m.Kind, m.Namespace, m.Name), from, to, moveNote(m))
	}
	w.end()
	printMore(out, "  and", len(s.Moves)-rows, "object")
}

func objectName(kind, namespace, name string) string {
	return strings.ToLower(kind) + "/" + name + phrase.Prefixed(" -n ", namespace)
}

// fromTo returns which clusters lose and which get replicas.
func fromTo(m v1beta1.ReplicaMove) (from, to string) {
	var losing, getting []string
	for _, c := range m.Clusters {
		word := fmt.Sprintf("%s %d→%d", c.Cluster, c.Before, c.After)
		if c.After < c.Before {
			losing = append(losing, word)
		} else {
			getting = append(getting, word)
		}
	}
	return orDash(phrase.Some(losing)), orDash(phrase.Some(getting))
}

// orDash replaces "" in a table.
func orDash(s string) string {
	if s == "none" {
		return "-"
	}
	return s
}

func moveNote(m v1beta1.ReplicaMove) string {
	var words []string
	if m.Unschedulable > 0 {
		words = append(words, fmt.Sprintf("%d unschedulable", m.Unschedulable))
	}
	if m.Reason != "" {
		words = append(words, m.Reason)
	}
	return strings.Join(words, "; ")
}

func printRecords(out io.Writer, s *v1beta1.FailoverReviewStatus, rows int) {
	if len(s.Records) == 0 {
		tell(out, "\nNo DNS answer would change.\n")
		return
	}
	tell(out, "\n%s of DNS would change:\n", phrase.Count(int64(len(s.Records)), "answer"))
	w := newTable(out, "  NAME\tTYPE\tNOW\tTHEN")
	for _, r := range s.Records[:min(rows, len(s.Records))] {
		tell(w, "  %s\t%s\t%s\t%s\n", r.Name, r.Type, orDash(phrase.Some(r.Before)), orDash(phrase.Some(r.After)))
	}
	w.end()
	printMore(out, "  and", len(s.Records)-rows, "")
}

// printRoutesLost prints what the loss would do to what the federation's load balancers serve.
func printRoutesLost(out io.Writer, s *v1beta1.FailoverReviewStatus, rows int) {
	if len(s.Routes) > 0 {
		tell(out, "\n%s of load balancers would have no cluster left:\n", phrase.Count(int64(len(s.Routes)), "route"))
		w := newTable(out, "  HOST\tPATH\tINGRESS\tSERVICE")
		for _, r := range s.Routes[:min(rows, len(s.Routes))] {
			tell(w, "  %s\t%s\t%s -n %s\t%s\n", cmp.Or(r.Host, "any"), cmp.Or(r.Path, "default backend"), r.Ingress, r.Namespace, r.Service)
		}
		w.end()
		printMore(out, "  and", len(s.Routes)-rows, "")
	}
	if s.LoadBalancersLeft == nil {
		return
	}
	tell(out, "\n%s of the federation would be lost, %d would be left:\n", phrase.Count(int64(len(s.LoadBalancers)), "load balancer"), *s.LoadBalancersLeft)
	for _, b := range s.LoadBalancers[:min(rows, len(s.LoadBalancers))] {
		tell(out, "  %s (%s): %s\n", b.Name, strings.Trim(b.Region+"/"+b.Zone, "/"), phrase.Some(b.Addresses))
	}
	printMore(out, "  and", len(s.LoadBalancers)-rows, "")
	if *s.LoadBalancersLeft == 0 {
		tell(out, "  No host of an Ingress of class %s would be answered.\n", v1beta1.IngressClassName)
	}
}
