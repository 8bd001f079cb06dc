package iptables

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"federation/nodeagent/xtables"
)

// ruleEncoder is the result of parsing a rule: expressions of nftables, or an entry of a legacy table. Extensions are the same
// in both: the binary form of a match or target (linux/netfilter/xt_*.h), which is not kept.
type ruleEncoder interface {
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
	into ruleEncoder
	buf  [296 / 8]uint64 // of the largest extension
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

// newExtension returns an empty extension, and its bytes as the kernel takes them: their number is a multiple of 8. They are valid until
// the next one.
func newExtension[T any](w *ruleParser) (info *T, bytes []byte) {
	size := (unsafe.Sizeof(*info) + 7) &^ 7
	clear(w.buf[:size/8])
	start := unsafe.Pointer(&w.buf[0])
	return (*T)(start), unsafe.Slice((*byte)(start), size)
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
		info, bytes := newExtension[xtSCTPInfo](w)
		info.destinationPorts, info.flags = [2]uint16{lo, hi}, xtSCTPDestPorts
		for i := range info.chunkFlags { // of no chunk
			info.chunkFlags[i].chunkType = 0xff
		}
		w.into.match(name, 0, bytes)
		return err
	case "comment":
		w.next()
		info, bytes := newExtension[xtCommentInfo](w)
		copy(info.comment[:len(info.comment)-1], w.next())
		w.into.match(name, 0, bytes)
		return nil
	case "statistic":
		for range 3 { // --mode random --probability
			w.next()
		}
		share, err := strconv.ParseFloat(w.next(), 64)
		info, bytes := newExtension[xtStatisticInfo](w)
		info.probability = uint32(math.Round(share * (1 << 31)))
		info.nthCount = info.probability // meaningless here, but iptables sets it
		w.into.match(name, 0, bytes)
		return err
	case "addrtype":
		info, bytes := newExtension[xtAddrTypeInfoV1](w)
		side := &info.source
		if w.next() == "--dst-type" {
			side = &info.destination
		}
		if kind := w.next(); kind != "LOCAL" {
			return fmt.Errorf("addresses of type %q are not known", kind)
		}
		*side = 1 << unix.RTN_LOCAL
		w.into.match(name, 1, bytes)
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
		info, bytes := newExtension[xtMarkMatchInfo1](w)
		info.mark, info.mask = mark, mask
		if not {
			info.invert = 1
		}
		w.into.match(name, 1, bytes)
		return err
	case "conntrack":
		w.next()
		info, bytes := newExtension[xtConntrackMatchInfo3](w)
		for _, state := range strings.Split(w.next(), ",") {
			bit, known := map[string]uint16{"INVALID": 1, "ESTABLISHED": 2, "RELATED": 4, "NEW": 8}[state]
			if info.stateMask |= bit; !known {
				return fmt.Errorf("state %q is not known", state)
			}
		}
		info.matchFlags = xtConntrackState
		w.into.match(name, 3, bytes)
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
	info, bytes := newExtension[xtRecentMatchInfoV1](w)
	for {
		switch word := w.next(); word {
		case "--rcheck":
			info.checkSet |= xtRecentCheck
		case "--set":
			info.checkSet |= xtRecentSet
		case "--reap":
			info.checkSet |= xtRecentReap
		case "--seconds":
			n, err := strconv.ParseUint(w.next(), 10, 32)
			if err != nil {
				return err
			}
			info.seconds = uint32(n)
		case "--name":
			copy(info.name[:len(info.name)-1], w.next())
		case "--mask":
			mask, err := netip.ParseAddr(w.next())
			if err != nil {
				return err
			}
			copy(info.mask[:], mask.AsSlice())
		case "--rsource":
			w.into.match("recent", 1, bytes)
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
		info, bytes := newExtension[xtMarkTargetInfo2](w)
		info.mark, info.mask = mark, mask
		w.into.target(name, 2, bytes)
		return err
	case "DNAT":
		w.next()
		to, err := netip.ParseAddrPort(w.next())
		info, bytes := newExtension[nfNATRange2](w)
		info.flags = nfNATRangeMapIPs | nfNATRangeProtoSpecified
		copy(info.minAddr[:], to.Addr().AsSlice())
		info.maxAddr = info.minAddr
		binary.BigEndian.PutUint16(info.minPort[:], to.Port())
		info.maxPort = info.minPort
		w.into.target(name, 2, bytes)
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

// masquerade adds MASQUERADE: a range for IPv6, and for IPv4 the form of old with its number of ranges.
func (w *ruleParser) masquerade() {
	info6, bytes := newExtension[nfNATRange](w)
	flags := &info6.flags
	if !w.ipv6 {
		var info4 *nfNATIPv4MultiRange
		info4, bytes = newExtension[nfNATIPv4MultiRange](w)
		info4.size, flags = 1, &info4.flags
	}
	if w.rest == "--random-fully" {
		w.next()
		*flags = nfNATRangeProtoRandomFully
	}
	w.into.target("MASQUERADE", 0, bytes)
}

func (w *ruleParser) reject() error {
	w.next()
	kind := w.next()
	with, known := map[string]uint32{"icmp-port-unreachable": 3, "tcp-reset": 7}[kind]
	if w.ipv6 {
		with, known = map[string]uint32{"icmp6-port-unreachable": 4, "tcp-reset": 6}[kind]
	}
	if !known {
		return fmt.Errorf("to reject with %q is not known", kind)
	}
	info, bytes := newExtension[rejectInfo](w)
	info.with = with
	w.into.target("REJECT", 0, bytes)
	return nil
}
