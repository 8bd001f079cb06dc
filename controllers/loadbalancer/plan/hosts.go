package plan

import (
	"cmp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// servedIngresses returns those of our class that are not being deleted, the oldest first.
func servedIngresses(all []*networkingv1.Ingress) (served []*networkingv1.Ingress) {
	for _, i := range all {
		if v1beta1.IsBalanced(i) {
			served = append(served, i)
		}
	}
	slices.SortFunc(served, func(a, b *networkingv1.Ingress) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return served
}

// anyHost stands for requests to hosts that nobody has.
const anyHost = ""

func canonicalHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// owner is the namespace that has a host.
type owner struct {
	namespace string
	// order is the place of the Ingress that claimed it first, the oldest first.
	order int
	// kept: it is known to belong to that namespace, whatever the age of Ingresses.
	kept bool
}

// ownersOf decides which namespace has which host. The Ingresses are sorted. A host that is covered by an older wildcard of another
// namespace is that one's, so that nobody takes a part of what another namespace serves already.
func ownersOf(w World, ingresses []*networkingv1.Ingress) map[string]owner {
	owners := map[string]owner{}
	for order, i := range ingresses {
		for _, host := range v1beta1.BalancedHosts(i) {
			if _, taken := owners[host]; taken || !w.isGranted(i.Namespace, host) || host == anyHost && v1beta1.PassesTLS(i) {
				continue
			}
			keep, kept := w.Kept[host+"."]
			if kept = kept && w.isGranted(keep.Namespace, host); kept && keep.Namespace != i.Namespace {
				continue
			}
			owners[host] = owner{namespace: i.Namespace, order: order, kept: kept}
		}
	}
	for host, own := range owners {
		wild := v1beta1.WildcardOf(host)
		if over, covered := owners[wild]; covered && wild != "" && over.namespace != own.namespace && over.order < own.order && !own.kept {
			delete(owners, host)
		}
	}
	return owners
}

func (w World) isGranted(namespace, host string) bool {
	_, granted := v1beta1.DNSNameGranted(w.Grants, namespace, strings.TrimPrefix(host, "*."))
	return granted
}

// whyNot returns why an Ingress does not have a host that it asks for. It says nothing more about other namespaces.
func (w World) whyNot(namespace, host string) string {
	if !w.isGranted(namespace, host) {
		return "a DNSNameGrant gives it to other namespaces"
	}
	return "another namespace has it"
}
