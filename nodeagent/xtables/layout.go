package xtables

import "encoding/binary"

// layout is where an entry's fields are: struct ipt_entry and struct ip6t_entry of linux/netfilter_ipv4/ip_tables.h and
// linux/netfilter_ipv6/ip6_tables.h. An entry is its head, matches, and a target.
type layout struct {
	addr          int // bytes of an address: source, destination, then their masks
	proto         int // the protocol, 2 bytes
	flags, invert int
	targetOffset  int // 2 bytes, as has the next entry's offset after it
	base          int // bytes of the head; its end are the counters
}

var (
	ipv4 = &layout{addr: 4, proto: 80, flags: 82, invert: 83, targetOffset: 88, base: 112}
	ipv6 = &layout{addr: 16, proto: 128, flags: 131, invert: 132, targetOffset: 140, base: 168}
)

func layoutFor(v6 bool) *layout {
	if v6 {
		return ipv6
	}
	return ipv4
}

// Sizes in bytes: of what a match or target begins with (its size, name, and revision), of the two built-in targets, of a
// chain's name, and of an entry's counters.
const (
	sizeHeader   = 32
	sizeStandard = 40 // a verdict
	sizeError    = 64 // a name
	maxName      = 30
	sizeCounters = 16
	align        = 8
)

// nameError is the target of entries that no packet passes: the heads of chains, and the end of a table.
const nameError = "ERROR"

// Verdicts of the built-in target. One that is not negative is the offset of an entry to go on with.
const (
	Drop   = -1
	Accept = -2
	Return = -5
)

// hookNames are the chains that the kernel calls, by their hooks' numbers.
var hookNames = [hooks][]byte{[]byte("PREROUTING"), []byte("INPUT"), []byte("FORWARD"), []byte("OUTPUT"), []byte("POSTROUTING")}

const hooks = 5

// entry is one, with all that belongs to it.
type entry []byte

// entryAt returns the entry at an offset; false if the kernel would not accept it.
func (l *layout) entryAt(blob []byte, offset int) (entry, bool) {
	rest := blob[offset:]
	if len(rest) < l.base+sizeHeader {
		return nil, false
	}
	target, next := l.offsets(rest)
	if target < l.base || next%align != 0 || next > len(rest) || target+sizeHeader > next {
		return nil, false
	}
	size := int(binary.NativeEndian.Uint16(rest[target:]))
	return rest[:next:next], size >= sizeHeader && target+size <= next
}

func (l *layout) offsets(e entry) (target, next int) {
	return int(binary.NativeEndian.Uint16(e[l.targetOffset:])), int(binary.NativeEndian.Uint16(e[l.targetOffset+2:]))
}

// target returns an entry's target, with its header.
func (l *layout) target(e entry) []byte {
	at, _ := l.offsets(e)
	return e[at:]
}

// chainNamed returns the chain that an entry is the head of; nil: of none.
func (l *layout) chainNamed(e entry) []byte {
	t := l.target(e)
	if len(t) < sizeError || string(t[2:2+len(nameError)+1]) != nameError+"\x00" {
		return nil
	}
	return zeroEnded(t[sizeHeader : sizeHeader+maxName])
}

// verdict returns the verdict of a built-in target, and its offset.
func (l *layout) verdict(e entry) (v int32, at int, is bool) {
	at, _ = l.offsets(e)
	if t := e[at:]; len(t) < sizeStandard || t[2] != 0 {
		return 0, 0, false
	}
	at += sizeHeader
	return int32(binary.NativeEndian.Uint32(e[at:])), at, true
}

func zeroEnded(b []byte) []byte {
	for i, c := range b {
		if c == 0 {
			return b[:i]
		}
	}
	return b
}
