package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Condition is how an object stands in DNS.
type Condition struct {
	// Published: it has the names that it asks for, and they answer.
	Published bool
	// Reason is one of those below; Message is for people.
	Reason, Message string
}

// Reasons of a Condition, what weighs more first.
const (
	// NameInvalid: a name would be too long, or have a label that no name can have.
	NameInvalid = "NameInvalid"
	// HostConflict: another object has a host that this one wants.
	HostConflict = "HostConflict"
	// NotGranted: a DNSNameGrant gives a host that this one wants to other namespaces.
	NotGranted = "NotGranted"
	// Rejected: a provider does not take a record of it, or a name that only its server can have.
	Rejected = "Rejected"
	// ProviderOutOfSync: a provider does not have the records, or somebody else has the name there.
	ProviderOutOfSync = "ProviderOutOfSync"
	// AddressRejected: a member says that a load balancer is at an address where none can be, which is not used.
	AddressRejected = "AddressRejected"
	// AddressesOmitted: the annotations of the object have no room for all addresses.
	AddressesOmitted = "AddressesOmitted"
	// NoHealthyClusters: the members say that nothing is ready anywhere.
	NoHealthyClusters = "NoHealthyClusters"
	// FailStatic: addresses stay that do not serve as far as the federation can see, for it may be the federation that cannot.
	FailStatic = "FailStatic"
	// TopologyLabelsMissing: a cluster has no region or zones, and so no names there.
	TopologyLabelsMissing = "TopologyLabelsMissing"
	// AllPublished: none of that.
	AllPublished = "Published"
)

// weights are the reasons in their order.
var weights = []string{NameInvalid, HostConflict, NotGranted, Rejected, ProviderOutOfSync, AddressRejected, AddressesOmitted, NoHealthyClusters, FailStatic, TopologyLabelsMissing, AllPublished}

// maxTold bounds how many things a condition's message has.
const maxTold = 5

// Condition sums up the plan of one object, and what the providers say of it; nil for one that has nothing to do with DNS.
func (p Plan) Condition(providers []Reason) *Condition {
	told := slices.DeleteFunc(slices.Concat(p.Reasons, providers), func(r Reason) bool { return r.Code == "" })
	if len(p.Records)+len(told) == 0 {
		return nil
	}
	c := &Condition{Reason: AllPublished, Message: "its names are in DNS"}
	if len(told) == 0 {
		c.Published = true
		return c
	}
	slices.SortStableFunc(told, func(a, b Reason) int { return slices.Index(weights, a.Code) - slices.Index(weights, b.Code) })
	c.Reason, c.Message = told[0].Code, ""
	c.Published = slices.Index(weights, c.Reason) >= slices.Index(weights, FailStatic)
	var texts []string
	for _, r := range told[:min(len(told), maxTold)] {
		if texts = append(texts, r.Message); r.Cluster != "" {
			texts[len(texts)-1] = fmt.Sprintf("cluster %s: %s", r.Cluster, r.Message)
		}
	}
	if more := len(told) - maxTold; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more: kubectl federation dns", more))
	}
	c.Message = strings.Join(texts, "; ")
	return c
}

// MissingNames says why a cluster lacks names of its region or zones: what it says itself, or, by an example, that names
// there cannot be. "" where it lacks nothing.
func (c *Cluster) MissingNames(invalid string) (reason, message string) {
	switch {
	case c.Region == "":
		return TopologyLabelsMissing, "its nodes have no label topology.kubernetes.io/region: its addresses count for the global names only"
	case len(c.Zones) == 0:
		return TopologyLabelsMissing, "its nodes have no label topology.kubernetes.io/zone: its addresses count for the region's and the global names only"
	case invalid != "":
		return NameInvalid, invalid
	}
	return "", ""
}
