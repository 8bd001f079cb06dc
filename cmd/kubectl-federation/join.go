package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	"federation/clusterregistry/join"
	"federation/clusterregistry/join/addons"
)

type joinCommand struct {
	sides
	genericiooptions.IOStreams
	address     string
	allowProxy  bool
	podLogs     bool
	mcs         bool
	saysMCS     bool
	coreDNS     bool
	kinds       []string
	protected   []string
	accepted    []string
	podSecurity string
	topology    v1beta1.ClusterTopology
	networks    []string
	pods        []string
	network     string
	nodeAgent   nodeAgent
	agent       agent
}

const joinExample = `  # The cluster is the context "east" of the kubeconfig whose current context is the federation
  kubectl federation join east-a --member-context east

  # The cluster has a kubeconfig of its own
  kubectl federation join east-a --member-kubeconfig ~/east.kubeconfig

  # The federation reaches the cluster at another address than you do
  kubectl federation join east-a --member-context east --address 10.0.0.5:6443

  # Nobody can connect to the cluster, as behind NAT: an agent in it connects to the federation
  kubectl federation join east-a --member-context east --pull --agent-image IMAGE --federation-server https://fed.example.com:6443

  # Objects of a custom kind are to be spread to it, too
  kubectl federation join east-a --member-context east --custom-kinds widgets.example.com

  # Teams have namespaces in it already, and the federation is to take them over
  kubectl federation join east-a --member-context east --accept-namespaces default,shop,office

  # It may not say that it is elsewhere, or that the addresses of others are its own
  kubectl federation join east-a --member-context east --region east --zones east-1a,east-1b --load-balancer-cidrs 192.0.2.0/24

  # Services of other clusters are to be imported into it, and its own exported, by ServiceExports
  kubectl federation join east-a --member-context east --with-mcs --patch-coredns --network east

  # Services in it are to be served by the node agent, also by other clusters when its own pods are gone
  kubectl federation join east-a --member-context east --with-nodeagent --nodeagent-image IMAGE

  # What became of it
  kubectl get clusters`

func newJoin(streams genericiooptions.IOStreams) *cobra.Command {
	o := &joinCommand{IOStreams: streams}
	c := &cobra.Command{
		Use:   "join NAME (--member-context CONTEXT | --member-kubeconfig FILE)",
		Short: "Make a cluster a member of the federation",
		Long: `Make a cluster a member of the federation, under NAME.

In the cluster it makes the namespace federation-system with an account that may do what
propagation needs and no more, and fences (ValidatingAdmissionPolicies) that hold it to
objects of the federation, outside of protected namespaces, and ClusterProperties that say what the cluster and the
federation are called; at the federation a Cluster and a Secret with the account's
token, which the federation renews by itself. Joining again refreshes all of this.

You need an administrator's rights in the cluster for this, once. At the federation you need the cluster role
federation-cluster-admin, and the right to read and write Secrets in its namespace federation-system. To reach a cluster through
the federation (--allow-proxy), people need the cluster role federation-cluster-proxy, or one like it that names clusters.`,
		Example: joinExample,
		Args:    oneName,
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(o.nodeAgent.check(c.Flags()), o.agent.check(c.Flags())); err != nil {
				return err
			}
			if o.coreDNS && !o.mcs {
				return errors.New("--patch-coredns needs --with-mcs")
			}
			o.saysMCS = c.Flags().Changed("with-mcs")
			return o.run(c.Context(), args[0])
		},
	}
	o.addFlags(c)
	o.nodeAgent.addFlags(c.Flags())
	o.agent.addFlags(c.Flags())
	o.addOwnFlags(c.Flags())
	c.MarkFlagsOneRequired("member-context", "member-kubeconfig")
	return c
}

// addOwnFlags adds those that say how the cluster joins.
func (o *joinCommand) addOwnFlags(f *pflag.FlagSet) {
	f.StringVar(&o.address, "address", "", "host:port at which the federation reaches the cluster; without it the one in the kubeconfig")
	f.BoolVar(&o.allowProxy, "allow-proxy", false, "let the federation act in the cluster as any user, for clusters/NAME/proxy, and its administrators (group "+v1beta1.AdminsGroup+") do everything there")
	f.BoolVar(&o.podLogs, "pod-logs", false, "let the federation read the logs of pods, for kubectl logs of those who may get pods/log at the federation")
	f.BoolVar(&o.mcs, "with-mcs", false, "let Services be exported from the cluster and imported into it: define ServiceExports and ServiceImports (KEP-1645), and give the rights to them; what an earlier join said is kept, and --with-mcs=false takes the rights away")
	f.BoolVar(&o.coreDNS, "patch-coredns", false, "have the cluster's CoreDNS serve the names of imported Services, below clusterset.local: change the Corefile in ConfigMap kube-system/coredns, and give its account the right to see ServiceImports")
	f.StringSliceVar(&o.kinds, "custom-kinds", nil, "custom kinds, each as `RESOURCE.GROUP`, that the federation may spread to the cluster; those of an earlier join are kept")
	f.StringSliceVar(&o.protected, "protected-namespaces", join.DefaultProtectedNamespaces, "`NAMESPACES` of the cluster that the federation may not touch, beside its own; a * at the end stands for any rest")
	f.StringSliceVar(&o.accepted, "accept-namespaces", join.DefaultAcceptedNamespaces, "`NAMESPACES` that the cluster has already and that the federation may put objects into: they get the label "+join.AcceptLabel+", which you can also set and take off yourself")
	f.StringVar(&o.podSecurity, "pod-security-level", join.Baseline, "`LEVEL` of the Pod Security Standards that pods of the federation are held to in the cluster, whatever their namespaces allow: "+strings.Join(join.PodSecurityLevels, " or "))
	f.StringVar(&o.topology.Region, "region", "", "where the cluster is, whatever its nodes say; --region and --zones replace what an earlier join said; without both that is kept")
	f.StringSliceVar(&o.topology.Zones, "zones", nil, "the `ZONES` that the cluster is in, whatever its nodes say")
	f.StringSliceVar(&o.networks, "load-balancer-cidrs", nil, "`NETWORKS` that addresses of its load balancers are in: others are not used, nor host names; those of an earlier join are kept")
	f.StringSliceVar(&o.pods, "pod-cidrs", nil, "`NETWORKS` that addresses of its pods are in: other clusters are not led to others; those of an earlier join are kept")
	f.StringVar(&o.network, "network", "", "`NAME` of the network that its pods are in: pods of clusters with equal names reach each other by their addresses; that of an earlier join is kept")
}

const coreDNSPatched = "CoreDNS serves clusterset.local, when it has read its Corefile: within a minute where that has the plugin reload, else after kubectl -n kube-system rollout restart deployment coredns\n"

func oneName(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("give one NAME of a cluster, not %d: %q", len(args), args)
	}
	return nil
}

func (o *joinCommand) run(ctx context.Context, name string) error {
	if err := o.check(); err != nil {
		return err
	}
	federation, _, err := o.target().config()
	if err != nil {
		return err
	}
	f, err := o.target().connect()
	if err != nil {
		return err
	}
	member, err := o.member()
	if err != nil {
		return err
	}
	if err := checkTransferable(federation, member); err != nil {
		return err
	}
	r, err := o.request(name, f, member)
	if err != nil {
		return err
	}
	if o.nodeAgent.with {
		if err := o.nodeAgent.addToJoin(ctx, f, member, &r); err != nil {
			return err
		}
	}
	if err := o.agent.addToJoin(ctx, federation, f.Kube, &r); err != nil {
		return err
	}
	if o.coreDNS {
		changed, err := addons.PatchCoreDNS(ctx, r.Member, &r)
		if err != nil {
			return fmt.Errorf("--patch-coredns: %w", err)
		}
		if changed {
			tell(o.Out, coreDNSPatched)
		}
	}
	joined, err := join.Join(ctx, r)
	if err != nil {
		return err
	}
	if o.mcs && !o.coreDNS {
		tell(o.Out, addons.CoreDNSHint)
	}
	if o.agent.pull && o.agent.Image == "" {
		tell(o.Out, "%s", o.agent.commands(&o.sides, name))
		return nil
	}
	return o.waitReady(ctx, f, joined)
}

// request is what the flags ask for.
func (o *joinCommand) request(name string, f *client.Federation, member *rest.Config) (r join.Request, err error) {
	server := member.Host
	if o.address != "" {
		server = "https://" + o.address
	}
	r = join.Request{
		Name: name, Federation: f.Kube, FederationDynamic: f.Dynamic, Server: server, CA: member.CAData, AllowProxy: o.allowProxy, PodLogs: o.podLogs, AllowBlackhole: o.nodeAgent.Blackhole,
		Network: o.network, CustomKinds: o.kinds, ProtectedNamespaces: o.protected, AcceptedNamespaces: o.accepted, PodSecurityLevel: o.podSecurity, LoadBalancerCIDRs: o.networks, PodCIDRs: o.pods, Say: stepPrinter(o.IOStreams),
	}
	if o.saysMCS {
		r.MultiClusterServices = &o.mcs
	}
	if o.topology.Region != "" || len(o.topology.Zones) > 0 {
		r.Topology = &o.topology
	}
	if r.Member, err = kubernetes.NewForConfig(member); err != nil {
		return r, err
	}
	r.MemberAs = func(as rest.ImpersonationConfig) (kubernetes.Interface, error) {
		config := rest.CopyConfig(member)
		config.Impersonate = as
		return kubernetes.NewForConfig(config)
	}
	r.MemberDynamic, err = dynamic.NewForConfig(member)
	return r, err
}

// checkTransferable rejects what an address, a CA and a token cannot express to the federation.
func checkTransferable(federation, member *rest.Config) error {
	if err := rest.LoadTLSFiles(member); err != nil {
		return err
	}
	switch {
	case member.Host == federation.Host:
		return fmt.Errorf("the cluster is the federation itself (%s): choose another --member-context, or the federation with --context", member.Host)
	case member.Insecure:
		return errors.New("the cluster's kubeconfig has insecure-skip-tls-verify: the federation would hand its token to whoever answers; give it certificate-authority-data")
	case member.ServerName != "":
		return fmt.Errorf("the cluster's kubeconfig has tls-server-name %q: the federation needs an --address that the certificate is for", member.ServerName)
	}
	return nil
}

// waitReady waits until the cluster is ready as it has joined now. joined is the Cluster that the join wrote.
func (o *joinCommand) waitReady(ctx context.Context, f *client.Federation, joined *v1beta1.Cluster) error {
	name := joined.Name
	if o.timeout == 0 {
		tell(o.Out, "cluster %s joined\n", name)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	c := &v1beta1.Cluster{}
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		is, err := client.Read[v1beta1.Cluster](ctx, f.Dynamic.Resource(v1beta1.ClustersResource), name)
		if err != nil {
			return false, err
		}
		c = is
		return c.IsReady() && checkedSince(joined, c), nil
	})
	switch {
	case err == nil:
		tell(o.Out, "cluster %s joined and is ready\n", name)
		return nil
	case c.IsReady():
		return fmt.Errorf("cluster %s joined, but no check has said within %v whether it is ready at its address and with its credential of now: do the federation's controllers run?", name, o.timeout)
	}
	return fmt.Errorf("cluster %s joined, but is not ready after %v: %s", name, o.timeout, c.WhyNotReady())
}

// checkedSince reports whether the condition Ready of a cluster is of a later check than that of the Cluster that a join wrote. The federation stores the
// first good check of what a join wrote.
func checkedSince(joined, is *v1beta1.Cluster) bool {
	was, ready := joined.Condition(v1beta1.ClusterReady), is.Condition(v1beta1.ClusterReady)
	return was == nil || ready != nil && (ready.Status != was.Status || !ready.LastProbeTime.Equal(&was.LastProbeTime))
}
