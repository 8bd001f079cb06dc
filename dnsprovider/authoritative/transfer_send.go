package authoritative

import (
	"iter"
	"net/netip"

	"github.com/miekg/dns"

	"federation/dnsprovider"
)

// sender sends the messages of one transfer, each signed.
type sender struct {
	*signed
	write func([]byte) error
	// last is the message that is not written yet.
	last []byte
}

// code sends an answer without records.
func (s *sender) code(rcode int) error {
	return s.send(new(dns.Msg).SetRcode(s.query, rcode))
}

// all sends the records in as many messages as they need (RFC 5936, section 2.2).
func (s *sender) all(records iter.Seq[dns.RR]) error {
	var waiting []dns.RR
	size := 0
	for rr := range records {
		if size += dns.Len(rr); size > messageRecords && len(waiting) > 0 {
			if err := s.records(waiting); err != nil {
				return err
			}
			waiting, size = nil, dns.Len(rr)
		}
		waiting = append(waiting, rr)
	}
	return s.records(waiting)
}

func (s *sender) records(list []dns.RR) error {
	m := new(dns.Msg).SetReply(s.query)
	m.Authoritative, m.Compress, m.Answer = true, true, list
	if s.answering { // the question is in the first one only
		m.Question = nil
	}
	return s.send(m)
}

func (s *sender) send(m *dns.Msg) error {
	packed, err := s.sign(m, dns.RcodeSuccess)
	if err == nil && s.last != nil {
		err = s.write(s.last)
	}
	s.last = packed
	return err
}

// transferRecords returns the whole zone, between two copies of its SOA (RFC 5936, section 2.2).
func (s *snapshot) transferRecords() iter.Seq[dns.RR] {
	return func(yield func(dns.RR) bool) {
		if !yield(&s.soa) {
			return
		}
		for rr := range s.transferredSets() {
			if !yield(rr) {
				return
			}
		}
		yield(&s.soa)
	}
}

// transferredSets returns all records but the SOA.
func (s *snapshot) transferredSets() iter.Seq[dns.RR] {
	return func(yield func(dns.RR) bool) {
		ns := dns.RR_Header{Name: s.zone, Rrtype: dns.TypeNS, Class: dns.ClassINET, Ttl: ownTTL}
		if !yield(&dns.NS{Hdr: ns, Ns: s.soa.Ns}) {
			return
		}
		for _, rr := range s.ownAddresses() {
			if !yield(rr) {
				return
			}
		}
		for sets := range s.providerSets() {
			for _, set := range sets {
				for _, rr := range recordsOf(set) {
					if !yield(rr) {
						return
					}
				}
			}
		}
	}
}

// ownAddresses returns those of the zone's name server.
func (s *snapshot) ownAddresses() (list []dns.RR) {
	for a := range s.lookup(wireName(s.soa.Ns)).answers() {
		list = append(list, recordsOf(a.set(s.soa.Ns))...)
	}
	return list
}

// recordsOf returns the records of a set that the snapshot has taken, so that they can be parsed.
func recordsOf(set dnsprovider.RRSet) []dns.RR {
	list := make([]dns.RR, 0, len(set.Rdata))
	for _, data := range set.Rdata {
		switch set.Type {
		case dnsprovider.A, dnsprovider.AAAA:
			list = append(list, addressRecord(set.Name, set.TTL, netip.MustParseAddr(data)))
		case dnsprovider.CNAME:
			header := dns.RR_Header{Name: set.Name, Rrtype: dns.TypeCNAME, Class: dns.ClassINET, Ttl: set.TTL}
			list = append(list, &dns.CNAME{Hdr: header, Target: data})
		default:
			one := dnsprovider.RRSet{Name: set.Name, Type: set.Type, TTL: set.TTL, Rdata: []string{data}}
			if rr, err := dns.NewRR(one.String()); err == nil {
				list = append(list, rr)
			}
		}
	}
	return list
}

func addressRecord(name string, ttl uint32, a netip.Addr) dns.RR {
	header := dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: ttl}
	if a.Is4() {
		return &dns.A{Hdr: header, A: a.AsSlice()}
	}
	header.Rrtype = dns.TypeAAAA
	return &dns.AAAA{Hdr: header, AAAA: a.AsSlice()}
}
