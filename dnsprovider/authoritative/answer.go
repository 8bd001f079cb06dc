package authoritative

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

const (
	// headerSize is the size of a message's header (RFC 1035, section 4.1.1).
	headerSize = 12
	// plainSize is what a client takes over UDP that says nothing about it (RFC 1035, section 2.3.4).
	plainSize = 512
	// ednsSize is what we send over UDP at most, and take: it passes everywhere without fragments.
	ednsSize = 1232
	// maxChain bounds the CNAMEs in one answer.
	maxChain = 16
)

// respond returns the answer to one message, in buf where it fits. It returns nil for what must
// not be answered: what is too short to have a header, and answers, as two servers would then
// answer each other for ever.
func respond(s *snapshot, message, buf []byte, udp bool) []byte {
	if len(message) < headerSize || message[2]&0x80 != 0 {
		return nil
	}
	reply, size := answer(s, message)
	if !udp {
		size = dns.MaxMsgSize
	}
	return pack(reply, buf, size)
}

// pack leaves out what does not fit into size: first what is additional, then everything (with TC).
func pack(m *dns.Msg, buf []byte, size int) []byte {
	packed, err := m.PackBuffer(buf)
	if err == nil && len(packed) <= size {
		return packed
	}
	m.Extra = slices.DeleteFunc(m.Extra, func(rr dns.RR) bool { return rr.Header().Rrtype != dns.TypeOPT })
	if packed, err = m.PackBuffer(buf); err == nil && len(packed) <= size {
		return packed
	}
	m.Answer, m.Ns, m.Truncated = nil, nil, size < dns.MaxMsgSize
	if !m.Truncated {
		m.Rcode = dns.RcodeServerFailure // more than any message can hold
	}
	if packed, err = m.PackBuffer(buf); err != nil {
		return nil
	}
	return packed
}

// answer returns the reply to a message that has a whole header and is no answer, and the size
// that the client takes over UDP.
func answer(s *snapshot, message []byte) (reply *dns.Msg, size int) {
	query := &dns.Msg{}
	err := query.Unpack(message)
	reply = &dns.Msg{Compress: true, MsgHdr: dns.MsgHdr{
		Id: binary.BigEndian.Uint16(message), Response: true,
		Opcode: int(message[2] >> 3 & 0xf), RecursionDesired: message[2]&1 != 0,
	}}
	whole := err == nil && countsHold(message, query)
	if whole && len(query.Question) == 1 {
		reply.Question = query.Question
	}
	size, version, oneOPT := edns(query, reply)
	reply.Rcode = dns.RcodeFormatError
	switch {
	case reply.Opcode != dns.OpcodeQuery:
		reply.Rcode = dns.RcodeNotImplemented
	case !whole || !oneOPT || len(query.Question) != 1: // RFC 9619, RFC 6891 section 6.1.1
	case version != 0:
		reply.Rcode = dns.RcodeBadVers
	default:
		question(s, reply)
	}
	return reply, size
}

// countsHold tells whether the sections have what the header says; the parser forgives less.
func countsHold(message []byte, m *dns.Msg) bool {
	for i, n := range []int{len(m.Question), len(m.Answer), len(m.Ns), len(m.Extra)} {
		if int(binary.BigEndian.Uint16(message[4+2*i:])) != n {
			return false
		}
	}
	return true
}

// edns puts our OPT record into the reply when the query has one. It returns the size that the
// client takes, the version of EDNS that it speaks, and false when it sent more than one OPT.
func edns(query, reply *dns.Msg) (size int, version uint8, ok bool) {
	var theirs *dns.OPT
	for _, rr := range query.Extra {
		if opt, isOPT := rr.(*dns.OPT); isOPT {
			if theirs != nil || opt.Hdr.Name != "." {
				return plainSize, 0, false
			}
			theirs = opt
		}
	}
	if theirs == nil {
		return plainSize, 0, true
	}
	ours := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
	ours.SetUDPSize(ednsSize)
	ours.SetDo(theirs.Do()) // RFC 3225, section 3
	reply.Extra = append(reply.Extra, ours)
	return min(max(int(theirs.UDPSize()), plainSize), ednsSize), theirs.Version(), true
}

// question answers the one question that the reply has.
func question(s *snapshot, reply *dns.Msg) {
	q := reply.Question[0]
	name := strings.ToLower(q.Name)
	switch {
	case q.Qtype == dns.TypeOPT || q.Qtype == dns.TypeNone:
		reply.Rcode = dns.RcodeFormatError
	case q.Qclass != dns.ClassINET, q.Qtype == dns.TypeAXFR, q.Qtype == dns.TypeIXFR, !s.contains(name):
		reply.Rcode = dns.RcodeRefused
	case q.Qtype >= 128 && q.Qtype < dns.TypeANY: // the other questions that are not types (RFC 6895, section 3.1)
		reply.Rcode = dns.RcodeNotImplemented
	case !s.synced:
		reply.Rcode = dns.RcodeServerFailure
	default:
		reply.Rcode, reply.Authoritative = dns.RcodeSuccess, true
		follow(s, reply, name)
	}
}

// follow answers from the zone, along the CNAMEs as far as they stay in it. The code is that of the
// last name (RFC 6604), and a negative end brings the SOA (RFC 2308).
func follow(s *snapshot, reply *dns.Msg, name string) {
	qtype := reply.Question[0].Qtype
	owner := reply.Question[0].Name // spelled as the client spells it
	for range maxChain {
		n := s.lookup(name)
		if n == nil {
			reply.Rcode = dns.RcodeNameError
			reply.Ns = append(reply.Ns, s.negative)
			return
		}
		found := n.find(qtype)
		if qtype == dns.TypeANY && len(n.records) > 0 {
			found = n.records[0] // one set of them is enough: RFC 8482, section 4.1
		}
		if found != nil {
			reply.Answer = appendTurned(reply.Answer, found, owner, int(reply.Id))
			addNameServers(s, reply, qtype)
			return
		}
		alias := n.find(dns.TypeCNAME)
		if alias == nil {
			reply.Ns = append(reply.Ns, s.negative)
			return
		}
		reply.Answer = append(reply.Answer, withOwner(alias[0], owner))
		name = alias[0].(*dns.CNAME).Target
		owner = name
		if !s.contains(name) || isOwner(reply.Answer, name) {
			return
		}
	}
}

// isOwner tells whether the chain has been at name already.
func isOwner(chain []dns.RR, name string) bool {
	return slices.ContainsFunc(chain, func(rr dns.RR) bool { return strings.EqualFold(rr.Header().Name, name) })
}

// appendTurned appends the records with another one first each time, as many clients take the first.
func appendTurned(to, records []dns.RR, owner string, turn int) []dns.RR {
	for i := range records {
		to = append(to, withOwner(records[(i+turn)%len(records)], owner))
	}
	return to
}

// withOwner spells a record's name as the client did, who may check it (draft-vixie-dnsext-dns0x20).
func withOwner(rr dns.RR, owner string) dns.RR {
	if rr.Header().Name == owner {
		return rr
	}
	rr = dns.Copy(rr)
	rr.Header().Name = owner
	return rr
}

// addNameServers saves who asks for the name servers the next question.
func addNameServers(s *snapshot, reply *dns.Msg, qtype uint16) {
	if ns := s.lookup(s.soa.Ns); qtype == dns.TypeNS && ns != nil {
		reply.Extra = append(slices.Concat(ns.records...), reply.Extra...)
	}
}
