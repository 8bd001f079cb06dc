package zonefile

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"federation/dnsprovider"
)

// Zone is what a master file says.
type Zone struct {
	// Name is the canonical name of the apex.
	Name string
	// SOA and NS are the apex's own; without Name where the file has none.
	SOA, NS dnsprovider.RRSet
	// Sets are all others, sorted by dnsprovider.Compare.
	Sets []dnsprovider.RRSet
}

// Limits bound what a file may cost.
type Limits struct {
	// Bytes is the largest size of the file.
	Bytes int64
	// Records is the largest number of records, those of $GENERATE included.
	Records int
}

// DefaultLimits let a million names through.
var DefaultLimits = Limits{Bytes: 1 << 30, Records: 10_000_000}

// Parse reads the records of a zone. Relative names are below it. It fails with the line number on a syntax error; with
// the record for a name outside of the zone, a class other than IN, or what the built-in server cannot serve (see the
// package); and if a limit is exceeded.
func Parse(r io.Reader, zone string, limits Limits) (Zone, error) {
	apex, err := dnsprovider.CanonicalName(zone)
	if err != nil {
		return Zone{}, fmt.Errorf("DNS zone: %w", err)
	}
	file := &bounded{from: r, left: limits.Bytes, limit: limits.Bytes}
	parser := dns.NewZoneParser(file, apex, "")
	collected := collection{}
	for records := 1; ; records++ {
		rr, ok := parser.Next()
		if !ok {
			break
		}
		if records > limits.Records {
			return Zone{}, fmt.Errorf("zone file: more than %d records: must be at most that many", limits.Records)
		}
		if err := collected.add(apex, rr); err != nil {
			return Zone{}, fmt.Errorf("zone file: %w", err)
		}
	}
	if err := errors.Join(file.broken, parser.Err()); err != nil {
		return Zone{}, fmt.Errorf("zone file: %w", err)
	}
	return collected.zone(apex)
}

// bounded reads no more than is allowed, and keeps the error, which the parser does not.
type bounded struct {
	from        io.Reader
	left, limit int64
	broken      error
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.left -= int64(n); b.left < 0 {
		err = fmt.Errorf("more than %d bytes: must be at most that many", b.limit)
	}
	if err != nil && err != io.EOF {
		b.broken = err
	}
	return n, err
}

// key is what the records of a set have in common.
type key struct {
	name string
	t    uint16
}

// collection is the sets that are being gathered.
type collection map[key]*dnsprovider.RRSet

// add takes one record.
func (c collection) add(apex string, rr dns.RR) error {
	header := rr.Header()
	name := strings.ToLower(header.Name)
	if err := check(apex, name, header); err != nil {
		return fmt.Errorf("record %s %s: %w", name, typeName(header.Rrtype), err)
	}
	k := key{name, header.Rrtype}
	set := c[k]
	if set == nil {
		set = &dnsprovider.RRSet{Name: name, Type: typeName(header.Rrtype), TTL: header.Ttl}
		c[k] = set
	}
	if set.TTL != header.Ttl {
		return fmt.Errorf("record %s %s: TTL %d: must be %d, as that of the other records of the set (RFC 2181, section 5.2)", name, set.Type, header.Ttl, set.TTL)
	}
	data, err := rdata(rr)
	if err != nil {
		return fmt.Errorf("record %s %s: %w", name, set.Type, err)
	}
	set.Rdata = append(set.Rdata, data)
	return nil
}

// rdata returns a record's data as text. The parser accepts incomplete data and data that no message can carry, and
// keeps text as written; the data after a round trip through the wire format has neither problem. New checks the usual
// types.
func rdata(rr dns.RR) (string, error) {
	switch usual := rr.(type) {
	case *dns.A:
		return usual.A.String(), nil
	case *dns.AAAA:
		return usual.AAAA.String(), nil
	case *dns.CNAME:
		return usual.Target, nil
	default:
		wire := make([]byte, dns.Len(rr))
		end, err := dns.PackRR(rr, wire, 0, nil, false)
		if err != nil {
			return "", err
		}
		if rr, _, err = dns.UnpackRR(wire[:end], 0); err != nil {
			return "", err
		}
		if _, err := dns.NewRR(rr.String()); err != nil {
			return "", err
		}
	}
	return strings.TrimPrefix(rr.String(), rr.Header().String()), nil
}

func typeName(t uint16) dnsprovider.Type { return dnsprovider.Type(dns.Type(t).String()) }

// unserved says why records of some types are refused everywhere.
var unserved = map[uint16]string{
	dns.TypeDNAME: "there are no DNAMEs in this zone", dns.TypeDS: "there are no delegations in this zone",
	dns.TypeRRSIG: signed, dns.TypeNSEC: signed, dns.TypeNSEC3: signed, dns.TypeNSEC3PARAM: signed,
	dns.TypeDNSKEY: signed, dns.TypeCDS: signed, dns.TypeCDNSKEY: signed,
}

const signed = "must not be in the file: the server signs by itself"

// check refuses what the zone cannot have.
func check(apex, name string, header *dns.RR_Header) error {
	_, known := dns.TypeToString[header.Rrtype]
	switch {
	case !dnsprovider.InZone(name, apex):
		return fmt.Errorf("must be in the zone %s", apex)
	case header.Class != dns.ClassINET:
		return fmt.Errorf("class %s: must be IN", dns.Class(header.Class))
	case !known:
		return errors.New("must be of a type that has a name")
	case unserved[header.Rrtype] != "":
		return errors.New(unserved[header.Rrtype])
	case (header.Rrtype == dns.TypeNS || header.Rrtype == dns.TypeSOA) && name != apex:
		return fmt.Errorf("must be at %s: there are no delegations in this zone", apex)
	}
	return nil
}

// zone makes the sets canonical and puts them where they belong.
func (c collection) zone(apex string) (Zone, error) {
	z := Zone{Name: apex, Sets: make([]dnsprovider.RRSet, 0, len(c))}
	for k, gathered := range c {
		set, err := dnsprovider.New(gathered.Name, gathered.Type, gathered.TTL, gathered.Rdata...)
		if err != nil {
			return Zone{}, fmt.Errorf("zone file: %w", err)
		}
		switch {
		case k.t == dns.TypeSOA && len(set.Rdata) > 1:
			return Zone{}, fmt.Errorf("zone file: record %s SOA: %d values: must be one", apex, len(set.Rdata))
		case k.t == dns.TypeSOA:
			z.SOA = set
		case k.t == dns.TypeNS:
			z.NS = set
		default:
			z.Sets = append(z.Sets, set)
		}
	}
	slices.SortFunc(z.Sets, dnsprovider.Compare)
	return z, aliasesAlone(z)
}

// aliasesAlone fails if a CNAME is beside something else (RFC 2181, section 10.1).
func aliasesAlone(z Zone) error {
	for i, set := range z.Sets {
		beside := i > 0 && z.Sets[i-1].Name == set.Name || i+1 < len(z.Sets) && z.Sets[i+1].Name == set.Name
		if set.Type == dnsprovider.CNAME && (beside || set.Name == z.Name) {
			return fmt.Errorf("zone file: name %s: a CNAME must be alone", set.Name)
		}
	}
	return nil
}
