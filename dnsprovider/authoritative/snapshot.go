package authoritative

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider"
)

// snapshot is one state of the zone. It never changes.
type snapshot struct {
	packer
	names table
	soa   dns.SOA
	// nameServers are the addresses of the SOA's name server.
	nameServers []netip.Addr
	// negative is the SOA with the time to live of negative answers, owned by the zone.
	negative answer
	// synced is false before the first Apply.
	synced bool
	// made is when it was made.
	made time.Time
	// edits counts the edits that led here.
	edits uint64
}

// ownTTL is the time to live of the server's own records, in seconds.
const ownTTL = 300

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
	first := &snapshot{packer: packer{zone: zone, wire: wireName(zone)}, nameServers: nameServers, soa: dns.SOA{
		Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: ownTTL}, Ns: ns, Mbox: mbox,
		Refresh: 60, Retry: 10, Expire: 7 * 24 * 3600, Minttl: negativeTTL,
	}}
	e := first.edit()
	addresses, err := e.addresses(nameServers)
	if err != nil {
		return nil, err
	}
	apex, err := e.apex()
	if err != nil {
		return nil, err
	}
	e.set(wireName(zone), apex)
	e.set(wireName(ns), addresses)
	return e.finishSnapshot(uint32(time.Now().Unix()))
}

// addresses returns the packed addresses of the server's own name.
func (s *snapshot) addresses(list []netip.Addr) (answers []answer, err error) {
	texts := map[dnsprovider.Type][]string{}
	for _, a := range list {
		t := dnsprovider.A
		if a = a.Unmap(); !a.Is4() {
			t = dnsprovider.AAAA
		}
		texts[t] = append(texts[t], a.String())
	}
	for _, t := range []dnsprovider.Type{dnsprovider.A, dnsprovider.AAAA} {
		if len(texts[t]) == 0 {
			continue
		}
		set, err := dnsprovider.New(s.soa.Ns, t, ownTTL, texts[t]...)
		if err != nil {
			return nil, fmt.Errorf("addresses of the name server: %w", err)
		}
		packed, err := s.packSet(set)
		if err != nil {
			return nil, err
		}
		answers = append(answers, packed)
	}
	return answers, nil
}

// lookup returns what a name as on the wire, in lower case, has; "" when it does not exist.
func (s *snapshot) lookup(name string) node {
	wire := []byte(name)
	return s.names.find(hashOf(wire), wire)
}

// isServerName reports whether a name, as on the wire, is one that has the server's own records, and none of the provider's.
func (s *snapshot) isServerName(name string) bool {
	return name == s.wire || name == wireName(s.soa.Ns)
}

// reserves reports whether a canonical name has the server's own records.
func (s *snapshot) reserves(name string) bool { return name == s.soa.Ns || name == s.zone }

// providerSets yields the provider's records, a name at a time, in no order.
func (s *snapshot) providerSets() iter.Seq[[]dnsprovider.RRSet] {
	return func(yield func([]dnsprovider.RRSet) bool) {
		for n := range s.names.all() {
			if !s.isServerName(n.name()) && !yield(n.sets(nameOf(n.name()))) {
				return
			}
		}
	}
}

// sets returns the provider's records, sorted.
func (s *snapshot) sets() (all []dnsprovider.RRSet) {
	for sets := range s.providerSets() {
		all = append(all, sets...)
	}
	slices.SortFunc(all, dnsprovider.Compare)
	return all
}

// edit is a snapshot that is being made from another one.
type edit struct{ *snapshot }

func (s *snapshot) edit() edit {
	next := *s
	next.edits++
	return edit{&next}
}

// change does one step.
func (e edit) change(step dnsprovider.Step) error {
	if e.reserves(step.Name) || !dnsprovider.InZone(step.Name, e.zone) {
		return dnsprovider.Refusef("name %q: must be below %s, and not %s", step.Name, e.zone, e.soa.Ns)
	}
	name := wireName(step.Name)
	sets, err := step.Apply(e.lookup(name).sets(step.Name))
	if err != nil {
		return err
	}
	answers, err := e.packSets(sets)
	if err != nil {
		return &dnsprovider.RefusedError{Err: err}
	}
	e.set(name, answers)
	return nil
}

// set replaces the answers of a name in wire format, and updates the counts in the names above.
func (e edit) set(name string, answers []answer) {
	old := e.lookup(name)
	e.put(old, newNode(name, old.children(), answers))
}

// put puts a node in the place of the old one, "" for none.
func (e edit) put(old, n node) {
	name, exists, existed := n.name(), n.children() > 0 || n.packed() != "", old != ""
	switch {
	case exists:
		e.names.put(e.edits, n)
	case existed:
		e.names.remove(e.edits, name)
	}
	if exists == existed || name == e.wire {
		return
	}
	above := name[1+name[0]:]
	parent := e.lookup(above)
	children := parent.children() + 1
	if !exists {
		children -= 2
	}
	e.put(parent, parent.withChildren(above, children))
}

// negativeTTL returns how many seconds a denial may be cached (RFC 2308, section 3).
func (s *snapshot) negativeTTL() uint32 { return min(s.soa.Hdr.Ttl, s.soa.Minttl) }

// finishSnapshot gives the snapshot its serial number.
func (e edit) finishSnapshot(serial uint32) (*snapshot, error) {
	e.soa.Serial, e.made = serial, time.Now()
	negative := e.soa
	negative.Hdr.Ttl = e.negativeTTL()
	e.negative = e.packSOA(&negative)
	answers := slices.Collect(e.lookup(e.wire).answers())
	answers[0] = e.packSOA(&e.soa)
	var err error
	if answers[0].signature, err = e.sign([]dns.RR{&e.soa}, e.soa.Hdr.Ttl); err != nil {
		return nil, err
	}
	if e.negative.signature, err = e.sign([]dns.RR{&e.soa}, e.negativeTTL()); err != nil {
		return nil, err
	}
	e.set(e.wire, answers)
	return e.snapshot, nil
}
