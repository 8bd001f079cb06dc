package authoritative

import (
	"encoding/binary"

	"github.com/miekg/dns"
)

const (
	// plainSize is what a client takes over UDP that says nothing about it (RFC 1035, section 2.3.4).
	plainSize = 512
	// ednsSize is what we send over UDP at most, and take: it passes everywhere without fragments.
	ednsSize = 1232
	// optSize is the size of an OPT record without options (RFC 6891, section 6.1.2).
	optSize = 11
)

// edns is what the OPT record of a query says (RFC 6891).
type edns struct {
	present bool
	// size is what the client takes over UDP, in bytes.
	size    uint16
	version uint8
	do      bool
}

// parse reads an OPT record; what is behind it is left alone. It returns false if there is no whole one.
func (e *edns) parse(record []byte) bool {
	if len(record) < optSize || record[0] != 0 || binary.BigEndian.Uint16(record[1:]) != dns.TypeOPT {
		return false
	}
	*e = edns{present: true, size: binary.BigEndian.Uint16(record[3:]), version: record[6], do: record[7]&0x80 != 0}
	return e.options(record[optSize:], int(binary.BigEndian.Uint16(record[9:])))
}

// options reads the options, which take size bytes. It returns false when they do not.
func (e *edns) options(list []byte, size int) bool {
	if len(list) < size {
		return false
	}
	for list = list[:size]; len(list) > 0; {
		if len(list) < 4 || len(list) < 4+int(binary.BigEndian.Uint16(list[2:])) {
			return false
		}
		list = list[4+int(binary.BigEndian.Uint16(list[2:])):]
	}
	return true
}

// limit is how long the answer may be over UDP.
func (e *edns) limit() int {
	if !e.present {
		return plainSize
	}
	return min(max(int(e.size), plainSize), ednsSize)
}

// length is the size of our OPT record.
func (e *edns) length() int {
	if !e.present {
		return 0
	}
	return optSize
}

// append writes our OPT record, if the query had one, for an answer of the code.
func (e *edns) append(reply []byte, rcode int) []byte {
	if !e.present {
		return reply
	}
	do := byte(0)
	if e.do { // RFC 3225, section 3
		do = 0x80
	}
	return append(reply, 0, 0, byte(dns.TypeOPT), ednsSize>>8, ednsSize&0xff, byte(rcode>>4), 0, do, 0, 0, 0)
}
