package authoritative

import (
	"encoding/binary"
	"net/netip"

	"github.com/miekg/dns"
)

const (
	// plainSize is the UDP size of a client without EDNS (RFC 1035, section 2.3.4).
	plainSize = 512
	// ednsSize is the maximum that we send and accept over UDP: it passes everywhere without fragments.
	ednsSize = 1232
	// optSize is the size of an OPT record without options (RFC 6891, section 6.1.2).
	optSize = 11
	// optionHeader is the size of an option without its data.
	optionHeader = 4
)

// edns is the content of a query's OPT record (RFC 6891), and of ours.
type edns struct {
	present bool
	// size is the client's UDP size in bytes.
	size    uint16
	version uint8
	do      bool
	// compact means that the client accepts "no such name" as the code of a compact denial (RFC 9824, section 5).
	compact bool
	// malformed means that an option violates its RFC.
	malformed bool
	cookie    cookie
	subnet    subnet
	// nsid is asked for, then answered (RFC 5001).
	wantsNSID bool
	nsid      string
	// extended is our extended error (RFC 8914); 0: none.
	extended uint16
}

// parse reads an OPT record; what is behind it is left alone. It returns false if there is no whole one.
func (e *edns) parse(record []byte) bool {
	if len(record) < optSize || record[0] != 0 || binary.BigEndian.Uint16(record[1:]) != dns.TypeOPT {
		return false
	}
	*e = edns{present: true, size: binary.BigEndian.Uint16(record[3:]), version: record[6], do: record[7]&0x80 != 0, compact: record[7]&0x40 != 0}
	return e.options(record[optSize:], int(binary.BigEndian.Uint16(record[9:])))
}

// options reads the options, which take size bytes. It returns false when they do not.
func (e *edns) options(list []byte, size int) bool {
	if len(list) < size {
		return false
	}
	for list = list[:size]; len(list) > 0; {
		if len(list) < optionHeader {
			return false
		}
		end := optionHeader + int(binary.BigEndian.Uint16(list[2:]))
		if len(list) < end {
			return false
		}
		e.option(binary.BigEndian.Uint16(list), list[optionHeader:end])
		list = list[end:]
	}
	return true
}

// option reads one option and ignores unknown ones.
func (e *edns) option(code uint16, data []byte) {
	ok := true
	switch code {
	case dns.EDNS0COOKIE:
		ok = e.cookie.parse(data)
	case dns.EDNS0SUBNET:
		ok = e.subnet.parse(data)
	case dns.EDNS0NSID:
		e.wantsNSID = true
	}
	e.malformed = e.malformed || !ok
}

// maxAnswerSize returns how long the answer may be over UDP.
func (e *edns) maxAnswerSize() int {
	if !e.present {
		return plainSize
	}
	return min(max(int(e.size), plainSize), ednsSize)
}

// length returns the size of our OPT record.
func (e *edns) length() int {
	if !e.present {
		return 0
	}
	n := optSize
	if e.cookie.sent {
		n += optionHeader + cookieSize
	}
	if e.subnet.sent {
		n += optionHeader + 4 + e.subnet.bytes()
	}
	if e.nsid != "" {
		n += optionHeader + len(e.nsid)
	}
	if e.extended != 0 {
		n += optionHeader + 2
	}
	return n
}

// append writes our OPT record, if the query had one, for an answer of the code.
func (e *edns) append(reply []byte, rcode int) []byte {
	if !e.present {
		return reply
	}
	do, options := byte(0), e.length()-optSize
	if e.do { // RFC 3225, section 3
		do = 0x80
	}
	reply = append(reply, 0, 0, byte(dns.TypeOPT), ednsSize>>8, ednsSize&0xff, byte(rcode>>4), 0, do, 0, byte(options>>8), byte(options))
	if options == 0 {
		return reply
	}
	if e.cookie.sent {
		reply = append(appendOption(reply, dns.EDNS0COOKIE, cookieSize), e.cookie.client[:]...)
		reply = append(reply, e.cookie.server[:]...)
	}
	if e.subnet.sent {
		reply = e.subnet.append(reply)
	}
	if e.nsid != "" {
		reply = append(appendOption(reply, dns.EDNS0NSID, len(e.nsid)), e.nsid...)
	}
	if e.extended != 0 {
		reply = binary.BigEndian.AppendUint16(appendOption(reply, dns.EDNS0EDE, 2), e.extended)
	}
	return reply
}

func appendOption(reply []byte, code uint16, size int) []byte {
	return append(reply, byte(code>>8), byte(code), byte(size>>8), byte(size))
}

// subnet is the client's network as its resolver reports it (RFC 7871).
type subnet struct {
	sent bool
	// family is 1 for IPv4, 2 for IPv6.
	family        uint16
	source, scope uint8
	address       [16]byte
}

// bytes returns how many bytes of the address are sent.
func (s *subnet) bytes() int { return (int(s.source) + 7) / 8 }

// parse reads the option. It returns false when it is not as RFC 7871, section 6, says.
func (s *subnet) parse(data []byte) bool {
	if len(data) < 4 {
		return false
	}
	*s = subnet{sent: true, family: binary.BigEndian.Uint16(data), source: data[2]}
	size := addressSize(s.family)
	if size == 0 || s.source > 8*size || data[3] != 0 || len(data) != 4+s.bytes() {
		s.sent = false
		return false
	}
	copy(s.address[:], data[4:])
	spare := 8*s.bytes() - int(s.source)
	return spare == 0 || s.address[s.bytes()-1]<<(8-spare) == 0
}

// addressSize returns the size of an address of a family, 0 for one that is not known.
func addressSize(family uint16) uint8 {
	switch family {
	case 1:
		return 4
	case 2:
		return 16
	}
	return 0
}

// client returns the known part of the client's address; invalid if nothing is known.
func (s *subnet) client() netip.Addr {
	switch {
	case !s.sent || s.source == 0:
		return netip.Addr{}
	case s.family == 1:
		return netip.AddrFrom4([4]byte(s.address[:4]))
	}
	return netip.AddrFrom16(s.address).Unmap()
}

func (s *subnet) append(reply []byte) []byte {
	reply = appendOption(reply, dns.EDNS0SUBNET, 4+s.bytes())
	reply = append(reply, byte(s.family>>8), byte(s.family), s.source, s.scope)
	return append(reply, s.address[:s.bytes()]...)
}
