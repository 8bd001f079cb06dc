package authoritative

import (
	"encoding/binary"

	"github.com/miekg/dns"
)

const (
	// opcodeBits are those of the third byte of a header.
	opcodeBits = 0x78
	// headerSize is the size of a message's header (RFC 1035, section 4.1.1).
	headerSize = 12
	// maxName is the size of the longest name on the wire (RFC 1035, section 2.3.4).
	maxName = 255
)

// query is what a message asks. It is reused for each message without allocating.
type query struct {
	// name is the name asked for, in lower case; it is kept in lower.
	name  []byte
	lower [maxName + 8]byte
	hash  uint64
	// end is where the question ends in the message.
	end           int
	qtype, qclass uint16
	edns          edns
}

// parse reads the messages that nearly all clients send: one question, and at most an OPT record. It returns false for
// all others, which parseSlowPath reads.
func (q *query) parse(message []byte) bool {
	counts := binary.BigEndian.Uint64(message[4:])
	if message[2]&opcodeBits != 0 || counts&^1 != 1<<48 { // one question, and at most one additional record
		return false
	}
	if !q.question(message) {
		return false
	}
	q.edns = edns{}
	return message[11] == 0 || q.edns.parse(message[q.end:])
}

// question reads the question. It returns false if there is no whole one, or a compressed name.
func (q *query) question(message []byte) bool {
	at := headerSize
	for {
		if at >= len(message) {
			return false
		}
		size := int(message[at])
		at += 1 + size
		if size == 0 {
			break
		}
		if size > 63 || at > headerSize+maxName-1 {
			return false
		}
	}
	if at+4 > len(message) {
		return false
	}
	q.name = q.lower[:at-headerSize]
	copy(q.name, message[headerSize:])
	for i := 0; i < len(q.name); i += 8 {
		eight := q.lower[i : i+8 : i+8]
		binary.LittleEndian.PutUint64(eight, lowerCase(binary.LittleEndian.Uint64(eight)))
	}
	q.hash = hashOf(q.name)
	q.qtype, q.qclass = binary.BigEndian.Uint16(message[at:]), binary.BigEndian.Uint16(message[at+2:])
	q.end = at + 4
	return true
}

// lowerCase makes eight letters lower-case at once. The lengths of labels stay, as they are below "A".
func lowerCase(eight uint64) uint64 {
	const each = 0x0101010101010101
	low := eight & (0x7f * each)
	aboveZ, fromA := low+(0x7f-'Z')*each, low+(0x80-'A')*each
	upper := ^eight & (aboveZ ^ fromA) & (0x80 * each)
	return eight | upper>>2
}

// inZone reports whether the name asked for is the zone or below it.
func (q *query) inZone(wire string) bool {
	start := len(q.name) - len(wire)
	if start < 0 || string(q.name[start:]) != wire {
		return false
	}
	at := 0
	for at < start {
		at += 1 + int(q.name[at])
	}
	return at == start
}

// isOtherQuestion reports whether a type is one of the questions that are not types of records, other
// than ANY (RFC 6895, section 3.1).
func isOtherQuestion(t uint16) bool { return t >= 128 && t < dns.TypeANY }
