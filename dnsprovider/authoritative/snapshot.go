package authoritative

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider"
)

// node is what a name has. It never changes. A name that has only names below it (an empty
// non-terminal) has a node too: it exists (RFC 8020).
type node struct {
	// name is in lower case and as on the wire.
	name string
	// answers has what the name has of each type, packed: of the provider's records and the server's own.
	answers []answer
	// sets are the provider's records, sorted.
	sets []dnsprovider.RRSet
	// children counts the names directly below that exist.
	children int
	// one is where answers are kept if there is but one: a lookup then ends in one place of memory.
	one [1]answer
}

// find returns what the name has of a type, nil for nothing.
func (n *node) find(t uint16) *answer {
	for i := range n.answers {
		if n.answers[i].rtype == t {
			return &n.answers[i]
		}
	}
	return nil
}

func (n *node) setAnswers(answers []answer) {
	n.answers, n.one = answers, [1]answer{}
	if len(answers) == 1 {
		n.one[0] = answers[0]
		n.answers = n.one[:]
	}
}

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
	e.set(zone, node{}, apex)
	e.set(ns, node{}, addresses)
	return e.finish(1)
}

// addresses are the packed addresses of the server's own name.
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

// lookup returns what a canonical name has, nil when it does not exist.
func (s *snapshot) lookup(name string) *node {
	wire := []byte(wireName(name))
	return s.names.find(hashOf(wire), wire)
}

// sets returns the provider's records, sorted.
func (s *snapshot) sets() (all []dnsprovider.RRSet) {
	for n := range s.names.all() {
		for _, set := range n.sets {
			set.Rdata = slices.Clone(set.Rdata)
			all = append(all, set)
		}
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
	answers := make([]answer, len(sets))
	for i, set := range sets {
		if answers[i], err = e.packSet(set); err != nil {
			return err
		}
	}
	n.sets = sets
	e.set(step.Name, n, answers)
	return nil
}

// set puts n with the answers in the place of what the name had, and keeps count in the names above.
func (e edit) set(name string, n node, answers []answer) {
	old := e.lookup(name)
	n.name = wireName(name)
	n.setAnswers(answers)
	exists, existed := len(answers)+n.children > 0, old != nil
	switch {
	case exists:
		e.names.put(e.edits, &n)
	case existed:
		e.names.remove(e.edits, n.name)
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
	e.set(parentName, parent, parent.answers)
}

// negativeTTL is how many seconds it may be remembered that there is nothing (RFC 2308, section 3).
func (s *snapshot) negativeTTL() uint32 { return min(s.soa.Hdr.Ttl, s.soa.Minttl) }

// finish gives the snapshot its serial number.
func (e edit) finish(serial uint32) (*snapshot, error) {
	e.soa.Serial, e.made = serial, time.Now()
	negative := e.soa
	negative.Hdr.Ttl = e.negativeTTL()
	e.negative = e.packSOA(&negative)
	apex := *e.lookup(e.zone)
	answers := slices.Clone(apex.answers)
	answers[0] = e.packSOA(&e.soa)
	var err error
	if answers[0].signature, err = e.sign([]dns.RR{&e.soa}, e.soa.Hdr.Ttl); err != nil {
		return nil, err
	}
	if e.negative.signature, err = e.sign([]dns.RR{&e.soa}, e.negativeTTL()); err != nil {
		return nil, err
	}
	e.set(e.zone, apex, answers)
	return e.snapshot, nil
}
