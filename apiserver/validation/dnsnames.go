package validation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// Limits of DNS, in bytes (RFC 1035, section 2.3.4): of a label, and of a name as it is written, without the last dot.
const (
	maxDNSLabel = utilvalidation.DNS1123LabelMaxLength
	maxDNSName  = utilvalidation.DNS1123SubdomainMaxLength
	// dnsMark is how much longer the ownership mark of a host is.
	dnsMark = len("_federation.")
)

// DNSNames are what names of a federation's objects in DNS are built from.
type DNSNames struct {
	// Federation is its name, Zone that of its DNS zone without the last dot.
	Federation, Zone string
	// NoApex: none of the DNS providers can have records at the zone's own name.
	NoApex bool
	// Grants say which namespaces may have which hosts.
	Grants []*v1beta1.DNSNameGrant
	// Places are "ZONE.REGION" of the known Clusters.
	Places []string
}

// ValidateService rejects a Service whose names would exceed the limit of DNS: the global one, and the longest of a
// zone. Places that are not two labels have no names, whatever the Service: their Clusters report that.
func (n *DNSNames) ValidateService(namespace, name string) field.ErrorList {
	global := strings.Join([]string{name, namespace, n.Federation, "svc", n.Zone}, ".")
	longest := ""
	for _, place := range n.Places {
		labels := strings.Split(place, ".")
		if len(labels) == 2 && len(labels[0]) <= maxDNSLabel && len(labels[1]) <= maxDNSLabel && len(place) > len(longest) {
			longest = place
		}
	}
	full, what := global, "its name in DNS"
	if longest != "" {
		full, what = strings.Join([]string{name, namespace, n.Federation, "svc", longest, n.Zone}, "."), "its name in DNS for the clusters in "+longest
	}
	if len(full) <= maxDNSName {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name,
		fmt.Sprintf("%s, %s, would have %d bytes: must be at most %d; take a name or a namespace that is shorter by %d", what, full, len(full), maxDNSName, len(full)-maxDNSName))}
}

// ValidateSettings rejects hosts of DNS settings that can have no records: those that ValidateHosts rejects, those
// outside the zone, and those with the form of a Service's own names. Rules of an Ingress may have the latter, because
// they also say which requests it takes.
func (n *DNSNames) ValidateSettings(namespace string, hosts, old []string, path func(i int) *field.Path) (errs field.ErrorList) {
	for i, host := range hosts {
		name := canonical(host)
		switch {
		case slices.Contains(old, host):
		case !n.InZone(name):
			errs = append(errs, field.Invalid(path(i), host, fmt.Sprintf("must be a name in the zone %s, as www.%s", n.Zone, n.Zone)))
		case v1beta1.ServiceName(n.Federation, n.Zone, name):
			errs = append(errs, field.Invalid(path(i), host, fmt.Sprintf("must not have the form SERVICE.NAMESPACE.%s.svc[[.ZONE].REGION].%s, which the names that Services have by themselves have", n.Federation, n.Zone)))
		}
	}
	return append(errs, n.ValidateHosts(namespace, hosts, old, path)...)
}

// canonical returns a host as names are compared.
func canonical(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// InZone reports whether a name, in lower case and without a dot at its end, is at or below the zone, if that is known.
func (n *DNSNames) InZone(name string) bool {
	return n.Zone != "" && (name == n.Zone || strings.HasSuffix(name, "."+n.Zone))
}

// ValidateHosts refuses hosts in the zone that no name in DNS can have, or that are granted to other namespaces. Others are none of ours,
// and old ones stay.
func (n *DNSNames) ValidateHosts(namespace string, hosts, old []string, path func(i int) *field.Path) (errs field.ErrorList) {
	for i, host := range hosts {
		name := canonical(host)
		if slices.Contains(old, host) || !n.InZone(name) {
			continue
		}
		if name == n.Zone && n.NoApex {
			errs = append(errs, field.Invalid(path(i), host, fmt.Sprintf("must be below the zone %s, as www.%s: at the zone's own name are the records of its DNS server alone", n.Zone, n.Zone)))
		}
		if suffix, granted := v1beta1.DNSNameGranted(n.Grants, namespace, name); !granted {
			errs = append(errs, field.Invalid(path(i), host, fmt.Sprintf("must not be at or below %s: a DNSNameGrant gives these names to other namespaces than %s; take another name, or ask who runs the federation for a grant", suffix, namespace)))
		}
		if name == "ns."+n.Zone {
			errs = append(errs, field.Invalid(path(i), host, fmt.Sprintf("must not be %s, the name of the zone's name server", name)))
		}
		if most := maxDNSName - dnsMark; len(name) > most {
			errs = append(errs, field.Invalid(path(i), host, fmt.Sprintf("has %d bytes: must be at most %d, for its mark of ownership is %d bytes longer and a name in DNS has at most %d", len(name), most, dnsMark, maxDNSName)))
		}
		labels := strings.Split(name, ".")
		if label := slices.MaxFunc(labels, func(a, b string) int { return cmp.Compare(len(a), len(b)) }); len(label) > maxDNSLabel {
			errs = append(errs, field.Invalid(path(i), host, fmt.Sprintf("label %q has %d bytes: must be at most %d", label, len(label), maxDNSLabel)))
		}
	}
	return errs
}
