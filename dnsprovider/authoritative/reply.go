package authoritative

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/miekg/dns"
)

// maxChain bounds the CNAMEs in one answer.
const maxChain = 16

// responder answers one message at a time. It is reused, so that none allocates memory.
type responder struct {
	query    query
	snapshot *snapshot
	// reply is the answer in the making. It begins as the message itself, whose ID and question stay in place.
	reply []byte
	// room is the maximum size of the answer's sections, including what is before them.
	room int
	from origin
	// target is the target of the last CNAME.
	target [maxName]byte
	// touched keeps the prefetch from being optimized away.
	touched byte
	// service says how to answer; second is the time in seconds since 1970.
	service  *service
	counters *counters
	second   uint32
	// special answers messages of secondaries. Of several answers it returns the last, nil if there is none.
	special func(message []byte, from origin) (reply []byte, handled bool)
	// known: a cookie proves the client's address. counted: the answer has been counted for its network.
	known, counted bool
	header
}

// origin is where a message came from.
type origin struct {
	client netip.Addr
	udp    bool
}

// service says how to answer, whatever the zone holds. It is the same for all messages.
type service struct {
	Options
	limiter *limiter
	denials *denials
	cookies atomic.Pointer[cookieSecrets]
	// away means that the zone is not kept up to date at the moment.
	away atomic.Bool
}

// header is what the header of an answer says.
type header struct {
	rcode         int
	authoritative bool
	// limited: the client's network has reached its limit. overflow: there was more to say than room.
	limited, overflow              bool
	answers, authority, additional uint16
}

// respond answers a message in place. buf may be written to its full length, up to the maximum size of an answer;
// message is its beginning. It returns nil for what must not be answered: messages too short for a header, and
// responses, because two servers would answer each other for ever.
func (r *responder) respond(s *snapshot, message []byte, from origin) []byte {
	r.from, r.header, r.reply, r.known, r.counted = from, header{}, nil, false, false
	if len(message) < headerSize || message[2]&0x80 != 0 {
		return nil
	}
	if !r.query.parse(message) {
		r.query.qtype = dns.TypeNone
		if r.special != nil {
			reply, handled := r.special(message, from)
			if handled && (reply == nil || r.tooMany()) { // counted with the errors: no signature frees from the limit, as it may be sent again
				return nil
			} else if handled {
				return append(message[:0], reply...)
			}
		}
		plain, refusal := parseSlowPath(message)
		if refusal != nil {
			r.rcode = int(refusal[3] & 0xf)
			if r.tooMany() {
				return nil
			}
			return append(message[:0], refusal...)
		}
		if message = append(message[:0], plain...); !r.query.parse(message) {
			return nil
		}
	}
	r.snapshot, r.reply = s, message[:r.query.end]
	r.known = r.prepareOPT()
	r.room = dns.MaxMsgSize - r.query.edns.length()
	if from.udp {
		r.room = r.query.edns.maxAnswerSize() - r.query.edns.length()
	}
	r.decide()
	if !r.known && r.tooMany() {
		if rand.Uint32()%slip != 0 {
			return nil
		}
		r.overflow = true
	}
	return r.finish()
}

// tooMany counts the answer, once, and reports whether the client's network has reached its limit. Each 512 bytes
// written so far count as one.
func (r *responder) tooMany() bool {
	if r.counted {
		return r.limited
	}
	r.counted = true
	cost := uint64(1 + len(r.reply)/512)
	r.limited = r.from.udp && r.service.limiter != nil && r.service.limiter.exceeded(r.from.client, r.class(), r.second, cost)
	return r.limited
}

// slip is which fraction of the answers above the limit is sent, without records: a real client asks again over TCP,
// and the victim of a forged address gets no more bytes than were sent in its name.
const slip = 2

// prepareOPT prepares our OPT record. It reports whether a cookie proves the client's address.
func (r *responder) prepareOPT() (known bool) {
	e := &r.query.edns
	if !e.present {
		return false
	}
	if e.wantsNSID {
		e.nsid = r.service.NSID
	}
	switch {
	case !r.snapshot.synced:
		e.extended = dns.ExtendedErrorCodeNotReady
	case r.service.away.Load():
		e.extended = dns.ExtendedErrorCodeStaleAnswer
	}
	return e.cookie.renew(r.service.cookieSecrets(), r.from.client, r.second)
}

// class returns what the answer counts as.
func (r *responder) class() answerClass {
	switch {
	case r.answers > 0:
		return classAnswer
	case r.authoritative:
		return classNegative
	}
	return classError
}

// guarded calls respond and recovers from a panic, so that no message takes the process down.
func (r *responder) guarded(s *snapshot, message []byte, from origin) (reply []byte) {
	defer func() {
		if broken := recover(); broken != nil {
			slog.Error("DNS message broke the server", "err", broken, "message", fmt.Sprintf("%x", message), "stack", string(debug.Stack()))
			reply = nil
		}
	}()
	if reply = r.respond(s, message, from); r.limited {
		r.counters.limited.Add(1)
	}
	if reply != nil {
		r.counters.count(r.query.qtype, r.rcode)
	}
	if r.service.QueryLog != nil {
		r.log(reply)
	}
	return reply
}

// log writes a line about the last message.
func (r *responder) log(reply []byte) {
	name, _, err := dns.UnpackDomainName(r.query.name, 0)
	if err != nil || r.query.qtype == dns.TypeNone {
		name = "" // it could not be read
	}
	r.service.QueryLog.Info("DNS query", "client", r.from.client, "udp", r.from.udp, "name", name, "type", dns.Type(r.query.qtype).String(),
		"rcode", dns.RcodeToString[r.rcode], "bytes", len(reply), "limited", r.limited)
}

// decide answers from the zone, or explains why not.
func (r *responder) decide() {
	q, s := &r.query, r.snapshot
	switch {
	case q.edns.version != 0:
		r.rcode = dns.RcodeBadVers
	case q.edns.malformed || q.qtype == dns.TypeOPT || q.qtype == dns.TypeNone:
		r.rcode = dns.RcodeFormatError
	case q.qclass != dns.ClassINET || q.qtype == dns.TypeAXFR || q.qtype == dns.TypeIXFR || !q.inZone(s.wire):
		r.rcode = dns.RcodeRefused
	case isOtherQuestion(q.qtype):
		r.rcode = dns.RcodeNotImplemented
	case !s.synced:
		r.rcode = dns.RcodeServerFailure
	default:
		r.authoritative = true
		r.followCNAMEs()
	}
}

// followCNAMEs answers along the CNAMEs as far as they stay in the zone. The code is that of the last name
// (RFC 6604), and a negative end brings the SOA (RFC 2308).
func (r *responder) followCNAMEs() {
	var chain [maxChain]node
	n := r.snapshot.names.find(r.query.hash, r.query.name)
	name, owner := r.query.name, headerSize
	for hop := range maxChain {
		if n == "" {
			r.rcode = dns.RcodeNameError
			r.negative()
			r.addDenial(name, n, owner)
			return
		}
		if found, ok := n.find(r.query.qtype); ok {
			r.positive(&found, owner)
			return
		}
		alias, ok := n.find(dns.TypeCNAME)
		if !ok {
			r.negative()
			r.addDenial(name, n, owner)
			return
		}
		chain[hop] = n
		next := len(r.reply) + recordHeader
		r.answers += r.putSigned(&alias.records, owner, 0)
		if alias.more == "" {
			return
		}
		name, owner = r.target[:copy(r.target[:], alias.more)], next
		n = r.snapshot.names.find(hashOf(name), name)
		if slices.Contains(chain[:hop+1], n) {
			return
		}
	}
}

// positive adds the requested answer, rotating its addresses, because many clients use the first.
func (r *responder) positive(a *answer, owner int) {
	first, at, chosen := 0, len(r.reply), r.chooseRecords(a)
	if stride := a.recordStride(); chosen.count > 1 && stride > 0 {
		first = int(rand.Uint32N(uint32(chosen.count))) * stride
	}
	r.answers += r.putSigned(&chosen, owner, first)
	if a.rtype == dns.TypeNS {
		r.nameServers(at + recordHeader)
	}
}

// negative adds the SOA, which says how long the denial may be cached.
func (r *responder) negative() {
	r.authority += r.putSigned(&r.snapshot.negative.records, r.zoneAt(), 0)
}

// nameServers adds the addresses of the name server, whose name is at the offset, which saves the client a question.
// They are left out if there is no room.
func (r *responder) nameServers(name int) {
	if r.overflow {
		return
	}
	end := len(r.reply)
	for a := range r.snapshot.lookup(wireName(r.snapshot.soa.Ns)).answers() {
		r.appendRecords(&a.records, name, 0)
		r.additional += a.count
	}
	if r.overflow {
		r.reply, r.additional, r.overflow = r.reply[:end], 0, false
	}
}

// zoneAt returns where the question has the name of the zone.
func (r *responder) zoneAt() int { return headerSize + len(r.query.name) - len(r.snapshot.wire) }

// putSigned puts records, and their signature if the client wants it. It returns how many that are.
func (r *responder) putSigned(records *records, owner, first int) uint16 {
	r.appendRecords(records, owner, first)
	if records.signature == "" || !r.query.edns.do {
		return records.count
	}
	signed := records.signature.records()
	r.appendRecords(&signed, owner, 0)
	return records.count + signed.count
}

// appendRecords appends records, whose owner's name is at an offset of the message. The record at the offset first of the
// packed ones comes first.
func (r *responder) appendRecords(records *records, owner, first int) {
	at := len(r.reply)
	if at+len(records.packed) > r.room {
		r.overflow = true
		return
	}
	r.reply = append(r.reply, records.packed[first:]...)
	r.reply = append(r.reply, records.packed[:first]...)
	put := r.reply[at:]
	if owner != headerSize {
		pointOwners(put, owner)
	}
	for _, suffix := range records.suffixes {
		if suffix == 0 {
			break
		}
		pointTo(put[suffix:], r.zoneAt())
	}
}

// pointOwners makes the name at an offset the owner of all records.
func pointOwners(records []byte, name int) {
	for len(records) > 0 {
		pointTo(records, name)
		records = records[recordHeader+int(binary.BigEndian.Uint16(records[recordHeader-2:])):]
	}
}

// pointTo writes a pointer to a name at an offset (RFC 1035, section 4.1.4).
func pointTo(b []byte, name int) { binary.BigEndian.PutUint16(b, 0xc000|uint16(name)) }

// finish writes the header and our OPT record. If not everything fits, no records are sent, because a client that sees
// TC must ask again over TCP anyway.
func (r *responder) finish() []byte {
	if r.overflow {
		r.header = header{rcode: r.rcode, authoritative: r.authoritative, limited: r.limited, overflow: true}
		r.reply = r.reply[:r.query.end]
		if !r.from.udp {
			r.rcode = dns.RcodeServerFailure // more than any message can hold
		}
	}
	reply := r.query.edns.append(r.reply, r.rcode)
	if r.query.edns.present {
		r.additional++
	}
	flags := byte(0x80) | reply[2]&1 // an answer, with RD as it came
	if r.authoritative {
		flags |= 4
	}
	if r.overflow && r.from.udp {
		flags |= 2
	}
	reply[2], reply[3] = flags, byte(r.rcode&0xf)
	binary.BigEndian.PutUint16(reply[6:], r.answers)
	binary.BigEndian.PutUint16(reply[8:], r.authority)
	binary.BigEndian.PutUint16(reply[10:], r.additional)
	return reply
}
