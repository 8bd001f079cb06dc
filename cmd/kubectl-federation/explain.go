package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	"federation/apiserver/client"
	propagationplan "federation/controllers/propagation/plan"
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

Of a Service it says, too, what each cluster has been told of the others, as EndpointSlices that node
agents read: it compares what is there with what the federation decides from what its API says now. Host
names of load balancers are looked up from here.

Of an Ingress of class federation it says which of the federation's load balancers serve it, and whether
they are alive; for each host and path, which share of requests each cluster gets, and why; and what of
it is not served. Load balancers whose clusters get other shares are shown apart: in other regions, or
where one does not reach a cluster.

What is in a cluster is read there, by your own rights if it joined with --allow-proxy, else as the
federation, which takes the cluster role federation-cluster-inspector. One that does not answer holds up nobody.`,
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
	c.Flags().DurationVar(&o.timeout, "member-timeout", 3*time.Second, "how long to wait for one cluster's answer")
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
	if o.timeout <= 0 {
		return fmt.Errorf("--member-timeout %v: must be more than 0", o.timeout)
	}
	word, name, err := objectArgs(args)
	if err != nil {
		return err
	}
	f, err := o.connect()
	if err != nil {
		return err
	}
	e, err := gatherEvidence(ctx, f, word, name, o.timeout)
	if err != nil {
		return err
	}
	x := explain(e)
	if o.output != "table" {
		return o.output.print(o.Out, x)
	}
	rows := maxRows
	if o.all {
		rows = math.MaxInt
	}
	printExplanation(o.Out, x, rows, e.now)
	return nil
}

// evidence is what explain has read.
type evidence struct {
	object   *unstructured.Unstructured
	resource schema.GroupVersionResource
	clusters []*v1beta1.Cluster
	// policies are those of the object's namespace.
	policies []*v1beta1.PlacementPolicy
	// referrers are the possible referrers in the object's namespace, if it may go along with them.
	referrers []*unstructured.Unstructured
	// autoscalers are those at the federation that target the object.
	autoscalers []*unstructured.Unstructured
	// uid is the federation's.
	uid string
	// copies are the clusters' answers, by cluster.
	copies map[string]answer
	// across has the clusters' slices of each other; nil unless the object is a Service.
	across *acrossEvidence
	// routes has how the federation's load balancers serve it; nil unless the object is an Ingress.
	routes *routesEvidence
	now    time.Time
}

// answer is one cluster's answer about the object.
type answer struct {
	copy *unstructured.Unstructured // nil where there is none
	err  error
}

// gatherEvidence reads what explain needs: the object, the Clusters, the policies, and each cluster's copy.
func gatherEvidence(ctx context.Context, f *client.Federation, word, name string, timeout time.Duration) (e evidence, err error) {
	resource, namespaced, err := f.Resource(word)
	if err != nil {
		return e, err
	}
	e.resource = resource
	namespace := ""
	if namespaced {
		namespace = f.Namespace
	}
	if why := staysHere(resource, namespace, name); why != "" {
		return e, errors.New(why)
	}
	if e.object, err = f.Dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
		return e, noSuchObject(ctx, f, resource, namespace, name, err)
	}
	if of := e.object.GetLabels()[v1beta1.RevisionOfLabel]; of != "" {
		return e, fmt.Errorf("%s %q stays at the federation: it is a revision of a %s, which is what goes to clusters", resource.Resource, name, of)
	}
	if e.clusters, err = f.Clusters(ctx); err != nil {
		return e, err
	}
	if e.policies, err = f.Policies(ctx, namespace); err != nil {
		return e, err
	}
	if e.uid, err = f.UID(ctx); err != nil {
		return e, err
	}
	if err := errors.Join(gatherReferrers(ctx, f, &e), gatherAutoscalers(ctx, f, &e)); err != nil {
		return e, err
	}
	m := client.NewMembers(f, timeout)
	e.copies, err = client.AskEach(ctx, e.clusters, func(c *v1beta1.Cluster) answer {
		u, err := m.Get(ctx, c.Name, resource, namespace, name)
		return answer{u, err}
	})
	if err != nil {
		return e, err
	}
	if resource.GroupResource() == servicesResource.GroupResource() {
		if e.across, err = gatherAcross(ctx, f, &e, m); err != nil {
			return e, err
		}
	}
	if resource.GroupResource() == ingressesResource.GroupResource() {
		if e.routes, err = gatherRoutes(ctx, f, &e); err != nil {
			return e, err
		}
	}
	e.now = time.Now()
	return e, ctx.Err()
}

// gatherReferrers reads what may take a Secret, a ServiceAccount or, if a policy does that, a ConfigMap along.
func gatherReferrers(ctx context.Context, f *client.Federation, e *evidence) error {
	takes := slices.ContainsFunc(e.policies, func(p *v1beta1.PlacementPolicy) bool { return p.Spec.PropagateReferences })
	if !v1beta1.Confined(e.resource.GroupResource()) && (e.object.GetKind() != "ConfigMap" || !takes) {
		return nil
	}
	for _, r := range v1beta1.Referrers {
		if v1beta1.FederatedKindOf(r.Resource.GroupResource()) == nil {
			continue // pods are only in clusters
		}
		err := client.ListPages(ctx, f.Dynamic.Resource(r.Resource).Namespace(e.object.GetNamespace()), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
			e.referrers = append(e.referrers, u)
			return nil
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

var autoscalerRow = propagationplan.KindOf(autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"))

// gatherAutoscalers reads the autoscalers of a workload, if the user may: the explanation works without them.
func gatherAutoscalers(ctx context.Context, f *client.Federation, e *evidence) error {
	if k := v1beta1.FederatedKindOf(e.resource.GroupResource()); k == nil || k.Preferences == "" {
		return nil
	}
	err := client.ListPages(ctx, f.Dynamic.Resource(autoscalerRow.Resource).Namespace(e.object.GetNamespace()), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", "kind")
		name, _, _ := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", "name")
		if kind == e.object.GetKind() && name == e.object.GetName() {
			e.autoscalers = append(e.autoscalers, u)
		}
		return nil
	})
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// noSuchObject adds the existing objects to a "not found".
func noSuchObject(ctx context.Context, f *client.Federation, resource schema.GroupVersionResource, namespace, name string, err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	page, listErr := f.Metadata.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: client.PageSize})
	if listErr != nil {
		return err
	}
	var names []string
	for _, o := range page.Items {
		names = append(names, o.Name)
	}
	where := ""
	if namespace != "" {
		where = " in namespace " + namespace
	}
	return fmt.Errorf("%s %q not found%s; there are: %s", resource.Resource, name, where, phrase.Some(names))
}
