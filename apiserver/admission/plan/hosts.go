package plan

import (
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// TakenHost is a host that an Ingress of class federation asks for, and another namespace has.
type TakenHost struct {
	// Host is in lower case.
	Host string
	// By is the other namespace's Ingress, As the host that it has: that one, or the wildcard over it.
	By *networkingv1.Ingress
	As string
}

// TakenHosts returns the hosts that an Ingress adds to what it asked for before, if Ingresses of other namespaces have them: those that are not
// to be asked about are left out by free, as hosts of the federation's zone, which its record gives to namespaces. A DNSNameGrant that gives a
// host to this namespace and not to the other one goes before that. old is nil for a new Ingress.
func TakenHosts(i, old *networkingv1.Ingress, all []*networkingv1.Ingress, grants []*v1beta1.DNSNameGrant, free func(host string) bool) (taken []TakenHost) {
	if !v1beta1.IsBalanced(i) {
		return nil
	}
	var before []string
	if old != nil && v1beta1.IsBalanced(old) {
		before = v1beta1.BalancedHosts(old)
	}
	added := slices.DeleteFunc(v1beta1.BalancedHosts(i), func(host string) bool { return host == "" || slices.Contains(before, host) || free(host) })
	if len(added) == 0 {
		return nil
	}
	granted := func(namespace, host string) bool {
		_, is := v1beta1.DNSNameGranted(grants, namespace, strings.TrimPrefix(host, "*."))
		return is
	}
	has := map[string][]*networkingv1.Ingress{}
	for _, other := range all {
		if other.Namespace == i.Namespace || !v1beta1.IsBalanced(other) {
			continue
		}
		for _, host := range v1beta1.BalancedHosts(other) {
			has[host] = append(has[host], other)
		}
	}
	delete(has, "") // nobody owns what is left over
	for _, host := range added {
		for _, as := range []string{host, v1beta1.WildcardOf(host)} {
			if n := slices.IndexFunc(has[as], func(other *networkingv1.Ingress) bool { return granted(other.Namespace, host) }); n >= 0 {
				taken = append(taken, TakenHost{host, has[as][n], as})
				break
			}
		}
	}
	return taken
}
