package nftables

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"time"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"federation/nodeagent/ruleset"
)

// rule is one step of a chain; says is its comment in listings.
type rule struct {
	says  string
	exprs []expr.Any
}

// encoded is a rule as the kernel takes it. Its comment ends with a hash of the rest, by which we know it again.
type encoded struct {
	exprs   [][]byte
	comment string
}

func (r rule) encode(family uint8) (encoded, error) {
	var out encoded
	hash := fnv.New32a()
	for _, e := range r.exprs {
		b, err := expr.Marshal(family, e)
		if err != nil {
			return out, fmt.Errorf("rule %q: %w", r.says, err)
		}
		if c, ok := e.(*expr.Ct); ok && c.Key == expr.CtKeyDST {
			b = bytes.Replace(b, ctKey(uint32(c.Key)), ctKey(originalAddress(family)), 1)
		}
		_, _ = hash.Write(b)
		out.exprs = append(out.exprs, b)
	}
	out.comment = fmt.Sprintf("%s (%08x)", r.says, hash.Sum32())
	return out, nil
}

// originalAddress returns the key (NFT_CT_DST_IP, NFT_CT_DST_IP6) of the original destination of a connection. The
// library sets a direction only with the older key, whose length nft does not know: it would abort when it lists a
// rule.
func originalAddress(family uint8) uint32 {
	if family == unix.NFPROTO_IPV6 {
		return 22
	}
	return 20
}

func ctKey(key uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{8, 0, unix.NFTA_CT_KEY, 0}, key)
}

// mark returns the bit of a packet's mark that has it masqueraded: kube-proxy's, unless one is running.
func (t *table) mark() uint32 {
	if t.federated {
		return 0x1000
	}
	return 0x4000
}

// registerNumber returns the n-th of sixteen registers of four bytes.
func registerNumber(n int) uint32 { return uint32(unix.NFT_REG32_00 + n) }

func uint32Bytes(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

func join(parts ...[]expr.Any) (out []expr.Any) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func (t *table) header(at, offset int) []expr.Any {
	return []expr.Any{&expr.Payload{DestRegister: registerNumber(at), Base: expr.PayloadBaseNetworkHeader, Offset: uint32(offset), Len: uint32(t.words * 4)}}
}

// source loads the packet's source address into registers.
func (t *table) source(at int) []expr.Any {
	if t.family == unix.NFPROTO_IPV6 {
		return t.header(at, 8)
	}
	return t.header(at, 12)
}

// target loads the packet's destination address.
func (t *table) target(at int) []expr.Any {
	if t.family == unix.NFPROTO_IPV6 {
		return t.header(at, 24)
	}
	return t.header(at, 16)
}

// frontendOf loads address . protocol . port of the packet's destination; of a node port the address is that of none.
func (t *table) frontendOf(at int, nodePort bool) []expr.Any {
	addr := t.target(at)
	if nodePort {
		addr = nil
		for i := range t.words {
			addr = append(addr, &expr.Immediate{Register: registerNumber(at + i), Data: make([]byte, 4)})
		}
	}
	return append(addr,
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: registerNumber(at + t.words)},
		&expr.Payload{DestRegister: registerNumber(at + t.words + 1), Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2})
}

// matchSet continues if the registers hold an element of a set.
func matchSet(set string, at int) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: registerNumber(at), SetName: set}}
}

func notIn(set string, at int) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: registerNumber(at), SetName: set, Invert: true}}
}

// loadFromMap continues if a map has the key, and loads its value.
func loadFromMap(set string, key, to int) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: registerNumber(key), DestRegister: registerNumber(to), IsDestRegSet: true, SetName: set}}
}

// verdict executes a map's verdict for the key.
func verdict(set string, key int) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: registerNumber(key), DestRegister: unix.NFT_REG_VERDICT, IsDestRegSet: true, SetName: set}}
}

func verdictExpr(kind expr.VerdictKind) []expr.Any { return []expr.Any{&expr.Verdict{Kind: kind}} }

func jumpExpr(kind expr.VerdictKind, chain string) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: kind, Chain: chain}}
}

// matchBits continues if register 0, of four bytes, has some of the bits (or none of them).
func matchBits(mask uint32, op expr.CmpOp) []expr.Any {
	return []expr.Any{
		&expr.Bitwise{SourceRegister: registerNumber(0), DestRegister: registerNumber(0), Len: 4, Mask: uint32Bytes(mask), Xor: uint32Bytes(0)},
		&expr.Cmp{Op: op, Register: registerNumber(0), Data: uint32Bytes(0)},
	}
}

// setMark sets or clears the mark for masquerading.
func (t *table) setMark(to uint32) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: registerNumber(0)},
		&expr.Bitwise{SourceRegister: registerNumber(0), DestRegister: registerNumber(0), Len: 4, Mask: uint32Bytes(^t.mark()), Xor: uint32Bytes(to)},
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: registerNumber(0)},
	}
}

func (t *table) translate(addr int) []expr.Any {
	return []expr.Any{&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(t.family),
		RegAddrMin: registerNumber(addr), RegProtoMin: registerNumber(addr + t.words)}}
}

// isLocal continues if an address of the packet is one of this node's, including loopback.
func isLocal(source bool) []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: registerNumber(0), ResultADDRTYPE: true, FlagSADDR: source, FlagDADDR: !source},
		&expr.Cmp{Op: expr.CmpOpEq, Register: registerNumber(0), Data: uint32Bytes(unix.RTN_LOCAL)},
	}
}

// matchNetwork continues if the address in the registers from 0 is in a network (or is not).
func (t *table) matchNetwork(p netip.Prefix, op expr.CmpOp) []expr.Any {
	first, last := rangeEnds(p)
	mask := make([]byte, len(first))
	for i := range mask {
		mask[i] = ^(first[i] ^ last[i])
	}
	return []expr.Any{
		&expr.Bitwise{SourceRegister: registerNumber(0), DestRegister: registerNumber(0), Len: uint32(len(mask)), Mask: mask, Xor: make([]byte, len(mask))},
		&expr.Cmp{Op: op, Register: registerNumber(0), Data: first},
	}
}

// fromPod continues if the packet is from a pod of this node.
func (t *table) fromPod() []expr.Any {
	p := t.pods
	switch {
	case len(p.CIDRs) > 0:
		return append(t.source(0), t.matchNetwork(p.CIDRs[0], expr.CmpOpEq)...)
	case p.Bridge != "":
		return byInterface(append([]byte(p.Bridge), 0))
	}
	return byInterface([]byte(p.InterfacePrefix))
}

func byInterface(name []byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: registerNumber(0)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: registerNumber(0), Data: name},
	}
}

// pickRules choose one of n slots from the number first on, or the one that the client has.
func (t *table) pickRules(s shape, n, first int) []rule {
	if s.affinity == 0 {
		return t.anyOf(s, n, first)
	}
	stay := join(t.source(0), t.frontendOf(t.words, s.nodePort), loadFromMap(affinity, 0, 0), t.translate(0))
	return append([]rule{{"the client stays with its backend", stay}}, t.anyOf(s, n, first)...)
}

// loadOriginalDestination loads address . protocol . port of a connection's original destination, for use after translation.
func (t *table) loadOriginalDestination(at int, nodePort bool) []expr.Any {
	out := t.frontendOf(at, nodePort)
	if !nodePort {
		out[0] = &expr.Ct{Key: expr.CtKeyDST, Register: registerNumber(at)}
	}
	out[len(out)-1] = &expr.Ct{Key: expr.CtKeyPROTODST, Register: registerNumber(at + t.words + 1)}
	return out
}

// stickRules remember where a client was sent, or refresh that.
func (t *table) stickRules(s shape) []rule {
	port := &expr.Payload{DestRegister: registerNumber(3*t.words + 2), Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}
	return []rule{{"the client stays here", join(
		t.source(0), t.loadOriginalDestination(t.words, s.nodePort), t.target(2*t.words+2), []expr.Any{port, &expr.Dynset{
			SrcRegKey: registerNumber(0), SrcRegData: registerNumber(2*t.words + 2), SetName: affinity,
			Operation: unix.NFT_DYNSET_OP_UPDATE, Timeout: time.Duration(s.affinity) * time.Second}})}}
}

// anyOf returns the rules for any slot. A packet that began with the rules of before a change may find its slot gone; the
// first slot is there as long as there is any.
func (t *table) anyOf(s shape, n, first int) []rule {
	slot := t.words + 2
	to := func(choice []expr.Any) []expr.Any {
		return join(t.frontendOf(0, s.nodePort), choice, loadFromMap(endpoints, 0, 0), t.translate(0))
	}
	one := rule{"to the first slot", to([]expr.Any{&expr.Immediate{Register: registerNumber(slot), Data: uint32Bytes(uint32(first))}})}
	if n == 1 {
		return []rule{one}
	}
	return []rule{{"to a slot at random", to(randomSlot(slot, n, first))}, one}
}

func randomSlot(at, n, first int) []expr.Any {
	return []expr.Any{&expr.Numgen{Register: registerNumber(at), Modulus: uint32(n), Type: unix.NFT_NG_RANDOM, Offset: uint32(first)}}
}

// routeRules route packets by their source.
func (t *table) routeRules(s shape) []rule {
	var rules []rule
	if s.ranges {
		rules = append(rules, rule{"not of the Service's source ranges",
			join(t.frontendOf(0, s.nodePort), t.source(t.words+2), notIn(sources, 0), verdictExpr(expr.VerdictDrop))})
	}
	if s.pod != s.outside {
		rules = append(rules, rule{"from a pod of this node", join(t.fromPod(), t.followRoute(s, s.pod))})
	}
	if s.node != s.outside {
		rules = append(rules, rule{"from this node", join(isLocal(true), t.followRoute(s, s.node))})
	}
	return append(rules, rule{"from elsewhere", t.followRoute(s, s.outside)})
}

func (t *table) followRoute(s shape, r ruleset.Route) []expr.Any {
	var mark []expr.Any
	if r.Masquerade {
		mark = t.setMark(t.mark())
	}
	switch r.To {
	case ruleset.Drop:
		return verdictExpr(expr.VerdictDrop)
	case ruleset.Reject, ruleset.Yield:
		return verdictExpr(expr.VerdictReturn)
	}
	return append(mark, jumpExpr(expr.VerdictGoto, s.pick(r.To))...)
}
