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
	// HostTaken: another object has a host that this one wants.
	HostTaken = "HostTaken"
	// NotGranted: a DNSNameGrant gives a host that this one wants to other namespaces.
	NotGranted = "NotGranted"
	// Refused: a provider does not take a record of it, or a name that only its server can have.
	Refused = "Refused"
	// ProviderBehind: a provider does not have the records, or somebody else has the name there.
	ProviderBehind = "ProviderBehind"
	// AddressRefused: a member says that a load balancer is at an address where none can be, which is not used.
	AddressRefused = "AddressRefused"
	// LeftOut: the annotations of the object have no room for all addresses.
	LeftOut = "LeftOut"
	// NothingServes: the members say that nothing is ready anywhere.
	NothingServes = "NothingServes"
	// FailStatic: addresses stay that do not serve as far as the federation can see, for it may be the federation that cannot.
	FailStatic = "FailStatic"
	// ClusterUnlabelled: a cluster has no region or zones, and so no names there.
	ClusterUnlabelled = "ClusterUnlabelled"
	// AllPublished: none of that.
	AllPublished = "Published"
)

// weights are the reasons in their order.
var weights = []string{NameInvalid, HostTaken, NotGranted, Refused, ProviderBehind, AddressRefused, LeftOut, NothingServes, FailStatic, ClusterUnlabelled, AllPublished}

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

// Unplaced says why a cluster lacks names of its region or zones: what it says itself, or, by an example, that names
// there cannot be. "" where it lacks nothing.
func (c *Cluster) Unplaced(invalid string) (reason, message string) {
	switch {
	case c.Region == "":
		return ClusterUnlabelled, "its nodes have no label topology.kubernetes.io/region: its addresses count for the global names only"
	case len(c.Zones) == 0:
		return ClusterUnlabelled, "its nodes have no label topology.kubernetes.io/zone: its addresses count for the region's and the global names only"
	case invalid != "":
		return NameInvalid, invalid
	}
	return "", ""
}
