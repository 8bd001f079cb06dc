package plan

import (
	"cmp"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	failoverplan "federation/controllers/failover/plan"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/dnsprovider"
)

// recordChanges returns the DNS record sets that would change, sorted by name and type.
func recordChanges(in Input, then []*v1beta1.Cluster) (changes []v1beta1.RecordChange) {
	if in.Info == nil {
		return nil
	}
	zone, err := dnsprovider.CanonicalName(in.Info.DNSZone)
	if err != nil {
		return nil // the controllers do not start with such a zone
	}
	before, after := in.servedClusters(in.Clusters), in.servedClusters(then)
	claims := servicednsplan.NewClaims(servicednsplan.Zone{Federation: in.Info.Name, Name: zone})
	for i := range in.Named {
		claims.Set(&in.Named[i])
	}
	objects := servedBy(in.Named, differingClusters(before, after))
	sets := func(clusters []servicednsplan.Cluster) []dnsprovider.RRSet {
		return servicednsplan.Records(servicednsplan.Input{
			Federation: in.Info.Name, Zone: zone, TTL: uint32(in.Info.DNSTTL / time.Second), Objects: objects, Claims: claims, Clusters: clusters, Refuse: addressFilter(in.Info),
		}).Records
	}
	return setChanges(sets(before), sets(after))
}

// addressFilter returns an error for addresses that the federation does not publish.
func addressFilter(info *v1beta1.Info) func(netip.Addr) error {
	if info.PublicAddressesOnly {
		return v1beta1.RefuseAllButPublicAddresses
	}
	return v1beta1.RefuseAddress
}

// servedClusters returns the clusters as names see them.
func (in *Input) servedClusters(clusters []*v1beta1.Cluster) (out []servicednsplan.Cluster) {
	held := failoverplan.CutOff(clusters, in.failoverSettings(), in.Now)
	for _, c := range clusters {
		out = append(out, servicednsplan.ClusterOf(c, held))
	}
	return out
}

// differingClusters returns the clusters that differ between before and after; both are in the same order.
func differingClusters(before, after []servicednsplan.Cluster) map[string]bool {
	out := map[string]bool{}
	for i := range before {
		if !reflect.DeepEqual(before[i], after[i]) {
			out[before[i].Name] = true
		}
	}
	return out
}

// servedBy returns the objects with addresses in one of the clusters. Other clusters do not affect a name.
func servedBy(objects []servicednsplan.Object, clusters map[string]bool) (some []servicednsplan.Object) {
	for i := range objects {
		o := &objects[i]
		if o.Ingresses != nil && slices.ContainsFunc(o.Ingresses.Items, func(item v1beta1.ClusterServiceIngress) bool { return clusters[item.Cluster] }) {
			some = append(some, *o)
		}
	}
	return some
}

// setChanges returns the record sets that differ between before and after, sorted by name and type.
func setChanges(before, after []dnsprovider.RRSet) (changes []v1beta1.RecordChange) {
	type key struct{ name, kind string }
	all := map[key]*v1beta1.RecordChange{}
	at := func(set dnsprovider.RRSet) *v1beta1.RecordChange {
		k := key{set.Name, string(set.Type)}
		if all[k] == nil {
			all[k] = &v1beta1.RecordChange{Name: k.name, Type: k.kind}
		}
		return all[k]
	}
	for _, set := range before {
		at(set).Before = set.Rdata
	}
	for _, set := range after {
		at(set).After = set.Rdata
	}
	for _, c := range all {
		if !slices.Equal(c.Before, c.After) {
			changes = append(changes, *c)
		}
	}
	slices.SortFunc(changes, func(a, b v1beta1.RecordChange) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type, b.Type))
	})
	return changes
}
