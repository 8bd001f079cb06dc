package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Condition is the state of an object in DNS.
type Condition struct {
	// Published: it has all names it asks for, and they answer.
	Published bool
	// Reason is one of those below; Message is for people.
	Reason, Message string
}

// Reasons of a Condition, the most severe first.
const (
	// NameInvalid: a name would be too long, or have an invalid label.
	NameInvalid = "NameInvalid"
	// HostConflict: another object has a host that this one wants.
	HostConflict = "HostConflict"
	// NotGranted: a DNSNameGrant gives a host that this one wants to other namespaces.
	NotGranted = "NotGranted"
	// Rejected: a provider refuses a record, or reserves a name for its server.
	Rejected = "Rejected"
	// ProviderOutOfSync: a provider does not have the records, or somebody else has the name there.
	ProviderOutOfSync = "ProviderOutOfSync"
	// AddressRejected: a member reports a load balancer address that no load balancer can have. It is not used.
	AddressRejected = "AddressRejected"
	// AddressesOmitted: the object's annotations have no room for all addresses.
	AddressesOmitted = "AddressesOmitted"
	// NoHealthyClusters: no member reports anything ready.
	NoHealthyClusters = "NoHealthyClusters"
	// FailStatic: addresses stay though they do not serve as far as the federation can see, because it may be cut off
	// itself.
	FailStatic = "FailStatic"
	// TopologyLabelsMissing: a cluster has no region or zones, and so no names for them.
	TopologyLabelsMissing = "TopologyLabelsMissing"
	// AllPublished: none of that.
	AllPublished = "Published"
)

// weights has the reasons, the most severe first.
var weights = []string{NameInvalid, HostConflict, NotGranted, Rejected, ProviderOutOfSync, AddressRejected, AddressesOmitted, NoHealthyClusters, FailStatic, TopologyLabelsMissing, AllPublished}

// maxTold bounds how many reasons a message has.
const maxTold = 5

// Condition sums up the plan of one object and its providers' reasons; nil for an object without names in DNS.
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

// MissingNames returns why a cluster has no names for its region or zones: missing labels, or an example of an invalid
// name. "" if none is missing.
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
