package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	failoverplan "federation/controllers/failover/plan"
	"federation/controllers/servicedns/plan"
	"federation/dnsprovider"
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
	in, err := dnsInput(ctx, f)
	if err != nil {
		return err
	}
	shown := func(o plan.Object) bool { return o.Namespace == f.Namespace && (key == "" || key == o.Kind+" "+o.Name) }
	if o.allNamespaces {
		shown = func(o plan.Object) bool { return key == "" || key == o.Kind+" "+o.Name }
	}
	view := viewDNS(in, plan.Records(in), shown)
	if key != "" && len(view.Objects) == 0 {
		return fmt.Errorf("%s has no names in DNS: there is no such object in the namespace, or no cluster has a load balancer for it", strings.ToLower(key))
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

// lookupTimeout bounds the lookup of all host names of load balancers.
const lookupTimeout = 5 * time.Second

// dnsInput reads the input of the names' decision.
func dnsInput(ctx context.Context, f *client.Federation) (in plan.Input, err error) {
	info, err := f.Info(ctx)
	if err != nil {
		return in, err
	}
	clusters, err := f.Clusters(ctx)
	if err != nil {
		return in, err
	}
	if in, err = dnsWorld(ctx, f, info, clusters); err != nil {
		return in, err
	}
	in.Explain = true
	if in.Claims, err = dnsClaims(ctx, f, plan.Zone{Federation: in.Federation, Name: in.Zone}); err != nil {
		return in, err
	}
	if in.Objects, err = namedObjects(ctx, f, in.Claims); err != nil {
		return in, err
	}
	in.Resolved = lookupHosts(ctx, plan.Records(in).Resolve)
	return in, nil
}

// dnsWorld reads that input without the named objects.
func dnsWorld(ctx context.Context, f *client.Federation, info *v1beta1.Info, clusters []*v1beta1.Cluster) (in plan.Input, err error) {
	if info == nil {
		return in, errors.New("the federation does not say which zone it has: its controllers have not run yet")
	}
	in = plan.Input{Federation: info.Name, TTL: uint32(info.DNSTTL / time.Second)}
	if in.Zone, err = dnsprovider.CanonicalName(info.DNSZone); err != nil {
		return in, err
	}
	held := failoverplan.CutOff(clusters, failoverplan.SettingsOf(*info), time.Now())
	for _, c := range clusters {
		in.Clusters = append(in.Clusters, plan.ClusterOf(c, held))
	}
	failing, err := f.Published(ctx, v1beta1.DNSHealthChecksConfigMap)
	if err != nil {
		return in, err
	}
	in.Failing, err = plan.ParseFailures(failing[v1beta1.DNSHealthChecksFailing])
	return in, err
}

// dnsClaims reads the owners and the grants of hosts.
func dnsClaims(ctx context.Context, f *client.Federation, zone plan.Zone) (*plan.Claims, error) {
	hosts, err := f.Published(ctx, v1beta1.DNSHostsConfigMap)
	if err != nil {
		return nil, err
	}
	grants, err := f.Grants(ctx)
	if err != nil {
		return nil, err
	}
	claims := plan.NewClaims(zone)
	claims.Keep(plan.ParseKept(hosts))
	claims.Grant(grants)
	return claims, nil
}

// namedObjects reads all Services and Ingresses, and their claims: another claimant of a host may be elsewhere.
func namedObjects(ctx context.Context, f *client.Federation, claims *plan.Claims) (all []plan.Object, err error) {
	policies, err := f.Policies(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, r := range []string{"services", "ingresses.networking.k8s.io"} {
		resource := v1beta1.FederatedKindOf(schema.ParseGroupResource(r)).Resource
		err := client.ListPages(ctx, f.Dynamic.Resource(resource), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
			own := slices.DeleteFunc(slices.Clone(policies), func(p *v1beta1.PlacementPolicy) bool { return p.Namespace != u.GetNamespace() })
			o, err := plan.Read(u, own)
			if err != nil {
				return fmt.Errorf("%s: %w", o.Key(), err)
			}
			claims.Set(&o)
			if o.Ingresses != nil {
				all = append(all, o)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// lookupHosts asks this machine's resolver, and leaves out unknown hosts.
func lookupHosts(ctx context.Context, hosts []string) map[string][]netip.Addr {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	known := map[string][]netip.Addr{}
	for _, host := range hosts {
		if found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host); err == nil {
			known[host] = found
		}
	}
	return known
}
