package plan

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// Manager is the value of the label endpointslice.kubernetes.io/managed-by on our slices.
const Manager = "federation.kubernetes.io"

const (
	// MaxWeight is the highest weight of an address.
	MaxWeight = 1000
	// maxEndpoints is the API's maximum of endpoints in a slice.
	maxEndpoints = 1000
	// maxSources is the maximum of other clusters with slices in a member per Service: without it the total would grow
	// with the square of the number of clusters.
	maxSources = 64
)

// source is another cluster, with what the member gets of it.
type source struct {
	// Offer has the Addresses of all backends.
	servicednsplan.Offer
	backends []Backends
}

// desired returns the slices that the member should have, by name. kept are the clusters whose slices stay as they are
// because not all of their addresses are known yet.
func (in Input) desired() (want map[string]*discoveryv1.EndpointSlice, kept map[string]bool) {
	want, kept = map[string]*discoveryv1.EndpointSlice{}, map[string]bool{}
	if in.Service == nil || in.Service.DeletionTimestamp != nil || len(in.Service.Spec.Ports) == 0 {
		return want, kept
	}
	others := in.sources()
	for _, o := range others {
		kept[o.Cluster] = o.Unresolved
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			n := 0
			for _, b := range o.backends {
				for some := range slices.Chunk(ofFamily(b.Addresses, family), maxEndpoints) {
					s := in.newSlice(o.Offer, family, n)
					s.Ports, s.Endpoints = b.Ports, endpoints(o.Offer, some, o.Rank == lowestRank(others))
					want[s.Name] = s
					n++
				}
			}
		}
	}
	return want, kept
}

// sources returns the other clusters, with the addresses that a slice may hold: the API rejects those that cannot be routed to. Of very
// many it takes the best ranks, the member's region first, then by a pseudo-random order that differs between members.
func (in Input) sources() (others []source) {
	own := servicednsplan.Offer{}
	if i := slices.IndexFunc(in.Offers, func(o servicednsplan.Offer) bool { return o.Cluster == in.Member }); i >= 0 {
		own = in.Offers[i]
	}
	for _, o := range in.Offers {
		if o.Cluster == in.Member {
			continue
		}
		s, ok := in.balancersOf(o)
		if o.ByPods {
			s, ok = in.podsOf(o, own)
		}
		if ok {
			others = append(others, s)
		}
	}
	if len(others) <= maxSources {
		return others
	}
	slices.SortFunc(others, func(a, b source) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), -compareBool(a.Region == own.Region, b.Region == own.Region), cmp.Compare(in.randomOf(a.Cluster), in.randomOf(b.Cluster)), strings.Compare(a.Cluster, b.Cluster))
	})
	return others[:maxSources]
}

// balancersOf returns a cluster with the load balancers that it offers. Where it is unknown what a cluster has, the member keeps the
// addresses that it has been given.
func (in Input) balancersOf(o servicednsplan.Offer) (s source, ok bool) {
	if o.Unknown {
		if o.Addresses = in.addressesOf(o.Cluster); len(o.Addresses) == 0 {
			return s, false
		}
	}
	o.Addresses = slices.DeleteFunc(slices.Clone(o.Addresses), func(a netip.Addr) bool { return v1beta1.RefuseAddress(a) != nil })
	return source{o, []Backends{{in.servicePorts(), o.Addresses}}}, true
}

// servicePorts are the ports at which the Service's load balancers serve.
func (in Input) servicePorts() (ports []discoveryv1.EndpointPort) {
	for _, p := range in.Service.Spec.Ports {
		ports = append(ports, discoveryv1.EndpointPort{Name: &p.Name, Protocol: &p.Protocol, Port: &p.Port, AppProtocol: p.AppProtocol})
	}
	return ports
}

// addressesOf returns the addresses of another cluster that the member has been given so far.
func (in Input) addressesOf(cluster string) (addresses []netip.Addr) {
	for _, s := range in.Have {
		if s.Labels[v1beta1.SourceClusterLabel] != cluster {
			continue
		}
		for _, e := range s.Endpoints {
			for _, text := range e.Addresses {
				if a, err := netip.ParseAddr(text); err == nil {
					addresses = append(addresses, a)
				}
			}
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return addresses
}

// randomOf returns a pseudo-random number of a name that differs between members.
func (in Input) randomOf(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(in.Member + "/" + name)) // never fails
	n := h.Sum64() * 0x9e3779b97f4a7c15            // names differ at their ends, which changes only few bits
	return n ^ n>>32
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// lowestRank returns the lowest rank of offers with an address.
func lowestRank(offers []source) int {
	least := -1
	for _, o := range offers {
		if len(o.Addresses) > 0 && (least < 0 || o.Rank < least) {
			least = o.Rank
		}
	}
	return least
}

func ofFamily(all []netip.Addr, family discoveryv1.AddressType) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(all), func(a netip.Addr) bool { return a.Is4() != (family == discoveryv1.AddressTypeIPv4) })
}

// newSlice returns the n-th slice of an offer in a family, without ports and endpoints. Its name is unique because names of Services
// have no dots.
func (in Input) newSlice(o servicednsplan.Offer, family discoveryv1.AddressType, n int) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: in.Service.Namespace, Name: fmt.Sprintf("%s.%s.%s", in.Service.Name, o.Cluster, map[bool]string{true: "v4", false: "v6"}[family == discoveryv1.AddressTypeIPv4]),
			Labels: map[string]string{
				v1beta1.ManagedByLabel: in.Federation, v1beta1.ShardLabel: strconv.Itoa(v1beta1.Shard(in.Service.Namespace, in.Service.Name)),
				discoveryv1.LabelManagedBy: Manager, v1beta1.RemoteServiceLabel: in.Service.Name, v1beta1.SourceClusterLabel: o.Cluster,
			},
			Annotations:     map[string]string{v1beta1.WeightAnnotation: strconv.Itoa(addressWeight(o))},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: in.Service.Name, UID: in.Service.UID}},
		},
		AddressType: family,
	}
	if n > 0 {
		s.Name += "." + strconv.Itoa(n)
	}
	if o.Region != "" {
		s.Labels[corev1.LabelTopologyRegion] = o.Region
	}
	return s
}

// addressWeight returns the weight of each address of a cluster: together they have the cluster's.
func addressWeight(o servicednsplan.Offer) int {
	weight := int(o.Weight)
	if o.ByPods {
		weight *= podScale
	}
	return min(MaxWeight, max(1, weight/len(o.Addresses)))
}

// endpoints returns one endpoint per address, with its cluster's zone. serving distinguishes a drained or failing
// cluster from a dead one, as for terminating pods.
func endpoints(o servicednsplan.Offer, addresses []netip.Addr, ready bool) (out []discoveryv1.Endpoint) {
	serving := ready || o.Rank < servicednsplan.RankUnseen
	for _, a := range addresses {
		e := discoveryv1.Endpoint{Addresses: []string{a.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving}}
		if o.Zone != "" {
			e.Zone = &o.Zone
		}
		out = append(out, e)
	}
	return out
}
