package plan

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/dnsprovider"
)

// decide makes the records of each level.
func (p *planner) decide() {
	for _, name := range slices.Sorted(maps.Keys(p.levels)) {
		l := p.levels[name]
		slices.SortFunc(l.parts, func(a, b *part) int { return cmp.Compare(a.Name, b.Name) })
		given, standings := p.chooseParts(l)
		from := len(p.plan.Records)
		p.makeRecords(name, l, given)
		if p.in.Explain {
			p.plan.Names = append(p.plan.Names, Name{
				Name: name, Object: p.key, Level: l.Level, Records: slices.Clone(p.plan.Records[from:]), Clusters: standings,
			})
		}
	}
}

// makeRecords makes the records of one name.
func (p *planner) makeRecords(name string, l *level, given []*part) {
	var all served
	for _, t := range given {
		all.add(t.served)
	}
	slices.Sort(all.hosts)
	all.hosts = slices.Compact(all.hosts)
	apex := name == p.in.Zone // no CNAME is allowed there
	if alone := len(all.hosts) == 1 && len(all.addresses) == 0; alone && !apex {
		p.addRecord(dnsprovider.New(name, dnsprovider.CNAME, p.ttl(), all.hosts[0]))
		return
	}
	resolved := p.addHostAddresses(name, given, all.hosts)
	switch {
	case len(resolved) > 0:
		p.addAddresses(name, resolved)
	case len(all.hosts) > 0 && !apex:
		p.addReason("", "%s: no address of a host is known: leads to the first host alone", name)
		p.addRecord(dnsprovider.New(name, dnsprovider.CNAME, p.ttl(), all.hosts[0]))
	case l.up != "":
		p.addRecord(dnsprovider.New(name, dnsprovider.CNAME, p.ttl(), l.up))
	default:
		p.addCodedReason(NoHealthyClusters, "", "%s: no cluster serves: the name has no records", name)
	}
}

func (p *planner) ttl() uint32 {
	if ttl := p.answerSettings().TTLSeconds; ttl != nil {
		return uint32(*ttl)
	}
	return p.in.TTL
}

// choice is what one cluster contributes to a name, its hosts resolved.
type choice struct {
	region    string
	weight    uint32
	addresses []netip.Addr
}

// addHostAddresses adds the addresses of hosts to those of the clusters. It leaves out clusters without addresses.
func (p *planner) addHostAddresses(name string, given []*part, hosts []string) (choices []choice) {
	for _, host := range hosts {
		p.plan.Resolve = append(p.plan.Resolve, host)
		if _, known := p.in.Resolved[host]; !known {
			p.addReason("", "%s: the addresses of host %s are not known yet", name, host)
		}
	}
	for _, t := range given {
		c := choice{region: t.Region, weight: t.weight, addresses: slices.Clone(t.addresses)}
		for _, host := range t.hosts {
			c.addresses = append(c.addresses, p.hostAddresses(t.Name, host)...)
		}
		if len(c.addresses) > 0 {
			choices = append(choices, c)
		}
	}
	return choices
}

// hostAddresses returns the addresses of a host that may be published.
func (p *planner) hostAddresses(cluster, host string) []netip.Addr {
	good := p.publishable(cluster, "address %s of load balancer host "+host, p.in.Resolved[host]...)
	return good[:min(len(good), maxOfCluster)]
}

// addAddresses adds a record set for each address family.
func (p *planner) addAddresses(name string, choices []choice) {
	for _, t := range []dnsprovider.Type{dnsprovider.A, dnsprovider.AAAA} {
		var some []choice
		var all []string
		for _, c := range choices {
			c.addresses = slices.DeleteFunc(slices.Clone(c.addresses), func(a netip.Addr) bool { return a.Is4() != (t == dnsprovider.A) })
			if len(c.addresses) > 0 {
				some = append(some, c)
				all = append(all, addressTexts(c.addresses)...)
			}
		}
		if variants := p.variants(some); len(variants) > 1 {
			p.addRecord(dnsprovider.NewChoice(name, t, p.ttl(), variants...))
		} else if len(all) > 0 {
			p.addRecord(dnsprovider.New(name, t, p.ttl(), all...))
		}
	}
}

// variants returns the choices that the strategy leaves to the server.
func (p *planner) variants(choices []choice) (variants []dnsprovider.Variant) {
	switch p.answerSettings().Strategy {
	case v1beta1.DNSWeighted:
		for _, c := range choices {
			variants = append(variants, dnsprovider.Variant{Rdata: addressTexts(c.addresses), Weight: max(c.weight, 1)})
		}
	case v1beta1.DNSNearest:
		if !slices.ContainsFunc(choices, func(c choice) bool { return c.region != choices[0].region }) {
			return nil // all are in one region
		}
		regions := map[string][]string{}
		for _, c := range choices {
			regions[""] = append(regions[""], addressTexts(c.addresses)...)
			if c.region != "" {
				regions[c.region] = append(regions[c.region], addressTexts(c.addresses)...)
			}
		}
		for region, addresses := range regions {
			variants = append(variants, dnsprovider.Variant{Rdata: addresses, Region: region})
		}
	}
	return variants
}

func addressTexts(addresses []netip.Addr) []string {
	out := make([]string, len(addresses))
	for i, addr := range addresses {
		out[i] = addr.String()
	}
	return out
}

func (p *planner) addRecord(set dnsprovider.RRSet, err error) {
	if err != nil {
		p.addReason("", "left out: %v", err)
		return
	}
	p.plan.Records = append(p.plan.Records, set)
}
