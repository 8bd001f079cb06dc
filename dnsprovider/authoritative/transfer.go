package authoritative

import (
	"bufio"
	"encoding/binary"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/time/rate"
)

// Transfers configure who may transfer the zone, and who is notified when it changes.
type Transfers struct {
	// Keys are those with which the zone may be transferred (AXFR, RFC 5936; IXFR, RFC 1995). None: nobody may.
	Keys []Key
	// Networks are those from which it may be transferred, with a key. None: any.
	Networks []netip.Prefix
	// Notify are the servers to notify of changes (NOTIFY, RFC 1996), signed with the first key.
	Notify []netip.AddrPort
}

const (
	// maxTransfers bounds concurrent transfers, transfersASecond their sustained rate.
	maxTransfers, transfersASecond = 8, 20
	// transferTimeout is how long a message of a transfer may take.
	transferTimeout = 10 * time.Second
	// signatureSize is how long a signature is at most, without the key's name (RFC 8945, section 4.2).
	signatureSize = 110
	// messageRecords bounds the size of a message of a transfer, in bytes before names are compressed.
	messageRecords = 32 << 10
)

// transfers is what the server remembers of its secondaries.
type transfers struct {
	Transfers
	zone    *zone
	journal journal
	slots   chan struct{}
	limit   *rate.Limiter
	targets []*target
	// complain limits the logging of refusals.
	complain rate.Sometimes
}

func newTransfers(o Transfers, z *zone) *transfers {
	t := &transfers{Transfers: o, zone: z, slots: make(chan struct{}, maxTransfers), limit: rate.NewLimiter(transfersASecond, transfersASecond),
		complain: rate.Sometimes{First: 1, Interval: time.Minute}}
	if len(o.Keys) > 0 {
		for _, address := range o.Notify {
			t.targets = append(t.targets, &target{address: address, wake: make(chan struct{}, 1)})
		}
	}
	return t
}

// signedPacket answers a message over UDP.
func (a *answering) signedPacket(message []byte, from origin) ([]byte, bool) {
	return a.answerSigned(message, from, nil)
}

// signedMessage answers messages of a connection. It writes all but the last one of a transfer itself.
func (a *answering) signedMessage(conn net.Conn, out *bufio.Writer) func([]byte, origin) ([]byte, bool) {
	return func(message []byte, from origin) ([]byte, bool) {
		return a.answerSigned(message, from, func(part []byte) error {
			if err := conn.SetDeadline(time.Now().Add(transferTimeout)); err != nil {
				return err
			}
			framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(part))), part...)
			if _, err := out.Write(framed); err != nil {
				return err
			}
			return out.Flush()
		})
	}
}

// answerSigned answers messages that are signed, and leaves all others to the responder, which refuses transfers.
func (a *answering) answerSigned(message []byte, from origin, write func([]byte) error) (reply []byte, handled bool) {
	query := &dns.Msg{}
	if len(a.transfers.Keys) == 0 || query.Unpack(message) != nil || query.IsTsig() == nil || len(query.Question) != 1 {
		return nil, false
	}
	t, code := verifySignature(a.transfers.Keys, message, query)
	qtype := query.Question[0].Qtype
	var err error
	switch {
	case code != dns.RcodeSuccess:
		reply, err = t.packRefusal(code)
	case query.Opcode == dns.OpcodeQuery && (qtype == dns.TypeAXFR || qtype == dns.TypeIXFR):
		send := &sender{signed: t, write: write}
		err = a.transfers.transfer(send, from)
		reply = send.last
	default:
		reply, err = a.answerPlain(t, from)
	}
	if err != nil {
		return nil, true
	}
	return reply, true
}

// answerPlain answers a signed question as if it were none, and signs that.
func (a *answering) answerPlain(t *signed, from origin) ([]byte, error) {
	question := t.query.Copy()
	question.Extra = question.Extra[:len(question.Extra)-1] // the signature
	packed, err := question.PackBuffer(make([]byte, dns.MaxMsgSize))
	if err != nil {
		return nil, err
	}
	r := &responder{service: &a.service, second: uint32(time.Now().Unix())}
	answered, answer := r.respond(a.zone.current.Load(), packed, from), &dns.Msg{Compress: true}
	if err := answer.Unpack(answered); err != nil {
		return nil, err
	}
	if from.udp && len(answered)+signatureSize+len(t.key.Name) > r.query.edns.maxAnswerSize() {
		answer.Answer, answer.Ns, answer.Truncated = nil, nil, true
	}
	return t.sign(answer, dns.RcodeSuccess)
}

// transfer sends the zone, or its changes.
func (t *transfers) transfer(send *sender, from origin) error {
	now, question := t.zone.current.Load(), send.query.Question[0]
	incremental := question.Qtype == dns.TypeIXFR
	switch {
	case dns.CanonicalName(question.Name) != t.zone.name:
		return send.code(dns.RcodeNotAuth)
	case !t.allow(from.client):
		return send.code(dns.RcodeRefused)
	case now.signer != nil:
		return t.refuseSigned(send, from)
	case !now.synced:
		return send.code(dns.RcodeServerFailure)
	case from.udp && !incremental: // RFC 5936, section 4.2
		return send.code(dns.RcodeRefused)
	case from.udp: // RFC 1995, section 2: over TCP there is more
		return send.all(slices.Values([]dns.RR{&now.soa}))
	}
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	default:
		return send.code(dns.RcodeRefused)
	}
	if !t.limit.Allow() {
		return send.code(dns.RcodeRefused)
	}
	client := client{key: send.key.Name, address: from.client}
	records := now.transferRecords()
	if serial, ok := askedFrom(send.query); incremental && ok {
		if changes, ok := t.journal.incrementsSince(client, serial, now); ok {
			records = changes
		}
	}
	if err := send.all(records); err != nil {
		return err
	}
	t.journal.noteSent(client, now.soa.Serial)
	return nil
}

// allow reports whether a client is in one of the networks that may have the zone.
func (t *Transfers) allow(client netip.Addr) bool {
	return len(t.Networks) == 0 || slices.ContainsFunc(t.Networks, func(n netip.Prefix) bool { return n.Contains(client) })
}

// refuseSigned returns why a signed zone cannot be had (ADR 32), and logs it now and then.
func (t *transfers) refuseSigned(send *sender, from origin) error {
	const why = "the zone is signed while it is asked for, and cannot be transferred"
	t.complain.Do(func() {
		slog.Warn("Transfer refused: "+why+"; run another federation-dns instead", "zone", t.zone.name, "client", from.client, "key", send.key.Name)
	})
	m := new(dns.Msg).SetRcode(send.query, dns.RcodeRefused)
	if opt := send.query.IsEdns0(); opt != nil {
		m.SetEdns0(ednsSize, opt.Do())
		m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeNotSupported, ExtraText: why}}
	}
	return send.send(m)
}

// askedFrom returns the serial number of the client that asks for changes (RFC 1995, section 3).
func askedFrom(query *dns.Msg) (uint32, bool) {
	if len(query.Ns) != 1 {
		return 0, false
	}
	soa, ok := query.Ns[0].(*dns.SOA)
	if !ok {
		return 0, false
	}
	return soa.Serial, true
}
