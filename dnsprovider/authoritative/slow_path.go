package authoritative

import (
	"encoding/binary"

	"github.com/miekg/dns"
)

// parseSlowPath reads, with the parser of miekg/dns, a message that query.parse does not take. It returns
// either the refusal that it gets, or a plain message with the same question and OPT record. The
// message has a whole header and is no answer.
func parseSlowPath(message []byte) (plain, refusal []byte) {
	query := &dns.Msg{}
	err := query.Unpack(message)
	whole := err == nil && countsHold(message, query)
	opt, oneOPT := findOPT(query)
	reply := &dns.Msg{MsgHdr: dns.MsgHdr{
		Id: binary.BigEndian.Uint16(message), Response: true, Rcode: dns.RcodeFormatError,
		Opcode: int(message[2] & opcodeBits >> 3), RecursionDesired: message[2]&1 != 0,
	}}
	switch {
	case reply.Opcode != dns.OpcodeQuery:
		reply.Rcode = dns.RcodeNotImplemented
	case whole && oneOPT && len(query.Question) == 1: // RFC 9619, RFC 6891 section 6.1.1
		query.Answer, query.Ns, query.Extra, query.Compress = nil, nil, nil, false
		if opt != nil {
			query.Extra = []dns.RR{opt}
		}
		if plain, err = query.Pack(); err == nil {
			return plain, nil
		}
	}
	if whole && len(query.Question) == 1 {
		reply.Question = query.Question
	}
	if opt != nil {
		reply.SetEdns0(ednsSize, opt.Do())
	}
	if refusal, err = reply.Pack(); err != nil {
		return nil, nil
	}
	return nil, refusal
}

// countsHold reports whether the sections have what the header says; the parser forgives less.
func countsHold(message []byte, m *dns.Msg) bool {
	for i, n := range []int{len(m.Question), len(m.Answer), len(m.Ns), len(m.Extra)} {
		if int(binary.BigEndian.Uint16(message[4+2*i:])) != n {
			return false
		}
	}
	return true
}

// findOPT returns the OPT record of a query, nil for none, and false when there are several or one
// that is not owned by the root.
func findOPT(query *dns.Msg) (found *dns.OPT, ok bool) {
	for _, rr := range query.Extra {
		if opt, isOPT := rr.(*dns.OPT); isOPT {
			if found != nil || opt.Hdr.Name != "." {
				return nil, false
			}
			found = opt
		}
	}
	return found, true
}
