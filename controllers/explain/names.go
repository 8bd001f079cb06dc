package explain

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	"federation/controllers/explain/plan"
	failoverplan "federation/controllers/failover/plan"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/dnsprovider"
)

// These bound the lookup of host names of load balancers: of all that there are, and of those of one object.
const (
	lookupTimeout = 5 * time.Second
	shortLookup   = 2 * time.Second
)

// Names reads what the names of Services and Ingresses follow from: all of them, for another claimant of a host may be in any namespace.
func Names(ctx context.Context, f *client.Federation) (in servicednsplan.Input, err error) {
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
	if in.Claims, err = dnsClaims(ctx, f, servicednsplan.Zone{Federation: in.Federation, Name: in.Zone}); err != nil {
		return in, err
	}
	if in.Objects, err = namedObjects(ctx, f, in.Claims); err != nil {
		return in, err
	}
	in.Resolved = lookupHosts(ctx, servicednsplan.Records(in).Resolve, lookupTimeout)
	return in, nil
}

// WhyNoNames returns an error that says why a Service or an Ingress, which need not exist, has no names in the zone.
func WhyNoNames(ctx context.Context, f *client.Federation, kind, namespace, name, zone string) error {
	resource := plan.Services
	if kind == servicednsplan.KindIngress {
		resource = plan.Ingresses
	}
	u, err := f.Dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return noSuchObject(ctx, f, resource, namespace, name, err)
	}
	return fmt.Errorf("%s %s has no names in DNS: %s", strings.ToLower(kind), name, plan.WhyNoNames(u, zone))
}

// dnsWorld reads that input without the named objects.
func dnsWorld(ctx context.Context, f *client.Federation, info *v1beta1.Info, clusters []*v1beta1.Cluster) (in servicednsplan.Input, err error) {
	if info == nil {
		return in, errors.New("the federation does not say which zone it has: its controllers have not run yet")
	}
	in = servicednsplan.Input{Federation: info.Name, TTL: uint32(info.DNSTTL / time.Second)}
	if in.Zone, err = dnsprovider.CanonicalName(info.DNSZone); err != nil {
		return in, err
	}
	held := failoverplan.CutOff(clusters, failoverplan.SettingsOf(*info), time.Now())
	for _, c := range clusters {
		in.Clusters = append(in.Clusters, servicednsplan.ClusterOf(c, held))
	}
	failing, err := f.Published(ctx, v1beta1.DNSHealthChecksConfigMap)
	if err != nil {
		return in, err
	}
	in.Failing, err = servicednsplan.ParseFailures(failing[v1beta1.DNSHealthChecksFailing])
	return in, err
}

// dnsClaims reads the owners and the grants of hosts.
func dnsClaims(ctx context.Context, f *client.Federation, zone servicednsplan.Zone) (*servicednsplan.Claims, error) {
	hosts, err := f.Published(ctx, v1beta1.DNSHostsConfigMap)
	if err != nil {
		return nil, err
	}
	grants, err := f.Grants(ctx)
	if err != nil {
		return nil, err
	}
	claims := servicednsplan.NewClaims(zone)
	claims.Keep(servicednsplan.ParseKept(hosts))
	claims.Grant(grants)
	return claims, nil
}

// namedObjects reads all Services and Ingresses, and their claims: another claimant of a host may be elsewhere.
func namedObjects(ctx context.Context, f *client.Federation, claims *servicednsplan.Claims) (all []servicednsplan.Object, err error) {
	policies, err := f.Policies(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, r := range []string{"services", "ingresses.networking.k8s.io"} {
		resource := v1beta1.FederatedKindOf(schema.ParseGroupResource(r)).Resource
		err := client.ListPages(ctx, f.Dynamic.Resource(resource), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
			own := slices.DeleteFunc(slices.Clone(policies), func(p *v1beta1.PlacementPolicy) bool { return p.Namespace != u.GetNamespace() })
			o, err := servicednsplan.Read(u, own)
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
func lookupHosts(ctx context.Context, hosts []string, timeout time.Duration) map[string][]netip.Addr {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	known := map[string][]netip.Addr{}
	for _, host := range hosts {
		if found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host); err == nil {
			known[host] = found
		}
	}
	return known
}
