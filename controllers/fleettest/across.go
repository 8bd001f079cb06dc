package fleettest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
)

// toldOfOthers is what a member has been told of other clusters that have a Service: "ADDRESS ready" or "ADDRESS", by cluster.
func toldOfOthers(m *Member, service *unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	of := labels.SelectorFromSet(labels.Set{v1beta1.RemoteServiceLabel: service.GetName()})
	for _, slice := range m.API.List(endpointSlices, of) {
		if slice.GetNamespace() != service.GetNamespace() {
			continue
		}
		out[slice.GetLabels()[v1beta1.SourceClusterLabel]] = valueAt(slice, "endpoints.0.addresses.0") +
			map[bool]string{true: " ready"}[valueAt(slice, "endpoints.0.conditions.ready") == "true"]
	}
	return out
}

// addressGiven is the address that a member's load balancer has for a Service of ours, "" where none of its endpoints is ready.
func addressGiven(f *Fleet, m *Member, service *unstructured.Unstructured) string {
	copied := m.API.Get(services, service.GetNamespace(), service.GetName())
	if !f.copyOf(service, copied) || valueAt(copied, "spec.type") != "LoadBalancer" || !m.isReady(service) {
		return ""
	}
	if address := valueAt(copied, "status.loadBalancer.ingress.0.ip"); address != "none" {
		return address
	}
	return ""
}

// podAddressGiven is the address that a member's pods have for clients in another one: of a Service without load balancers, where both are in one
// network; "" where none of its endpoints is ready.
func podAddressGiven(f *Fleet, m, to *Member, service *unstructured.Unstructured) string {
	copied, network := m.API.Get(services, service.GetNamespace(), service.GetName()), f.clusters.named(m.Name).Spec.Network
	if !f.copyOf(service, copied) || valueAt(copied, "spec.type") == "LoadBalancer" || network == "" || network != f.clusters.named(to.Name).Spec.Network || !m.isReady(service) {
		return ""
	}
	return m.podAddress()
}

// isReady reports whether a member says that an endpoint of a Service is ready.
func (m *Member) isReady(service *unstructured.Unstructured) bool {
	of := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.GetName()})
	return slices.ContainsFunc(m.API.List(endpointSlices, of), func(slice *unstructured.Unstructured) bool {
		return slice.GetNamespace() == service.GetNamespace() && valueAt(slice, "endpoints.0.conditions.ready") == "true"
	})
}

// copyOf reports whether what a member has is ours, of this object, and stays.
func (f *Fleet) copyOf(u, there *unstructured.Unstructured) bool {
	return f.isCopy(there) && there.GetDeletionTimestamp() == nil &&
		there.GetAnnotations()[v1beta1.SourceAnnotation] == string(u.GetUID())
}

// checkAcross checks that what a member has been told of each cluster that can be seen is true of it.
func checkAcross(f *Fleet, m *Member, law lawFunc) {
	if m.Wire.Refuses(endpointSlices.Resource, "") {
		return
	}
	for _, u := range f.Federation.List(services, nil) {
		if u.GetDeletionTimestamp() != nil || !f.copyOf(u, m.API.Get(services, u.GetNamespace(), u.GetName())) {
			continue
		}
		f.tally.check("clusters know of each other")
		told := toldOfOthers(m, u)
		for _, o := range settledMembers(f) {
			want, got := addressGiven(f, o, u)+podAddressGiven(f, o, m, u), told[o.Name]
			if drained := f.clusters.named(o.Name).DNSWeight() == 0; want != "" && (!drained || got != want) {
				want += " ready" // a drained one may be either: that depends on the others
			}
			if o != m && got != want {
				law("clusters know of each other", "%s has been told of %s in %s: %q, want %q", m.Name, u.GetName(), o.Name, got, want)
			}
		}
	}
}

// checkAddresses checks that a Service says at which addresses clusters serve it: at those of all that can be seen, and at none that no
// cluster has.
func checkAddresses(f *Fleet, name string, u *unstructured.Unstructured, law lawFunc) {
	f.tally.check("a Service has its clusters' addresses")
	settled, missing, says, known := settledMembers(f), []string{}, addressesOf(u), map[string]bool{}
	for _, m := range f.members {
		there := m.API.Get(services, u.GetNamespace(), u.GetName())
		if !f.copyOf(u, there) {
			continue
		}
		for _, address := range addressesOf(there) {
			known[address] = true
			if slices.Contains(settled, m) && !m.Wire.Refuses(services.Resource, "") && !slices.Contains(says, address) {
				missing = append(missing, address)
			}
		}
	}
	unknown := slices.DeleteFunc(slices.Clone(says), func(address string) bool { return known[address] })
	if len(missing)+len(unknown) > 0 {
		law("a Service has its clusters' addresses", "%s says %v: it lacks %v, and %v are nowhere", name, says, missing, unknown)
	}
}

// addressesOf are the addresses of a Service's load balancers.
func addressesOf(u *unstructured.Unstructured) (addresses []string) {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "loadBalancer", "ingress")
	for _, item := range list {
		addresses = append(addresses, item.(map[string]any)["ip"].(string))
	}
	return addresses
}

// takenAway is what is against the law in a write to a member: what it was told of a cluster that served when it was last seen
// stays while that cannot be seen. It is called with the fleet locked.
func takenAway(f *Fleet, member string, r memapi.Request) []error {
	if r.Verb != "delete" || r.Resource != endpointSlices {
		return nil
	}
	f.tally.check("nothing is taken away because a cluster cannot be seen")
	name, rest, _ := strings.Cut(r.Name, ".")
	source, _, _ := strings.Cut(rest, ".")
	u, c := f.Federation.Get(services, r.Namespace, name), f.clusters.named(source)
	if time.Since(f.laws.taken[workloadKey{services.Resource, r.Namespace, name}]) < hearing || time.Since(f.members[member].replaced) < hearing {
		return nil // the copy went, and what belongs to it, too: it may be there again before that is done
	}
	if u == nil || u.GetDeletionTimestamp() != nil || c == nil || c.IsReady() ||
		valueAt(u, "spec.type") != "LoadBalancer" || !f.copyOf(u, f.members[member].API.Get(services, r.Namespace, name)) {
		return nil
	}
	served := v1beta1.ParseServiceIngresses(u.GetAnnotations()[v1beta1.ServiceIngressesAnnotation]).Items
	if !slices.ContainsFunc(served, func(i v1beta1.ClusterServiceIngress) bool { return i.Cluster == source && i.Items != nil }) {
		return nil
	}
	return []error{against("nothing is taken away because a cluster cannot be seen", "%s is not told of %s in %s any more", member, name, source)}
}

// showAcross carries out show across KIND/NAME: what each member has been told of the other clusters that have the Service.
func showAcross(p *player, args []string) (out []string, err error) {
	if err := need(args, 1, "show across svc/NAME"); err != nil {
		return nil, err
	}
	_, u, err := p.object(args[0])
	if err != nil {
		return nil, err
	}
	for _, m := range p.Members() {
		told := toldOfOthers(m, u)
		line := m.Name + " knows"
		for _, cluster := range slices.Sorted(maps.Keys(told)) {
			line += fmt.Sprintf(" %s=%s", cluster, strings.ReplaceAll(told[cluster], " ", ","))
		}
		out = append(out, line)
	}
	return out, nil
}
