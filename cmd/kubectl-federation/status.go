package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	"federation/controllers/explain"
	explainplan "federation/controllers/explain/plan"
	propagationplan "federation/controllers/propagation/plan"
)

type statusCommand struct {
	target
	output   output
	all      bool
	exitCode bool
	watch    bool
}

func newStatus(streams genericiooptions.IOStreams) *cobra.Command {
	o := &statusCommand{}
	c := &cobra.Command{
		Use:   "status",
		Short: "Say how the whole federation stands",
		Long: `Say how the whole federation stands: its clusters, with what is free in them; the servers and services
that have its DNS zone; its load balancers; how many objects of each kind it spreads; and which of them are not as desired in all clusters, longest first.

Of kinds without conditions, as ConfigMaps, Secrets and custom kinds, an object counts as in sync in a
cluster that cannot be reached: that the cluster cannot be is said of the cluster.`,
		Example: `  kubectl federation status

  # On a screen, until it is interrupted
  kubectl federation status --watch

  # In a script: exit code 1 while a cluster does not serve or an object is out of sync
  kubectl federation status --exit-code >/dev/null && echo all is well`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), streams.Out) },
	}
	o.output.addFlag(c)
	o.addFlags(c)
	c.Flags().BoolVar(&o.all, "all", false, fmt.Sprintf("show all clusters and objects, not only %d", maxRows))
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "show it again whenever it has changed, until interrupted")
	c.Flags().BoolVar(&o.exitCode, "exit-code", false, "end with 1 unless all clusters serve, all objects are in sync, no DNS provider is behind and all load balancers are alive")
	return c
}

// exitCode ends the program without a message.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func (o *statusCommand) run(ctx context.Context, out io.Writer) error {
	if err := o.output.check(); err != nil {
		return err
	}
	if o.watch && (o.exitCode || o.output != "table") {
		return errors.New("--watch: must not be beside --exit-code, nor an --output other than table")
	}
	f, err := o.connect()
	if err != nil {
		return err
	}
	if o.watch {
		return o.keepShowing(ctx, out, func(ctx context.Context) (*status, error) { return readStatus(ctx, f) }, watchPeriod)
	}
	s, err := readStatus(ctx, f)
	if err != nil {
		return err
	}
	if o.output == "table" {
		o.show(out, s)
	} else if err := o.output.print(out, s); err != nil {
		return err
	}
	if o.exitCode && !s.Healthy {
		return exitCode(1)
	}
	return nil
}

// readStatus reads the Clusters and, page by page, the objects of every kind.
func readStatus(ctx context.Context, f *client.Federation) (*status, error) {
	s := &status{}
	info, err := f.Info(ctx)
	if err == nil && info != nil {
		s.Name, s.DNSZone = info.Name, info.DNSZone
	}
	if s.DNSProviders, err = f.DNSProviders(ctx); err != nil {
		return nil, err
	}
	if s.Components, err = f.Components(ctx); err != nil {
		return nil, err
	}
	if s.LoadBalancers, err = explain.LoadBalancers(ctx, f); err != nil {
		return nil, err
	}
	clusters, err := f.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range clusters {
		s.Clusters = append(s.Clusters, clusterStatusOf(c))
	}
	for i := range v1beta1.FederatedKinds {
		k := &v1beta1.FederatedKinds[i]
		if err := countKind(ctx, f, s, k.Resource, k.Kind); err != nil {
			return nil, err
		}
	}
	if err := countCustom(ctx, f, s); err != nil {
		return nil, err
	}
	s.summarize()
	return s, nil
}

// countKind reads the objects of a kind. A kind that the federation does not serve has none.
func countKind(ctx context.Context, f *client.Federation, s *status, r schema.GroupVersionResource, kind string) (err error) {
	k := kindStatus{Kind: kind}
	if row := propagationplan.KindOf(r); row == nil || row.Status == nil {
		err = countMetadata(ctx, f, s, r, &k)
	} else {
		err = client.ListPages(ctx, f.Dynamic.Resource(r), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
			if isFederated(r, u.GetNamespace(), u.GetName()) {
				s.addObject(&k, u, explainplan.ConditionOf(u, v1beta1.ConditionPropagated))
			}
			return nil
		})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if apierrors.IsForbidden(err) {
		s.NotCounted = append(s.NotCounted, kind)
		return nil
	}
	if err == nil && k.Objects > 0 {
		s.Kinds = append(s.Kinds, k)
	}
	return err
}

// isFederated reports whether an object is federated; of custom kinds all are.
func isFederated(r schema.GroupVersionResource, namespace, name string) bool {
	return v1beta1.FederatedKindOf(r.GroupResource()) == nil || v1beta1.Federated(r.GroupResource(), namespace, name, "")
}

// countMetadata counts objects of a kind without a status, by the finalizers that admission adds to federated ones. It
// does not read their content, which may be large or secret.
func countMetadata(ctx context.Context, f *client.Federation, s *status, r schema.GroupVersionResource, k *kindStatus) error {
	return f.ListMetadata(ctx, r, func(item metav1.Object) {
		if isFederated(r, item.GetNamespace(), item.GetName()) && hasOurFinalizer(item) {
			noted := &unstructured.Unstructured{}
			noted.SetAnnotations(item.GetAnnotations())
			s.addObject(k, item, explainplan.ConditionOf(noted, v1beta1.ConditionPropagated))
		}
	})
}

func hasOurFinalizer(o metav1.Object) bool {
	return strings.Contains(strings.Join(o.GetFinalizers(), " "), v1beta1.DeleteFromClustersFinalizer)
}

// countCustom counts the custom kinds that policies name.
func countCustom(ctx context.Context, f *client.Federation, s *status) error {
	policies, err := f.Policies(ctx, "")
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, p := range policies {
		for _, sel := range p.Spec.ResourceSelectors {
			gv, err := schema.ParseGroupVersion(sel.APIVersion)
			if err != nil || seen[gv.Group+"/"+sel.Kind] {
				continue
			}
			seen[gv.Group+"/"+sel.Kind] = true
			r, _, err := f.Resource(strings.TrimSuffix(sel.Kind+"."+gv.Group, "."))
			if err != nil || v1beta1.FederatedKindOf(r.GroupResource()) != nil {
				continue // the policy of a kind that is not served reports that
			}
			if err := countKind(ctx, f, s, r, sel.Kind); err != nil {
				return err
			}
		}
	}
	return nil
}

// clusterStatusOf returns the state of a cluster.
func clusterStatusOf(c *v1beta1.Cluster) clusterStatus {
	s := clusterStatus{
		Name: c.Name, Region: c.Status.Region, Zones: c.Status.Zones, Version: c.Status.KubernetesVersion,
		Ready: c.IsReady(), Phase: string(c.Phase()), phaseWithShare: c.PhaseWithShare(), DNSWeight: c.DNSWeight(), OutOfService: c.OutOfService(),
	}
	for _, t := range c.Spec.Taints {
		s.Taints = append(s.Taints, t.ToString())
	}
	if !s.Ready {
		s.Message = c.WhyNotReady()
	}
	if f := c.Status.Failover; f != nil {
		s.Since, s.Percent = &f.Since, f.Percent
		if f.Phase != v1beta1.PhaseServing {
			s.Message = strings.Join(withoutWord([]string{s.Message, f.Message}, ""), "; ")
		}
	}
	for _, h := range c.Status.DeletionsPendingApproval {
		s.DeletionsPendingApproval += h.Copies
	}
	partly, drill := "", ""
	if c := c.Drill(); c != nil {
		drill = c.Message
	}
	if c := c.Condition(v1beta1.ClusterPartiallyReachable); c != nil {
		s.PartiallyReachable, partly = true, c.Message
	}
	s.Message = strings.Join(withoutWord([]string{drill, s.Message, drainWaits(c), partly, pendingDeletions(c)}, ""), "; ")
	if room := c.Status.Capacity; room != nil {
		s.Free = map[corev1.ResourceName]string{}
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
			free := room.Allocatable[name].DeepCopy()
			free.Sub(room.Requested[name])
			s.Free[name] = free.String()
		}
		s.Unschedulable = unschedulablePods(room)
	}
	return s
}

func unschedulablePods(room *v1beta1.ClusterCapacity) (pods int64) {
	for _, u := range room.Unschedulable {
		pods += int64(u.Pods)
	}
	return pods
}
