package nfnetlink

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Batch is messages in a row. The zero value is empty and ready.
type Batch struct {
	buf  []byte
	last int // where the last message begins
	n    int // messages
}

// Len returns how many messages there are.
func (b *Batch) Len() int { return b.n }

// Total returns how many bytes all messages have so far.
func (b *Batch) Total() int { return len(b.buf) }

// Size returns how many bytes the last message has so far.
func (b *Batch) Size() int { return len(b.buf) - b.last }

// Begin opens a message of a type (subsystem<<8 | message) with flags (NLM_F_REQUEST is added); attributes follow.
func (b *Batch) Begin(kind, flags int, family uint8) { b.begin(kind, flags, family, 0) }

func (b *Batch) begin(kind, flags int, family uint8, resource uint16) {
	b.last, b.n = len(b.buf), b.n+1
	b.buf = binary.NativeEndian.AppendUint32(b.buf, 0) // the length, when it is known
	b.buf = binary.NativeEndian.AppendUint16(b.buf, uint16(kind))
	b.buf = binary.NativeEndian.AppendUint16(b.buf, uint16(flags|unix.NLM_F_REQUEST))
	b.buf = append(b.buf, 0, 0, 0, 0, 0, 0, 0, 0) // sequence number and port
	b.buf = append(b.buf, family, unix.NFNETLINK_V0, byte(resource>>8), byte(resource))
	b.sized()
}

func (b *Batch) sized() {
	binary.NativeEndian.PutUint32(b.buf[b.last:], uint32(len(b.buf)-b.last))
}

// Bytes adds an attribute.
func (b *Batch) Bytes(kind int, data []byte) {
	b.buf = binary.NativeEndian.AppendUint16(b.buf, uint16(len(data)+unix.SizeofNlAttr))
	b.buf = binary.NativeEndian.AppendUint16(b.buf, uint16(kind))
	b.buf = append(b.buf, data...)
	for len(b.buf)%4 != 0 {
		b.buf = append(b.buf, 0)
	}
	b.sized()
}

// String adds an attribute that ends with a zero.
func (b *Batch) String(kind int, s string) {
	b.Bytes(kind, append([]byte(s), 0))
}

// Uint32 adds an attribute in network byte order.
func (b *Batch) Uint32(kind int, v uint32) { b.Bytes(kind, binary.BigEndian.AppendUint32(nil, v)) }

// Nest opens an attribute of attributes, of at most 65,535 bytes, which End closes.
func (b *Batch) Nest(kind int) (at int) {
	at = len(b.buf)
	b.Bytes(kind|unix.NLA_F_NESTED, nil)
	return at
}

// End closes what Nest opened.
func (b *Batch) End(at int) {
	binary.NativeEndian.PutUint16(b.buf[at:], uint16(len(b.buf)-at))
}

// Attributes calls f with each attribute of a message or of a nest, until what is left is none.
func Attributes(data []byte, f func(kind int, data []byte)) {
	for len(data) >= unix.SizeofNlAttr {
		length := int(binary.NativeEndian.Uint16(data))
		if length < unix.SizeofNlAttr || length > len(data) {
			return
		}
		f(int(binary.NativeEndian.Uint16(data[2:]))&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER), data[unix.SizeofNlAttr:length])
		data = data[min((length+3)&^3, len(data)):]
	}
}

// Attribute returns the first attribute of a kind; nil where there is none.
func Attribute(data []byte, kind int) (found []byte) {
	Attributes(data, func(k int, d []byte) {
		if k == kind && found == nil {
			found = d
		}
	})
	return found
}
