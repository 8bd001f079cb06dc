package xtables

import (
	"encoding/binary"
	"net/netip"
	"strings"
)

// Builder makes entries, one after the other: each begins with Begin and ends with its target.
type Builder struct {
	*layout
	buf   []byte
	entry int // offset of the entry in the making
	count int
	jumps []named
}

// named is a jump to a chain by its name: of the entry at an offset.
type named struct {
	at int
	to string
}

// NewBuilder returns one for rules of a family.
func NewBuilder(v6 bool) *Builder { return &Builder{layout: layoutFor(v6)} }

// Reset forgets all entries.
func (b *Builder) Reset() { b.buf, b.jumps, b.count = b.buf[:0], b.jumps[:0], 0 }

// Same reports whether the only entry that was made equals a rule.
func (b *Builder) Same(r Rule) bool {
	to := ""
	if len(b.jumps) > 0 {
		to = b.jumps[0].to
	}
	return string(r.To) == to && b.sameEntry(b.buf, r.entry)
}

func (b *Builder) size() int { return len(b.buf) }

// Begin begins an entry, which matches all.
func (b *Builder) Begin() {
	b.entry = len(b.buf)
	binary.NativeEndian.PutUint16(b.grow(b.base)[b.targetOffset:], uint16(b.base))
	b.count++
}

func (b *Builder) grow(by int) []byte {
	at := len(b.buf)
	b.buf = append(b.buf, zeros[:by]...)
	return b.buf[at:]
}

var zeros [1024]byte

// What is matched the other way round.
const (
	notIn          = 0x01
	notSource      = 0x08
	notDestination = 0x10
	notProtocol    = 0x40
)

func (b *Builder) setInverted(flag byte, not bool) {
	if not {
		b.buf[b.entry+b.invert] |= flag
	}
}

// Source matches addresses that packets come from.
func (b *Builder) Source(not bool, p netip.Prefix) { b.address(0, p); b.setInverted(notSource, not) }

// Destination matches addresses that packets go to.
func (b *Builder) Destination(not bool, p netip.Prefix) {
	b.address(b.addr, p)
	b.setInverted(notDestination, not)
}

func (b *Builder) address(at int, p netip.Prefix) {
	e := b.buf[b.entry:]
	copy(e[at:at+b.addr], p.Addr().AsSlice())
	mask := e[at+2*b.addr:]
	for i := range p.Bits() / 8 {
		mask[i] = 0xff
	}
	if rest := p.Bits() % 8; rest > 0 {
		mask[p.Bits()/8] = 0xff << (8 - rest)
	}
}

// Protocol matches one.
func (b *Builder) Protocol(not bool, number byte) {
	e := b.buf[b.entry:]
	binary.NativeEndian.PutUint16(e[b.proto:], uint16(number))
	if b.layout == ipv6 {
		e[b.flags] |= 1 // IP6T_F_PROTO
	}
	b.setInverted(notProtocol, not)
}

// In matches the incoming interface; a trailing + makes the name a prefix.
func (b *Builder) In(not bool, name string) {
	const size = 16
	e := b.buf[b.entry+4*b.addr:]
	copy(e[:size-1], name)
	same := len(name) + 1 // with the zero
	if strings.HasSuffix(name, "+") {
		same = len(name) - 1
	}
	for i := range min(same, size) {
		e[2*size+i] = 0xff // after that is the interface that packets go out by, then the masks
	}
	b.setInverted(notIn, not)
}

// Match adds an extension that looks at packets.
func (b *Builder) Match(name string, revision uint8, info []byte) {
	b.extension(name, revision, info)
	binary.NativeEndian.PutUint16(b.buf[b.entry+b.targetOffset:], uint16(len(b.buf)-b.entry))
}

func (b *Builder) extension(name string, revision uint8, info []byte) {
	e := b.grow(sizeHeader + (len(info)+align-1)/align*align)
	binary.NativeEndian.PutUint16(e, uint16(len(e)))
	copy(e[2:31], name)
	e[31] = revision
	copy(e[sizeHeader:], info)
}

// Target ends the entry with an extension's target.
func (b *Builder) Target(name string, revision uint8, info []byte) {
	b.extension(name, revision, info)
	binary.NativeEndian.PutUint16(b.buf[b.entry+b.targetOffset+2:], uint16(len(b.buf)-b.entry))
}

// Verdict ends the entry with Accept, Drop or Return.
func (b *Builder) Verdict(v int32) {
	b.Target("", 0, binary.NativeEndian.AppendUint32(nil, uint32(v)))
}

// Jump ends the entry with a jump to a chain.
func (b *Builder) Jump(chain string) {
	b.jumps = append(b.jumps, named{b.entry, chain})
	b.Verdict(0)
}

// beginChain begins a chain, endChain ends one.
func (b *Builder) beginChain(chain string) {
	b.Begin()
	name := make([]byte, maxName)
	copy(name[:maxName-1], chain)
	b.Target(nameError, 0, name)
}

func (b *Builder) endChain() {
	b.Begin()
	b.Verdict(Return)
}
