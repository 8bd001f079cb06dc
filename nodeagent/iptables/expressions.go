package iptables

import (
	"encoding/binary"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"

	"federation/nodeagent/xtables"
)

// expressions are netlink attributes: the expressions of a rule as iptables-nft makes them, native ones of nftables
// where it has them, else xtables' matches and targets.
type expressions struct {
	buf  []byte
	ipv6 bool
}

// encode returns a rule as iptables-nft makes it. Rules that iptables-nft expresses natively, such as marks, are left
// to it: needsRestore.
func encode(rule string, ipv6 bool) ([]byte, error) {
	e := &expressions{ipv6: ipv6}
	w := ruleParser{ipv6: ipv6, into: e}
	if err := w.read(rule); err != nil {
		return nil, err
	}
	return e.buf, nil
}

func (e *expressions) address(destination, not bool, p netip.Prefix) {
	offset := map[[2]bool]uint32{{false, false}: 12, {false, true}: 16, {true, false}: 8, {true, true}: 24}[[2]bool{e.ipv6, destination}]
	addr, whole := p.Addr().AsSlice(), (p.Bits()+7)/8
	e.payload(unix.NFT_PAYLOAD_NETWORK_HEADER, offset, uint32(whole))
	if p.Bits()%8 != 0 { // a payload of whole bytes needs no mask
		mask := make([]byte, whole)
		for i := range p.Bits() {
			mask[i/8] |= 0x80 >> (i % 8)
		}
		e.expression("bitwise", func() {
			e.number(unix.NFTA_BITWISE_SREG, unix.NFT_REG_1)
			e.number(unix.NFTA_BITWISE_DREG, unix.NFT_REG_1)
			e.number(unix.NFTA_BITWISE_LEN, uint32(whole))
			e.value(unix.NFTA_BITWISE_MASK, mask)
			e.value(unix.NFTA_BITWISE_XOR, make([]byte, whole))
		})
	}
	e.compare(not, addr[:whole])
}

func (e *expressions) protocol(not bool, number byte) {
	e.load("meta", unix.NFTA_META_DREG, unix.NFTA_META_KEY, unix.NFT_META_L4PROTO)
	e.compare(not, []byte{number})
}

// device compares an interface's name; a trailing + makes it a prefix.
func (e *expressions) device(not bool, name string) {
	e.load("meta", unix.NFTA_META_DREG, unix.NFTA_META_KEY, unix.NFT_META_IIFNAME)
	if begin, any := strings.CutSuffix(name, "+"); any {
		e.compare(not, []byte(begin))
		return
	}
	e.compare(not, append([]byte(name), 0))
}

func (e *expressions) port(_ string, a, b uint16) {
	lo, hi := binary.BigEndian.AppendUint16(nil, a), binary.BigEndian.AppendUint16(nil, b)
	e.payload(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2)
	if a == b {
		e.compare(false, lo)
		return
	}
	e.expression("range", func() {
		e.number(unix.NFTA_RANGE_SREG, unix.NFT_REG_1)
		e.number(unix.NFTA_RANGE_OP, unix.NFT_RANGE_EQ)
		e.value(unix.NFTA_RANGE_FROM_DATA, lo)
		e.value(unix.NFTA_RANGE_TO_DATA, hi)
	})
}

func (e *expressions) match(name string, revision uint8, info []byte) {
	e.xtables("match", name, uint32(revision), info)
}

func (e *expressions) target(name string, revision uint8, info []byte) {
	e.counter()
	e.xtables("target", name, uint32(revision), info)
}

func (e *expressions) verdict(v int32) {
	e.counter()
	e.immediate(map[int32]int{xtables.Drop: 0, xtables.Accept: 1, xtables.Return: unix.NFT_RETURN}[v], "") // NF_DROP, NF_ACCEPT
}

func (e *expressions) jump(chain string) {
	e.counter()
	e.immediate(unix.NFT_JUMP, chain)
}
