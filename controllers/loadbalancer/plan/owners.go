package plan

import (
	"cmp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// byAge orders Ingresses: the oldest first, and no two alike.
func byAge(a, b *networkingv1.Ingress) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// anyHost stands for requests to hosts that nobody has.
const anyHost = ""

func canonicalHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// owner is who has a host: the namespace of the Ingress that claims it first, of those that may have it.
type owner struct {
	// first is nil for nobody.
	first *networkingv1.Ingress
	// kept: it is known to belong to that namespace, whatever the age of Ingresses.
	kept bool
}

// isLike reports whether two owners make no difference to the hosts below a wildcard.
func (o owner) isLike(other owner) bool {
	if o.first == nil || other.first == nil {
		return o.first == other.first
	}
	return byAge(o.first, other.first) == 0
}

// part is what is made as one: a host, or the rules of a namespace that have no host. The zero value stands for the hosts that nobody has.
type part struct{ namespace, host string }

// partsOf returns the parts that an Ingress says something of.
func partsOf(i *networkingv1.Ingress) (all []part) {
	for _, host := range v1beta1.BalancedHosts(i) {
		all = append(all, part{host: host})
		if host == anyHost {
			all = append(all, part{namespace: i.Namespace})
		}
	}
	return all
}

// ownership knows which namespace has which host.
type ownership struct {
	grants []*v1beta1.DNSNameGrant
	kept   map[string]servicednsplan.Keep
	// claims are the Ingresses that say something of each part, the oldest first.
	claims map[part][]*networkingv1.Ingress
	// owners are those of hosts, before it counts that an older wildcard covers some.
	owners map[string]owner
}

func newOwnership() ownership {
	return ownership{claims: map[part][]*networkingv1.Ingress{}, owners: map[string]owner{}}
}

// addClaims adds what an Ingress claims, and returns the parts.
func (o *ownership) addClaims(of *networkingv1.Ingress) []part {
	parts := partsOf(of)
	for _, one := range parts {
		at, _ := slices.BinarySearchFunc(o.claims[one], of, byAge)
		o.claims[one] = slices.Insert(o.claims[one], at, of)
	}
	return parts
}

// removeClaims removes what an Ingress claimed, and returns the parts.
func (o *ownership) removeClaims(of *networkingv1.Ingress) []part {
	parts := partsOf(of)
	for _, one := range parts {
		at, _ := slices.BinarySearchFunc(o.claims[one], of, byAge)
		if o.claims[one] = slices.Delete(o.claims[one], at, at+1); len(o.claims[one]) == 0 {
			delete(o.claims, one)
		}
	}
	return parts
}

// keep takes which hosts are known to belong to a namespace, and returns those of which that has changed.
func (o *ownership) keep(kept map[string]servicednsplan.Keep) (changed []string) {
	for _, one := range []struct {
		of, other map[string]servicednsplan.Keep
	}{{o.kept, kept}, {kept, o.kept}} {
		for name, is := range one.of {
			if was, there := one.other[name]; !there || was.Namespace != is.Namespace {
				changed = append(changed, strings.TrimSuffix(name, "."))
			}
		}
	}
	o.kept = kept
	return changed
}

// decide decides again whose the stale hosts are, and adds those that a wildcard covers which is somebody else's now.
func (o *ownership) decide(stale map[part]bool) {
	wild := map[string]bool{}
	for one := range stale {
		if one.namespace != "" {
			continue
		}
		was, is := o.owners[one.host], o.firstOf(one.host)
		if o.owners[one.host] = is; is.first == nil {
			delete(o.owners, one.host)
		}
		if strings.HasPrefix(one.host, "*.") && !was.isLike(is) {
			wild[one.host] = true
		}
	}
	if len(wild) == 0 {
		return
	}
	for one := range o.claims {
		if one.namespace == "" && wild[v1beta1.WildcardOf(one.host)] {
			stale[one] = true
		}
	}
}

// firstOf returns who claims a host first, of those that may have it.
func (o *ownership) firstOf(host string) owner {
	keep, kept := o.kept[host+"."]
	kept = kept && o.isGranted(keep.Namespace, host)
	for _, i := range o.claims[part{host: host}] {
		if o.isGranted(i.Namespace, host) && (host != anyHost || !v1beta1.PassesTLS(i)) && (!kept || keep.Namespace == i.Namespace) {
			return owner{i, kept}
		}
	}
	return owner{}
}

func (o *ownership) isGranted(namespace, host string) bool {
	_, granted := v1beta1.DNSNameGranted(o.grants, namespace, strings.TrimPrefix(host, "*."))
	return granted
}

// holderOf returns by which Ingress a host is its namespace's; nil if nobody has it. below: it is by a wildcard. A host that an older wildcard of another
// namespace covers is that one's, so that nobody takes a part of what another namespace serves already.
func (o *ownership) holderOf(host string) (by *networkingv1.Ingress, below bool) {
	own, over := o.owners[host], owner{}
	if wild := v1beta1.WildcardOf(host); wild != "" {
		over = o.owners[wild]
	}
	if over.first == nil || own.first != nil && (own.kept || over.first.Namespace == own.first.Namespace || byAge(own.first, over.first) < 0) {
		return own.first, false
	}
	return over.first, true
}
