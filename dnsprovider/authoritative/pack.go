package authoritative

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"github.com/miekg/dns"

	"federation/dnsprovider"
	"federation/dnsprovider/dnssec"
)

// records are the records of one type of a name, packed for the wire one behind the other. Their
// owner is a pointer to the question, 0xc00c.
type records struct {
	packed string
	count  uint16
	// suffixes are the offsets at which packed has a pointer to the zone's name; 0: no more.
	suffixes  [2]uint16
	signature signature
}

const (
	// ownerAtQuestion is the pointer to the name in the question, which is behind the header.
	ownerAtQuestion = 0xc000 | headerSize
	// recordHeader is the size of a packed record without its data.
	recordHeader = 12
)

// answer is what a name has of one type.
type answer struct {
	rtype uint16
	records
	// more depends on the type: for a CNAME its target in wire format if that is in the zone; for addresses the
	// variants to choose from (choose.go), if any; for other types the values as text, one per line.
	more string
}

// recordStride returns the size of one record where all have the same and their order is free to change, else 0.
func (a *answer) recordStride() int {
	switch a.rtype {
	case dns.TypeA:
		return recordHeader + 4
	case dns.TypeAAAA:
		return recordHeader + 16
	}
	return 0
}

// wireName returns a canonical name of dnsprovider, which has no escapes, in wire format.
func wireName(name string) string {
	b := make([]byte, 0, len(name)+1)
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		b = append(append(b, byte(len(label))), label...)
	}
	return string(append(b, 0))
}

// packer packs the records of a zone.
type packer struct {
	// zone is the name of the zone, canonical and as on the wire.
	zone, wire string
	// signer signs what is packed; nil: nothing is signed.
	signer *dnssec.Signer
}

// packSets packs all sets of a name. See packSet.
func (p packer) packSets(sets []dnsprovider.RRSet) ([]answer, error) {
	answers := make([]answer, len(sets))
	for i, set := range sets {
		var err error
		if answers[i], err = p.packSet(set); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// packSet packs a set. It refuses sets that are not canonical, and types that would change the meaning of other names.
func (p packer) packSet(set dnsprovider.RRSet) (answer, error) {
	t := dns.StringToType[string(set.Type)]
	if err := checkRRSet(set, t); err != nil {
		return answer{}, err
	}
	a := answer{rtype: t}
	var err error
	if a.records, err = p.records(t, set, set.Rdata); err != nil {
		return answer{}, err
	}
	switch set.Type {
	case dnsprovider.A, dnsprovider.AAAA:
		a.more, err = p.variants(t, set)
	case dnsprovider.CNAME:
		if dnsprovider.InZone(set.Rdata[0], p.zone) {
			a.more, a.suffixes[0] = wireName(set.Rdata[0]), uint16(len(a.packed)-2)
		}
	default:
		a.more = strings.Join(set.Rdata, "\n") // each is one line
	}
	return a, err
}

func checkRRSet(set dnsprovider.RRSet, t uint16) error {
	canonical, err := dnsprovider.New(set.Name, set.Type, set.TTL, set.Rdata...)
	if len(set.Variants) > 0 {
		canonical, err = dnsprovider.NewChoice(set.Name, set.Type, set.TTL, set.Variants...)
	}
	switch {
	case err != nil:
		return err
	case !canonical.Equal(set):
		return fmt.Errorf("record %s %s: must be in canonical form, as dnsprovider.New and NewChoice make it", set.Name, set.Type)
	case t == dns.TypeNS || t == dns.TypeSOA || t == dns.TypeDNAME:
		return fmt.Errorf("record %s %s: must not be SOA, NS or DNAME: this server has no delegations", set.Name, set.Type)
	}
	return nil
}

// records packs some of a set's values.
func (p packer) records(t uint16, set dnsprovider.RRSet, values []string) (records, error) {
	var buf []byte
	for _, data := range values {
		rdata, err := p.rdata(t, set.Type, data)
		if err != nil {
			return records{}, fmt.Errorf("record %s %s: value %q: must be data of the type in presentation format: %w", set.Name, set.Type, data, err)
		}
		buf = appendRecord(buf, t, set.TTL, rdata)
	}
	signed, err := p.signSet(set, values)
	return records{packed: string(buf), count: uint16(len(values)), signature: signed}, err
}

// rdata packs the usual types directly, which is ten times as fast as the zone file parser. The target of a CNAME
// in the zone ends in a pointer to the zone's name.
func (p packer) rdata(t uint16, name dnsprovider.Type, data string) ([]byte, error) {
	switch name {
	case dnsprovider.A, dnsprovider.AAAA:
		return netip.MustParseAddr(data).AsSlice(), nil
	case dnsprovider.CNAME:
		if dnsprovider.InZone(data, p.zone) {
			return p.relative(data), nil
		}
		return []byte(wireName(data)), nil
	}
	return otherRdata(t, string(name), data)
}

func otherRdata(t uint16, name, data string) ([]byte, error) {
	rr, err := dns.NewRR(fmt.Sprintf(". 0 IN %s %s", name, data))
	if err != nil {
		return nil, err
	}
	if rr == nil || rr.Header().Rrtype != t {
		return nil, fmt.Errorf("it is none")
	}
	buf := make([]byte, dns.Len(rr))
	n, err := dns.PackRR(rr, buf, 0, nil, false)
	if err != nil {
		return nil, err
	}
	return buf[11:n], nil // behind the root as its owner, type, class, TTL and length
}

func appendRecord(buf []byte, t uint16, ttl uint32, rdata []byte) []byte {
	buf = binary.BigEndian.AppendUint16(buf, ownerAtQuestion)
	buf = binary.BigEndian.AppendUint16(buf, t)
	buf = binary.BigEndian.AppendUint16(buf, dns.ClassINET)
	buf = binary.BigEndian.AppendUint32(buf, ttl)
	buf = binary.BigEndian.AppendUint16(buf, uint16(len(rdata)))
	return append(buf, rdata...)
}

// packSOA packs an SOA record, whose two names are below the zone.
func (p packer) packSOA(soa *dns.SOA) answer {
	data := p.relative(soa.Ns)
	rname := len(data) + len(p.relative(soa.Mbox)) - 2
	mname := len(data) - 2
	data = append(data, p.relative(soa.Mbox)...)
	for _, n := range []uint32{soa.Serial, soa.Refresh, soa.Retry, soa.Expire, soa.Minttl} {
		data = binary.BigEndian.AppendUint32(data, n)
	}
	return answer{rtype: dns.TypeSOA, records: records{
		packed: string(appendRecord(nil, dns.TypeSOA, soa.Hdr.Ttl, data)), count: 1,
		suffixes: [2]uint16{recordHeader + uint16(mname), recordHeader + uint16(rname)},
	}}
}

// packNS packs an NS record, whose name is below the zone.
func (p packer) packNS(name string) (answer, error) {
	packed := appendRecord(nil, dns.TypeNS, ownTTL, p.relative(name))
	header := dns.RR_Header{Name: p.zone, Rrtype: dns.TypeNS, Class: dns.ClassINET, Ttl: ownTTL}
	signed, err := p.sign([]dns.RR{&dns.NS{Hdr: header, Ns: name}}, ownTTL)
	return answer{rtype: dns.TypeNS, records: records{
		packed: string(packed), count: 1, suffixes: [2]uint16{uint16(len(packed) - 2)}, signature: signed,
	}}, err
}

// relative returns a name of the zone on the wire, with room for a pointer to the zone's name at its end.
func (p packer) relative(name string) []byte {
	w := wireName(name)
	return append([]byte(w[:len(w)-len(p.wire)]), 0xc0, 0)
}
