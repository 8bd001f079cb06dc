package authoritative

import (
	"fmt"
	"hash/maphash"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"federation/dnsprovider"
)

// node is what a name has. It never changes. A name that has only names below it (an empty
// non-terminal) has a node too: it exists (RFC 8020).
type node struct {
	// sets are the provider's records, sorted; records are those and the server's own, for answers.
	sets    []dnsprovider.RRSet
	records [][]dns.RR
	// children counts the names directly below that exist.
	children int
}

// find returns the records of a type, nil for none.
func (n *node) find(t uint16) []dns.RR {
	for _, rrs := range n.records {
		if rrs[0].Header().Rrtype == t {
			return rrs
		}
	}
	return nil
}

// shardCount bounds what a change copies: one name's share of the zone.
const shardCount = 256

var hashSeed = maphash.MakeSeed()

func shardOf(name string) int { return int(maphash.String(hashSeed, name) % shardCount) }

// snapshot is one state of the zone. It never changes.
type snapshot struct {
	zone   string
	shards [shardCount]map[string]*node
	// soa is the apex's; negative is the same with the time to live of negative answers.
	soa, negative *dns.SOA
	// synced is false before the first Apply.
	synced bool
}

// newSnapshot makes a zone that has only the server's own records. zone is canonical.
func newSnapshot(zone string, nameServers []netip.Addr, negativeTTL uint32) (*snapshot, error) {
	ns, err := dnsprovider.CanonicalName("ns." + zone)
	if err != nil {
		return nil, fmt.Errorf("zone %s: %w", zone, err)
	}
	mbox, err := dnsprovider.CanonicalName("hostmaster." + zone)
	if err != nil {
		return nil, fmt.Errorf("zone %s: %w", zone, err)
	}
	e := (&snapshot{zone: zone, soa: &dns.SOA{
		Hdr: header(zone, dns.TypeSOA, ownTTL), Ns: ns, Mbox: mbox,
		Refresh: 60, Retry: 10, Expire: 7 * 24 * 3600, Minttl: negativeTTL,
	}}).edit()
	e.set(zone, node{records: [][]dns.RR{{e.soa}, {&dns.NS{Hdr: header(zone, dns.TypeNS, ownTTL), Ns: ns}}}})
	e.set(ns, node{records: addressRecords(ns, nameServers)})
	return e.finish(1), nil
}

// ownTTL is the time to live of the server's own records, in seconds.
const ownTTL = 300

func header(name string, t uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: t, Class: dns.ClassINET, Ttl: ttl}
}

func addressRecords(name string, addresses []netip.Addr) [][]dns.RR {
	var v4, v6 []dns.RR
	for _, a := range addresses {
		if a = a.Unmap(); a.Is4() {
			v4 = append(v4, &dns.A{Hdr: header(name, dns.TypeA, ownTTL), A: a.AsSlice()})
		} else {
			v6 = append(v6, &dns.AAAA{Hdr: header(name, dns.TypeAAAA, ownTTL), AAAA: a.AsSlice()})
		}
	}
	return slices.DeleteFunc([][]dns.RR{v4, v6}, func(rrs []dns.RR) bool { return rrs == nil })
}

// lookup returns what a canonical name has, nil when it does not exist.
func (s *snapshot) lookup(name string) *node { return s.shards[shardOf(name)][name] }

// contains tells whether a canonical name, which may have escapes, is the zone or below it.
func (s *snapshot) contains(name string) bool { return dns.IsSubDomain(s.zone, name) }

// sets returns the provider's records, sorted.
func (s *snapshot) sets() (all []dnsprovider.RRSet) {
	for _, shard := range s.shards {
		for _, n := range shard {
			for _, set := range n.sets {
				set.Rdata = slices.Clone(set.Rdata)
				all = append(all, set)
			}
		}
	}
	slices.SortFunc(all, dnsprovider.Compare)
	return all
}

// edit is a snapshot that is being made from another one.
type edit struct {
	*snapshot
	// own tells which shards are no longer the old snapshot's.
	own [shardCount]bool
}

func (s *snapshot) edit() *edit {
	next := *s
	return &edit{snapshot: &next}
}

// change does one step.
func (e *edit) change(step dnsprovider.Step) error {
	if step.Name == e.soa.Ns || step.Name == e.zone || !dnsprovider.InZone(step.Name, e.zone) {
		return fmt.Errorf("name %q: must be below %s, and not %s", step.Name, e.zone, e.soa.Ns)
	}
	n := node{}
	if old := e.lookup(step.Name); old != nil {
		n = *old
	}
	sets, err := step.Apply(n.sets)
	if err != nil {
		return err
	}
	n.sets, n.records = sets, nil
	for _, set := range sets {
		rrs, err := parse(set)
		if err != nil {
			return err
		}
		n.records = append(n.records, rrs)
	}
	e.set(step.Name, n)
	return nil
}

// set puts a node in the place of what the name had, and keeps count in the names above.
func (e *edit) set(name string, n node) {
	shard := shardOf(name)
	if !e.own[shard] {
		e.shards[shard], e.own[shard] = maps.Clone(e.shards[shard]), true
	}
	if e.shards[shard] == nil {
		e.shards[shard] = map[string]*node{}
	}
	_, existed := e.shards[shard][name]
	exists := len(n.records)+n.children > 0
	if delete(e.shards[shard], name); exists {
		e.shards[shard][name] = &n
	}
	if exists == existed || name == e.zone {
		return
	}
	parentName, parent := name[strings.IndexByte(name, '.')+1:], node{}
	if p := e.lookup(parentName); p != nil {
		parent = *p
	}
	if parent.children--; exists {
		parent.children += 2
	}
	e.set(parentName, parent)
}

// finish gives the snapshot its serial number.
func (e *edit) finish(serial uint32) *snapshot {
	soa := *e.soa
	soa.Serial = serial
	negative := soa
	negative.Hdr.Ttl = min(soa.Hdr.Ttl, soa.Minttl) // RFC 2308, section 3
	e.soa, e.negative = &soa, &negative
	apex := *e.lookup(e.zone)
	apex.records = slices.Clone(apex.records)
	apex.records[0] = []dns.RR{e.soa}
	e.set(e.zone, apex)
	return e.snapshot
}

// parse makes a set's records for the wire. It refuses sets that are not canonical, and types that
// would change what other names mean.
func parse(set dnsprovider.RRSet) ([]dns.RR, error) {
	canonical, err := dnsprovider.New(set.Name, set.Type, set.TTL, set.Rdata...)
	if err != nil {
		return nil, err
	}
	t := dns.StringToType[string(set.Type)]
	switch {
	case !canonical.Equal(set):
		return nil, fmt.Errorf("record %s %s: must be in canonical form, as dnsprovider.New makes it", set.Name, set.Type)
	case t == dns.TypeNS || t == dns.TypeSOA || t == dns.TypeDNAME:
		return nil, fmt.Errorf("record %s %s: must not be SOA, NS or DNAME: this server has no delegations", set.Name, set.Type)
	}
	rrs := make([]dns.RR, len(set.Rdata))
	for i, data := range set.Rdata {
		rr, err := parseRecord(set, data)
		if err != nil || rr == nil || rr.Header().Rrtype != t {
			return nil, fmt.Errorf("record %s %s: value %q: must be data of the type in presentation format: %v", set.Name, set.Type, data, err)
		}
		rrs[i] = rr
	}
	return rrs, nil
}

// parseRecord makes the usual types directly, which is ten times as fast as the zone file parser.
func parseRecord(set dnsprovider.RRSet, data string) (dns.RR, error) {
	switch set.Type {
	case dnsprovider.A:
		return &dns.A{Hdr: header(set.Name, dns.TypeA, set.TTL), A: netip.MustParseAddr(data).AsSlice()}, nil
	case dnsprovider.AAAA:
		return &dns.AAAA{Hdr: header(set.Name, dns.TypeAAAA, set.TTL), AAAA: netip.MustParseAddr(data).AsSlice()}, nil
	case dnsprovider.CNAME:
		return &dns.CNAME{Hdr: header(set.Name, dns.TypeCNAME, set.TTL), Target: data}, nil
	}
	return dns.NewRR(fmt.Sprintf("%s %d IN %s %s", set.Name, set.TTL, set.Type, data))
}
