package iptables

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"federation/nodeagent/xtables"
)

// form is the result of parsing a rule: expressions of nftables, or an entry of a legacy table. Extensions are the same
// in both: the binary form of a match or target (linux/netfilter/xt_*.h), which is not kept.
type form interface {
	address(destination, not bool, p netip.Prefix)
	protocol(not bool, number byte)
	device(not bool, name string)
	port(protocol string, lo, hi uint16) // of the destination, by TCP or UDP
	match(name string, revision uint8, info []byte)

	target(name string, revision uint8, info []byte)
	verdict(v int32) // xtables.Drop, …
	jump(chain string)
}

// ruleParser has the unparsed rest of a rule's text, with the result so far.
type ruleParser struct {
	rest string
	ipv6 bool
	of   string // the last matched protocol
	into form
	buf  [296]byte // of the largest extension
}

// read parses a rule's text: all words that dialect uses. For another word it returns an error with its name.
func (w *ruleParser) read(rule string) error {
	w.rest = rule
	for not := false; w.rest != ""; {
		word := w.next()
		if word == "!" {
			not = true
			continue
		}
		if err := w.addOption(word, not); err != nil {
			return fmt.Errorf("rule %q: %w", rule, err)
		}
		not = false
	}
	return nil
}

func (w *ruleParser) next() (word string) {
	if strings.HasPrefix(w.rest, `"`) {
		word, w.rest, _ = strings.Cut(w.rest[1:], `"`)
		w.rest = strings.TrimPrefix(w.rest, " ")
		return word
	}
	word, w.rest, _ = strings.Cut(w.rest, " ")
	return word
}

// consumeNot consumes a leading "!".
func (w *ruleParser) consumeNot() (is bool) {
	w.rest, is = strings.CutPrefix(w.rest, "! ")
	return is
}

// extensionData returns room for an extension.
func (w *ruleParser) extensionData(size int) []byte {
	clear(w.buf[:size])
	return w.buf[:size]
}

// addOption adds an option with its arguments.
func (w *ruleParser) addOption(word string, not bool) error {
	switch word {
	case "-s", "-d":
		p, err := netip.ParsePrefix(w.next())
		if err == nil {
			w.into.address(word == "-d", not, p)
		}
		return err
	case "-p":
		name := w.next()
		number, known := protocols[name]
		if !known {
			return fmt.Errorf("protocol %q is not known", name)
		}
		w.into.protocol(not, number)
		return nil
	case "-i":
		w.into.device(not, w.next())
		return nil
	case "--dport":
		lo, hi, err := parsePorts(w.next())
		w.into.port(w.of, lo, hi)
		return err
	case "-m":
		return w.match(w.next())
	case "-j":
		return w.target(w.next())
	}
	return fmt.Errorf("%q is not known", word)
}

var protocols = map[string]byte{"tcp": 6, "udp": 17, "sctp": 132, "icmp": 1, "ipv6-icmp": 58}

// parsePorts parses a port, or a range of them.
func parsePorts(text string) (lo, hi uint16, err error) {
	from, to, isRange := strings.Cut(text, ":")
	a, err := strconv.ParseUint(from, 10, 16)
	if err != nil || !isRange {
		return uint16(a), uint16(a), err
	}
	b, err := strconv.ParseUint(to, 10, 16)
	return uint16(a), uint16(b), err
}

// match adds an extension; tcp and udp only announce --dport.
func (w *ruleParser) match(name string) error {
	switch name {
	case "tcp", "udp":
		w.of = name
		return nil
	case "sctp":
		w.next()
		lo, hi, err := parsePorts(w.next())
		info := w.extensionData(296)
		binary.NativeEndian.PutUint16(info, lo)
		binary.NativeEndian.PutUint16(info[2:], hi)
		for i := range 4 { // flags of chunks, of none
			info[268+3*i] = 0xff
		}
		binary.NativeEndian.PutUint32(info[284:], 2) // XT_SCTP_DEST_PORTS
		w.into.match(name, 0, info)
		return err
	case "comment":
		w.next()
		info := w.extensionData(256)
		copy(info[:255], w.next())
		w.into.match(name, 0, info)
		return nil
	case "statistic":
		for range 3 { // --mode random --probability
			w.next()
		}
		share, err := strconv.ParseFloat(w.next(), 64)
		info := w.extensionData(24)
		for _, at := range []int{4, 12} { // the second is meaningless here, but iptables sets it
			binary.NativeEndian.PutUint32(info[at:], uint32(math.Round(share*(1<<31))))
		}
		w.into.match(name, 0, info)
		return err
	case "addrtype":
		info, side := w.extensionData(8), map[string]int{"--src-type": 0, "--dst-type": 2}[w.next()]
		if kind := w.next(); kind != "LOCAL" {
			return fmt.Errorf("addresses of type %q are not known", kind)
		}
		binary.NativeEndian.PutUint16(info[side:], 1<<unix.RTN_LOCAL)
		w.into.match(name, 1, info)
		return nil
	}
	return w.stateful(name)
}

// stateful adds the matches that look at more than the packet.
func (w *ruleParser) stateful(name string) error {
	switch name {
	case "recent":
		return w.recent()
	case "mark":
		not := w.consumeNot()
		w.next()
		mark, mask, err := parseMark(w.next())
		info := w.extensionData(16)
		binary.NativeEndian.PutUint32(info, mark)
		binary.NativeEndian.PutUint32(info[4:], mask)
		if not {
			info[8] = 1
		}
		w.into.match(name, 1, info)
		return err
	case "conntrack":
		w.next()
		info, states := w.extensionData(168), uint16(0)
		for _, state := range strings.Split(w.next(), ",") {
			bit, known := map[string]uint16{"INVALID": 1, "ESTABLISHED": 2, "RELATED": 4, "NEW": 8}[state]
			if states |= bit; !known {
				return fmt.Errorf("state %q is not known", state)
			}
		}
		binary.NativeEndian.PutUint16(info[146:], 1) // XT_CONNTRACK_STATE
		binary.NativeEndian.PutUint16(info[150:], states)
		w.into.match(name, 3, info)
		return nil
	}
	return fmt.Errorf("match %q is not known", name)
}

// parseMark reads a mark and its mask.
func parseMark(text string) (mark, mask uint32, err error) {
	a, b, _ := strings.Cut(text, "/")
	x, err := strconv.ParseUint(a, 0, 32)
	if err != nil {
		return 0, 0, err
	}
	y, err := strconv.ParseUint(b, 0, 32)
	return uint32(x), uint32(y), err
}

// recent adds xt_recent, up to its --rsource.
func (w *ruleParser) recent() error {
	info := w.extensionData(232)
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
			w.into.match("recent", 1, info)
			return nil
		default:
			return fmt.Errorf("%q is not known", word)
		}
	}
}

// target adds the rule's target: a built-in verdict, an extension's target, or a chain.
func (w *ruleParser) target(name string) error {
	switch name {
	case "ACCEPT":
		w.into.verdict(xtables.Accept)
	case "DROP":
		w.into.verdict(xtables.Drop)
	case "RETURN":
		w.into.verdict(xtables.Return)
	case "MARK":
		w.next()
		mark, mask, err := parseMark(w.next())
		info := w.extensionData(8)
		binary.NativeEndian.PutUint32(info, mark)
		binary.NativeEndian.PutUint32(info[4:], mask)
		w.into.target(name, 2, info)
		return err
	case "DNAT":
		w.next()
		to, err := netip.ParseAddrPort(w.next())
		info := w.extensionData(48)            // struct nf_nat_range2
		binary.NativeEndian.PutUint32(info, 3) // NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED
		for i := range 2 {                     // from, to
			copy(info[4+16*i:], to.Addr().AsSlice())
			binary.BigEndian.PutUint16(info[36+2*i:], to.Port())
		}
		w.into.target(name, 2, info)
		return err
	case "MASQUERADE":
		w.masquerade()
	case "REJECT":
		return w.reject()
	default:
		w.into.jump(name)
	}
	return nil
}

// masquerade adds MASQUERADE: struct nf_nat_range, or for IPv4 that of old after how many there are.
func (w *ruleParser) masquerade() {
	info, flags := w.extensionData(40), 0
	if !w.ipv6 {
		info, flags = w.extensionData(24), 4
		info[0] = 1
	}
	if w.rest == "--random-fully" {
		w.next()
		info[flags] = 16 // NF_NAT_RANGE_PROTO_RANDOM_FULLY
	}
	w.into.target("MASQUERADE", 0, info)
}

func (w *ruleParser) reject() error {
	w.next()
	kind := w.next()
	with, known := map[string]byte{"icmp-port-unreachable": 3, "tcp-reset": 7}[kind]
	if w.ipv6 {
		with, known = map[string]byte{"icmp6-port-unreachable": 4, "tcp-reset": 6}[kind]
	}
	if !known {
		return fmt.Errorf("to reject with %q is not known", kind)
	}
	info := w.extensionData(8)
	info[0] = with
	w.into.target("REJECT", 0, info)
	return nil
}
