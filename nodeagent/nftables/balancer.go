package nftables

import (
	"encoding/binary"
	"net/netip"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/nfnetlink"
	"federation/nodeagent/ruleset"
)

// Flags of TCP.
const (
	fin = 1 << iota
	syn
	rst
	_
	ack
)

// balancerSets are those of a load balancer, with the backends as address . protocol . port, and a counter for each.
func balancerSets(frontend []datatype) []definition {
	return []definition{
		{name: asked, key: frontend, counted: true},
		{name: taken, key: frontend, counted: true},
		{name: retried, key: frontend, counted: true},
	}
}

// tcpFlags continues if some of these flags are set exactly as in want.
func tcpFlags(mask, want byte, op expr.CmpOp) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: registerNumber(0), Base: expr.PayloadBaseTransportHeader, Offset: 13, Len: 1},
		&expr.Bitwise{SourceRegister: registerNumber(0), DestRegister: registerNumber(0), Len: 1, Mask: []byte{mask}, Xor: []byte{0}},
		&expr.Cmp{Op: op, Register: registerNumber(0), Data: []byte{want}},
	}
}

// matchProtocol continues if the packet is of a protocol.
func matchProtocol(p byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: registerNumber(0)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: registerNumber(0), Data: []byte{p}},
	}
}

// balancer has the rules of a table by which a load balancer counts what its backends take.
type balancer struct{ table *table }

// answerRules come before others of after-nat: they see what backends answer to new connections.
func (b balancer) answerRules() []rule {
	icmp, unreachable := byte(unix.IPPROTO_ICMP), byte(3)
	if b.table.family == unix.NFPROTO_IPV6 {
		icmp, unreachable = unix.IPPROTO_ICMPV6, 1
	}
	isUnreachable := []expr.Any{
		&expr.Payload{DestRegister: registerNumber(0), Base: expr.PayloadBaseTransportHeader, Len: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: registerNumber(0), Data: []byte{unreachable}},
	}
	return []rule{
		{"the beginning or the end of a connection", join(matchProtocol(unix.IPPROTO_TCP), tcpFlags(syn|rst, 0, expr.CmpOpNeq), jumpExpr(expr.VerdictJump, "answers"))},
		{"a connection that a backend cannot take, to be retried", join(matchProtocol(icmp), isUnreachable, notEstablished(), b.askedInside(), matchSet(retried, 0), verdictExpr(expr.VerdictDrop))},
	}
}

// answersRules count connections that backends take, and withhold their refusals: the client's next SYN goes to any backend. The kernel has
// forgotten a connection by then that was refused.
func (b balancer) answersRules() []rule {
	const sequence = 4 // its offset
	return []rule{
		{"what clients say", join([]expr.Any{&expr.Ct{Key: expr.CtKeyDIRECTION, Register: registerNumber(0)}, &expr.Cmp{Op: expr.CmpOpEq, Register: registerNumber(0), Data: []byte{0}}}, verdictExpr(expr.VerdictReturn))},
		{"taken", join(tcpFlags(syn|rst, syn, expr.CmpOpEq), b.backendOf(), matchSet(taken, 0), verdictExpr(expr.VerdictReturn))},
		{"refused, to be retried", join(tcpFlags(rst, rst, expr.CmpOpEq), []expr.Any{ // one that answers a SYN has no sequence number
			&expr.Payload{DestRegister: registerNumber(0), Base: expr.PayloadBaseTransportHeader, Offset: sequence, Len: 4},
			&expr.Cmp{Op: expr.CmpOpEq, Register: registerNumber(0), Data: make([]byte, 4)},
		}, notEstablished(), b.backendOf(), matchSet(retried, 0), verdictExpr(expr.VerdictDrop))},
	}
}

// notEstablished continues if a connection has not been established.
func notEstablished() []expr.Any {
	const assured = 1 << 2 // IPS_ASSURED
	return join([]expr.Any{&expr.Ct{Key: expr.CtKeySTATUS, Register: registerNumber(0)}}, matchBits(assured, expr.CmpOpEq))
}

// backendOf loads address . protocol . port of the packet's source.
func (b balancer) backendOf() []expr.Any {
	key := b.table.frontendOf(0, false)
	key[0] = b.table.source(0)[0]
	key[len(key)-1] = &expr.Payload{DestRegister: registerNumber(b.table.words + 1), Base: expr.PayloadBaseTransportHeader, Len: 2}
	return key
}

// askedInside loads address . protocol . port that the packet was sent to which an ICMP message has inside.
func (b balancer) askedInside() []expr.Any {
	const header = 8 // of ICMP
	addr, protocol, length := 16, 9, 20
	if b.table.family == unix.NFPROTO_IPV6 {
		addr, protocol, length = 24, 6, 40
	}
	load := func(at, offset, size int) expr.Any {
		return &expr.Payload{DestRegister: registerNumber(at), Base: expr.PayloadBaseTransportHeader, Offset: uint32(header + offset), Len: uint32(size)}
	}
	return []expr.Any{load(0, addr, b.table.words*4), load(b.table.words, protocol, 1), load(b.table.words+1, length+2, 2)}
}

// countBackends calls emit with what counts a port's backends.
func (b balancer) countBackends(p *ruleset.Port, emit func(entry, string)) {
	for _, backend := range backendsOf(p) {
		key := b.table.frontendKey(ruleset.FrontendKey{Addr: backend.Addr.Addr(), Protocol: p.ID.Protocol, Port: backend.Addr.Port()})
		emit(entry{asked, key}, "")
		if p.ID.Protocol != corev1.ProtocolTCP {
			continue
		}
		emit(entry{taken, key}, "")
		if p.Retried {
			emit(entry{retried, key}, "")
		}
	}
}

// setExpr is NFTA_SET_EXPR.
const setExpr = 17

// addCounter has a set count for each of its elements.
func (x *transaction) addCounter() {
	at := x.batch.Nest(setExpr)
	x.batch.String(unix.NFTA_EXPR_NAME, "counter")
	x.batch.End(x.batch.Nest(unix.NFTA_EXPR_DATA))
	x.batch.End(at)
}

// Backend is one as counters have it.
type Backend struct {
	Protocol corev1.Protocol
	Addr     netip.AddrPort
}

// Count is what became of new connections to a backend, since it became one. An attempt that is retried counts again.
type Count struct {
	// Asked are all; Taken, of TCP, those that it took; Refused those whose refusal was withheld.
	Asked, Taken, Refused uint64
}

// Counts reads the counters of backends, for a node that is a Balancer.
func (w *Writer) Counts() (map[Backend]Count, error) {
	out := map[Backend]Count{}
	for _, family := range families {
		for set, into := range map[string]func(*Count, uint64){
			asked:   func(c *Count, n uint64) { c.Asked = n },
			taken:   func(c *Count, n uint64) { c.Taken = n },
			retried: func(c *Count, n uint64) { c.Refused = n },
		} {
			if err := readSet(w.socket, w.name, family, set, func(e []byte) {
				if b, ok := parseCountedKey(e); ok {
					c := out[b]
					into(&c, packetsOf(e))
					out[b] = c
				}
			}); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func parseCountedKey(e []byte) (Backend, bool) {
	key, _ := parseElement(e)
	n := len(key) - 8 // protocol and port have four bytes each
	addr, _ := netip.AddrFromSlice([]byte(key[:max(n, 0)]))
	if !addr.IsValid() {
		return Backend{}, false
	}
	for p, number := range protocolNumber {
		if key[n] == number {
			return Backend{p, netip.AddrPortFrom(addr, binary.BigEndian.Uint16([]byte(key[n+4:])))}, true
		}
	}
	return Backend{}, false
}

// packetsOf returns the packets that the counter of an element has.
func packetsOf(e []byte) uint64 {
	data := nfnetlink.Attribute(nfnetlink.Attribute(e, unix.NFTA_SET_ELEM_EXPR), unix.NFTA_EXPR_DATA)
	if packets := nfnetlink.Attribute(data, unix.NFTA_COUNTER_PACKETS); len(packets) == 8 {
		return binary.BigEndian.Uint64(packets)
	}
	return 0
}
