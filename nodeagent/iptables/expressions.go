package iptables

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// expressions are attributes of netlink: the expressions of a rule as iptables-nft makes them, native ones of nftables
// where it has such, else xtables' matches and targets in their binary form (linux/netfilter/xt_*.h).
type expressions struct {
	buf  []byte
	ipv6 bool
}

// encode is what iptables-nft makes of a rule, for the words that dialect uses; the rest is an error that names the word.
func encode(rule string, ipv6 bool) ([]byte, error) {
	e := &expressions{ipv6: ipv6}
	w := words{rest: rule}
	for not := false; w.rest != ""; {
		word := w.next()
		if word == "!" {
			not = true
			continue
		}
		if word == "-j" {
			e.expression("counter", func() {
				e.put(unix.NFTA_COUNTER_BYTES, make([]byte, 8))
				e.put(unix.NFTA_COUNTER_PACKETS, make([]byte, 8))
			})
		}
		if err := e.word(word, not, &w); err != nil {
			return nil, fmt.Errorf("rule %q: %w", rule, err)
		}
		not = false
	}
	return e.buf, nil
}

// words are what is left of a rule's text.
type words struct{ rest string }

func (w *words) next() (word string) {
	if strings.HasPrefix(w.rest, `"`) {
		word, w.rest, _ = strings.Cut(w.rest[1:], `"`)
		w.rest = strings.TrimPrefix(w.rest, " ")
		return word
	}
	word, w.rest, _ = strings.Cut(w.rest, " ")
	return word
}

// word adds what an option and what belongs to it say.
func (e *expressions) word(word string, not bool, w *words) error {
	switch word {
	case "-s", "-d":
		return e.address(word == "-d", not, w.next())
	case "-p":
		return e.protocol(not, w.next())
	case "-i":
		e.load("meta", unix.NFTA_META_DREG, unix.NFTA_META_KEY, unix.NFT_META_IIFNAME)
		e.compare(not, device(w.next()))
		return nil
	case "--dport":
		return e.port(w.next())
	case "-m":
		return e.match(w.next(), w)
	case "-j":
		return e.target(w.next(), w)
	}
	return fmt.Errorf("%q is not known", word)
}

func (e *expressions) address(destination, not bool, text string) error {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return err
	}
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
	return nil
}

func (e *expressions) protocol(not bool, name string) error {
	number, known := map[string]byte{"tcp": 6, "udp": 17, "sctp": 132, "icmp": 1, "ipv6-icmp": 58}[name]
	if !known {
		return fmt.Errorf("protocol %q is not known", name)
	}
	e.load("meta", unix.NFTA_META_DREG, unix.NFTA_META_KEY, unix.NFT_META_L4PROTO)
	e.compare(not, []byte{number})
	return nil
}

// device is an interface's name to compare with: what ends with + is the beginning of one.
func device(name string) []byte {
	if begin, any := strings.CutSuffix(name, "+"); any {
		return []byte(begin)
	}
	return append([]byte(name), 0)
}

// ports reads a port, or a range of them.
func ports(text string) (lo, hi uint16, err error) {
	from, to, isRange := strings.Cut(text, ":")
	a, err := strconv.ParseUint(from, 10, 16)
	if err != nil || !isRange {
		return uint16(a), uint16(a), err
	}
	b, err := strconv.ParseUint(to, 10, 16)
	return uint16(a), uint16(b), err
}

func (e *expressions) port(text string) error {
	a, b, err := ports(text)
	lo, hi := binary.BigEndian.AppendUint16(nil, a), binary.BigEndian.AppendUint16(nil, b)
	e.payload(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2)
	if a == b {
		e.compare(false, lo)
		return err
	}
	e.expression("range", func() {
		e.number(unix.NFTA_RANGE_SREG, unix.NFT_REG_1)
		e.number(unix.NFTA_RANGE_OP, unix.NFT_RANGE_EQ)
		e.value(unix.NFTA_RANGE_FROM_DATA, lo)
		e.value(unix.NFTA_RANGE_TO_DATA, hi)
	})
	return err
}

// match adds what an extension looks at; tcp and udp only say that --dport follows.
func (e *expressions) match(name string, w *words) error {
	switch name {
	case "tcp", "udp":
		return nil
	case "sctp":
		w.next()
		lo, hi, err := ports(w.next())
		info := make([]byte, 296)
		binary.NativeEndian.PutUint16(info, lo)
		binary.NativeEndian.PutUint16(info[2:], hi)
		binary.NativeEndian.PutUint32(info[284:], 2) // XT_SCTP_DEST_PORTS
		e.xtables("match", "sctp", 0, info)
		return err
	case "comment":
		w.next()
		info := make([]byte, 256)
		copy(info[:255], w.next())
		e.xtables("match", "comment", 0, info)
		return nil
	case "statistic":
		for range 3 { // --mode random --probability
			w.next()
		}
		share, err := strconv.ParseFloat(w.next(), 64)
		info := make([]byte, 24)
		binary.NativeEndian.PutUint32(info[4:], uint32(math.Round(share*(1<<31))))
		e.xtables("match", "statistic", 0, info)
		return err
	case "addrtype":
		info, side := make([]byte, 8), map[string]int{"--src-type": 0, "--dst-type": 2}[w.next()]
		if kind := w.next(); kind != "LOCAL" {
			return fmt.Errorf("addresses of type %q are not known", kind)
		}
		binary.NativeEndian.PutUint16(info[side:], 1<<unix.RTN_LOCAL)
		e.xtables("match", "addrtype", 1, info)
		return nil
	case "recent":
		return e.recent(w)
	}
	return fmt.Errorf("match %q is not known", name)
}

// recent adds xt_recent, up to its --rsource.
func (e *expressions) recent(w *words) error {
	info := make([]byte, 232)
	for {
		switch word := w.next(); word {
		case "--rcheck":
			info[8] |= 1
		case "--set":
			info[8] |= 2
		case "--reap":
			info[8] |= 32
		case "--seconds":
			n, err := strconv.ParseUint(w.next(), 10, 32)
			if err != nil {
				return err
			}
			binary.NativeEndian.PutUint32(info, uint32(n))
		case "--name":
			copy(info[10:209], w.next())
		case "--mask":
			mask, err := netip.ParseAddr(w.next())
			if err != nil {
				return err
			}
			copy(info[212:], mask.AsSlice())
		case "--rsource":
			e.xtables("match", "recent", 1, info)
			return nil
		default:
			return fmt.Errorf("%q is not known", word)
		}
	}
}

// target adds where the rule leads: a built-in verdict, an extension's target, or a chain.
func (e *expressions) target(name string, w *words) error {
	switch name {
	case "RETURN":
		e.verdict(unix.NFT_RETURN, "")
	case "DNAT":
		w.next()
		to, err := netip.ParseAddrPort(w.next())
		if err != nil {
			return err
		}
		info := make([]byte, 48)               // struct nf_nat_range2
		binary.NativeEndian.PutUint32(info, 3) // NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED
		for i := range 2 {                     // from, to
			copy(info[4+16*i:], to.Addr().AsSlice())
			binary.BigEndian.PutUint16(info[36+2*i:], to.Port())
		}
		e.xtables("target", "DNAT", 2, info)
	case "MARK":
		w.next()
		var mark, mask uint32
		if _, err := fmt.Sscanf(w.next(), "0x%x/0x%x", &mark, &mask); err != nil {
			return err
		}
		e.xtables("target", "MARK", 2, binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, mark), mask))
	default:
		e.verdict(unix.NFT_JUMP, name)
	}
	return nil
}
