package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
)

// contribution is what one cluster gives to an import.
type contribution struct {
	*Source
	slices []*discoveryv1.EndpointSlice
	// ready: at least one endpoint is.
	ready bool
	// order is by rank, then by the selectors of clusters: a lower one is used.
	order order
}

// order compares clusters. Its tier is 0 for those that no selector selects, and below for others, the lowest for the first selector.
type order struct {
	rank Rank
	tier int
}

func (o order) compare(with order) int {
	return cmp.Or(cmp.Compare(o.rank, with.rank), cmp.Compare(o.tier, with.tier))
}

// desiredSlices returns the slices that the member should have of an import, by name, and the clusters whose slices stay as
// they are. tiers are those of clusters, by name.
func (in *Input) desiredSlices(imported *mcsv1beta1.ServiceImport, tiers map[string]int) (want map[string]*discoveryv1.EndpointSlice, keep map[string]bool) {
	want, keep = map[string]*discoveryv1.EndpointSlice{}, map[string]bool{}
	all := in.contributions(imported, tiers)
	best := order{rank: Lost}
	for _, c := range all {
		if c.ready && c.order.compare(best) < 0 {
			best = c.order
		}
	}
	for _, c := range all {
		if !c.Known && c.Rank != Lost {
			keep[c.Cluster] = true
			continue
		}
		demoted := c.order.compare(best) > 0
		for _, s := range c.slices {
			for i := range s.Endpoints {
				setReady(&s.Endpoints[i].Conditions, demoted, !c.Known)
			}
			want[s.Name] = s
		}
	}
	return want, keep
}

// rank is the rank of a cluster for imports of a type. Peers of a headless Service have to find each other while their cluster is
// drained.
func (s *Source) rank(of mcsv1beta1.ServiceImportType) Rank {
	if of == mcsv1beta1.Headless && s.Rank == Drained {
		return Serving
	}
	return s.Rank
}

// setReady takes an endpoint out of use, or puts it into use again that others had taken out.
func setReady(c *discoveryv1.EndpointConditions, demoted, again bool) {
	no, terminating := false, c.Terminating != nil && *c.Terminating
	switch {
	case demoted:
		c.Ready, c.Serving = &no, &no
	case again:
		yes := !terminating
		c.Ready, c.Serving = &yes, &yes
	}
}

// contributions returns what the clusters give, the best 64 of them.
func (in *Input) contributions(imported *mcsv1beta1.ServiceImport, tiers map[string]int) (all []contribution) {
	for i := range in.Sources {
		s := &in.Sources[i]
		c := contribution{Source: s, order: order{s.rank(imported.Spec.Type), tiers[s.Cluster]}}
		switch {
		case !c.Known:
			c.slices = in.kept(c.Cluster)
			c.ready = len(c.slices) > 0
		case c.Export != nil && slices.ContainsFunc(imported.Status.Clusters, func(s mcsv1beta1.ClusterStatus) bool { return s.Cluster == c.Cluster }):
			c.slices = in.slicesOf(c.Source, imported)
			c.ready = slices.ContainsFunc(c.slices, func(s *discoveryv1.EndpointSlice) bool {
				return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return *e.Conditions.Ready })
			})
		}
		if len(c.slices) > 0 {
			all = append(all, c)
		}
	}
	if len(all) <= maxSources {
		return all
	}
	slices.SortFunc(all, func(a, b contribution) int {
		return cmp.Or(cmp.Compare(in.distance(a.Cluster), in.distance(b.Cluster)), a.order.compare(b.order), cmp.Compare(in.random(a.Cluster), in.random(b.Cluster)), strings.Compare(a.Cluster, b.Cluster))
	})
	return all[:maxSources]
}

func (in *Input) distance(cluster string) int {
	if cluster == in.Member {
		return 0
	}
	return 1
}

// random returns a pseudo-random number of a cluster that differs between members.
func (in *Input) random(cluster string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(in.Member + "/" + cluster)) // never fails
	n := h.Sum64() * 0x9e3779b97f4a7c15               // names differ at their ends, which changes only few bits
	return n ^ n>>32
}

// kept returns copies of the slices that the member has of a cluster.
func (in *Input) kept(cluster string) (all []*discoveryv1.EndpointSlice) {
	for _, s := range in.Have.Slices {
		if s.Labels[mcsv1beta1.LabelSourceCluster] == cluster {
			all = append(all, s.DeepCopy())
		}
	}
	return all
}

// slicesOf returns the slices of a cluster whose export is known: its pods, where the member reaches them, else its load balancers.
func (in *Input) slicesOf(from *Source, imported *mcsv1beta1.ServiceImport) (all []*discoveryv1.EndpointSlice) {
	if from.Cluster != in.Member && (from.Network == "" || from.Network != in.Network) {
		return in.loadBalancers(from, imported)
	}
	sources := slices.Clone(from.Export.Slices)
	slices.SortFunc(sources, func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	left := map[discoveryv1.AddressType]int{discoveryv1.AddressTypeIPv4: maxEndpoints, discoveryv1.AddressTypeIPv6: maxEndpoints}
	for _, source := range sources {
		ports, ok := portsIn(imported.Spec.Ports, from.Export.Service, source.Ports)
		if !ok || left[source.AddressType] == 0 {
			continue
		}
		s := in.newSlice(from.Cluster, source.Name, source.AddressType, imported)
		s.Ports = ports
		for i := range source.Endpoints {
			e, ok := endpoint(&source.Endpoints[i], source.AddressType, from.Cluster == in.Member)
			if ok && left[source.AddressType] > 0 && (from.Cluster == in.Member || v1beta1.InCIDRs(from.PodCIDRs, netip.MustParseAddr(e.Addresses[0]))) {
				s.Endpoints = append(s.Endpoints, e)
				left[source.AddressType]--
			}
		}
		if len(s.Endpoints) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// loadBalancers returns slices with the addresses of a cluster's load balancers, which are ready if an endpoint behind them is.
func (in *Input) loadBalancers(from *Source, imported *mcsv1beta1.ServiceImport) (all []*discoveryv1.EndpointSlice) {
	var ports []discoveryv1.EndpointPort
	for _, p := range portsOf(from.Export.Service) {
		if hasPort(imported.Spec.Ports, p) {
			ports = append(ports, discoveryv1.EndpointPort{Name: &p.Name, Protocol: &p.Protocol, Port: &p.Port, AppProtocol: p.AppProtocol})
		}
	}
	if len(ports) == 0 || imported.Spec.Type == mcsv1beta1.Headless {
		return nil
	}
	ready := slices.ContainsFunc(from.Export.Slices, func(s *discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready })
	})
	of := map[discoveryv1.AddressType]*discoveryv1.EndpointSlice{}
	ingresses := from.Export.Service.Status.LoadBalancer.Ingress
	if len(ingresses) == 0 && from.Export.Balancer != nil {
		ingresses = from.Export.Balancer.Status.LoadBalancer.Ingress
	}
	for _, ingress := range ingresses {
		a, err := netip.ParseAddr(ingress.IP)
		if err != nil || v1beta1.RefuseAddress(a) != nil || !v1beta1.InCIDRs(from.LoadBalancerCIDRs, a) || a.Zone() != "" {
			continue
		}
		family := familyOf(a)
		s := of[family]
		if s == nil {
			s = in.newSlice(from.Cluster, "load balancers "+string(family), family, imported)
			s.Ports, of[family], all = ports, s, append(all, s)
		}
		if len(s.Endpoints) < maxPorts {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready}})
		}
	}
	return all
}

func familyOf(a netip.Addr) discoveryv1.AddressType {
	if a.Is4() {
		return discoveryv1.AddressTypeIPv4
	}
	return discoveryv1.AddressTypeIPv6
}

func hasPort(ports []mcsv1beta1.ServicePort, p mcsv1beta1.ServicePort) bool {
	return slices.ContainsFunc(ports, func(q mcsv1beta1.ServicePort) bool {
		return p.Name == q.Name && p.Protocol == q.Protocol && p.Port == q.Port
	})
}

// portsIn returns the ports of a slice that are ports of the import: the cluster's Service has a port of that name which the import
// has with the same protocol and number. ok is false where none is left of those that there were.
func portsIn(imported []mcsv1beta1.ServicePort, s *corev1.Service, ports []discoveryv1.EndpointPort) (some []discoveryv1.EndpointPort, ok bool) {
	for _, p := range ports {
		name, protocol := "", corev1.ProtocolTCP
		if p.Name != nil {
			name = *p.Name
		}
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		i := slices.IndexFunc(portsOf(s), func(q mcsv1beta1.ServicePort) bool { return q.Name == name && q.Protocol == protocol })
		if i < 0 || p.Port == nil || *p.Port < 1 || *p.Port > 65535 || !hasPort(imported, portsOf(s)[i]) {
			continue
		}
		some = append(some, discoveryv1.EndpointPort{Name: &name, Protocol: &protocol, Port: p.Port, AppProtocol: s.Spec.Ports[i].AppProtocol})
	}
	return some, len(some) > 0 || isHeadless(s) && len(s.Spec.Ports) == 0
}

// endpoint returns what others get of an endpoint, and whether that is any. Nodes mean something in their own cluster only.
func endpoint(from *discoveryv1.Endpoint, family discoveryv1.AddressType, own bool) (e discoveryv1.Endpoint, ok bool) {
	if len(from.Addresses) == 0 {
		return e, false
	}
	a, err := netip.ParseAddr(from.Addresses[0])
	if err != nil || a.Zone() != "" || familyOf(a) != family || v1beta1.RefuseAddress(a) != nil {
		return e, false
	}
	ready := from.Conditions.Ready == nil || *from.Conditions.Ready
	serving := ready
	if from.Conditions.Serving != nil {
		serving = *from.Conditions.Serving
	}
	e = discoveryv1.Endpoint{Addresses: []string{a.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving}}
	if t := from.Conditions.Terminating; t != nil && *t {
		e.Conditions.Terminating = new(true)
	}
	if h := from.Hostname; h != nil && len(validation.IsDNS1123Label(*h)) == 0 {
		e.Hostname = h
	}
	if z := from.Zone; z != nil && len(validation.IsValidLabelValue(*z)) == 0 {
		e.Zone = z
	}
	if own {
		e.NodeName = from.NodeName
	}
	return e, true
}

// newSlice returns a slice of a cluster, without ports and endpoints. of tells the slices of a cluster apart.
func (in *Input) newSlice(cluster, of string, family discoveryv1.AddressType, imported *mcsv1beta1.ServiceImport) *discoveryv1.EndpointSlice {
	sum := sha256.Sum256([]byte(of))
	s := &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: in.Namespace, Name: fmt.Sprintf("%s.%s.%s", in.Name, cluster, hex.EncodeToString(sum[:4])),
			Labels: map[string]string{
				v1beta1.ManagedByLabel: in.Federation, v1beta1.ShardLabel: strconv.Itoa(v1beta1.Shard(in.Namespace, in.Name)),
				discoveryv1.LabelManagedBy: Manager, mcsv1beta1.LabelServiceName: in.Name, mcsv1beta1.LabelSourceCluster: cluster,
			},
			OwnerReferences: []metav1.OwnerReference{owner(imported)},
		},
		AddressType: family,
	}
	if imported.Spec.Type == mcsv1beta1.ClusterSetIP {
		s.Labels[discoveryv1.LabelServiceName] = DerivedName(in.Name)
	}
	return s
}

// DerivedName returns the name of the Service that serves the import of a Service.
func DerivedName(service string) string { return nameOf(v1beta1.DerivedServicePrefix, service) }

// nameOf returns the name of a Service that is made for another one.
func nameOf(prefix, service string) string {
	most := validation.DNS1035LabelMaxLength - len(prefix)
	if len(service) <= most {
		return prefix + service
	}
	sum := sha256.Sum256([]byte(service))
	return prefix + service[:most-9] + "-" + hex.EncodeToString(sum[:4])
}

// Ours reports whether a slice in a member was made by Decide.
func Ours(labels map[string]string) bool {
	return labels[discoveryv1.LabelManagedBy] == Manager && labels[mcsv1beta1.LabelServiceName] != ""
}
