package weight

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Protobuf weighs objects in protobuf.
type Protobuf struct {
	at    int64 // bytes so far
	total cost
	event cost
	most  int64 // of the most expensive event of this part
	err   error

	state state
	open  []opened // what has not ended yet, the innermost last
	value uint64   // of the number that is being read
	shift uint
	field *field
	skip  int64 // bytes that are left of what has no fields
	magic int
	text  []byte // of a role
	json  *JSON
	object
}

// object is what is known of the one that is being read.
type object struct {
	version, kind string
	// enveloped and begun: its envelope, and its content, have come. A decoder takes the last of several.
	enveloped, begun bool
}

// opened is a message that has not ended yet.
type opened struct {
	shape *shape
	end   int64
}

// state is what the next byte belongs to.
type state int

// The states.
const (
	frame   state = iota // the length of an event, four bytes
	prefix               // of an envelope
	tag                  // number and type of a field
	number               // a number
	length               // of what follows
	content              // what has no fields
)

// magic begins each object.
const magic = "k8s\x00"

// maxKind and maxQuantity are how long these texts may be, in bytes.
const maxKind, maxQuantity = 256, 64

// NewProtobuf returns a Protobuf for an object or a list, or for the events of a watch.
func NewProtobuf(events bool) *Protobuf {
	p := &Protobuf{}
	if !events {
		p.state = prefix
		p.open = []opened{{envelope, math.MaxInt64}}
	}
	return p
}

// OfContent returns what the content of an object costs, in protobuf without its envelope, that was read and can be read again.
func OfContent(of schema.GroupVersionKind, content []byte) int64 {
	s, _, known := shapeOfKind(of)
	if !known {
		return int64(len(content))
	}
	p := &Protobuf{state: tag, open: []opened{{s, math.MaxInt64}}}
	total, _, _ := p.Add(content) // what it was read from has been weighed, and not refused
	return total
}

// Add implements Weigher.
func (p *Protobuf) Add(part []byte) (total, largest int64, err error) {
	p.most = 0
	for len(part) > 0 && p.err == nil {
		n := p.step(part)
		part, p.at = part[n:], p.at+int64(n)
		p.total.sent, p.event.sent = p.total.sent+int64(n), p.event.sent+int64(n)
		p.close()
	}
	return p.total.sum(), max(p.most, p.event.sum()), p.err
}

// step takes bytes that belong together, one at least.
func (p *Protobuf) step(part []byte) int {
	switch p.state {
	case frame:
		p.value = p.value<<8 | uint64(part[0])
		if p.shift += 8; p.shift == 32 {
			p.object = object{}
			p.open = append(p.open, opened{event, p.at + 1 + int64(p.value)})
			p.next(tag)
		}
	case prefix:
		if part[0] != magic[p.magic] {
			return p.refuse("an object does not begin as one")
		}
		if p.magic++; p.magic == len(magic) {
			p.magic = 0
			p.next(tag)
		}
	case tag, number, length:
		if p.shift > 63 {
			return p.refuse("a number has more than 10 bytes")
		}
		p.value |= uint64(part[0]&0x7f) << p.shift
		if p.shift += 7; part[0] < 0x80 {
			return p.read()
		}
	case content:
		return p.take(part)
	}
	return 1
}

// weigh counts bytes that what was sent takes.
func (p *Protobuf) weigh(takes int64) {
	p.total.add(0, takes)
	p.event.add(0, takes)
}

// next begins with what follows.
func (p *Protobuf) next(s state) { p.state, p.value, p.shift = s, 0, 0 }

// refuse ends it: a decoder may read what follows in another way.
func (p *Protobuf) refuse(format string, args ...any) int {
	p.err = fmt.Errorf("the answer is refused: "+format, args...)
	return 1
}

// read takes a number whose last byte has come.
func (p *Protobuf) read() int {
	value := p.value
	switch p.state {
	case number:
		if p.field.role == zeroOrOne && value > 1 {
			return p.refuse("field type of a number or text is %d: must be 0 or 1", value) // it could not be written
		}
		p.weigh(p.field.each)
		p.next(tag)
	case tag:
		return p.readTag(value>>3, wireType(value&7))
	default:
		if !p.fits(value) {
			return p.refuse("a field is longer than what it is in")
		}
		p.weigh(p.field.each + max(p.field.perByte, p.field.packed)*int64(value))
		return p.enter(int64(value))
	}
	return 1
}

// fits reports whether so many bytes may follow.
func (p *Protobuf) fits(n uint64) bool {
	return n <= math.MaxInt32 && p.at+1+int64(n) <= p.open[len(p.open)-1].end
}

// readTag begins with a field.
func (p *Protobuf) readTag(n uint64, wire wireType) int {
	if n == 0 || n > math.MaxInt32 {
		return p.refuse("there is no field %d", n)
	}
	p.field = p.open[len(p.open)-1].shape.field(n)
	if p.field.known && wire != p.field.wire && (wire != counted || p.field.packed == 0) {
		return p.refuse("field %d has type %d, and not %d", n, wire, p.field.wire) // of entries of maps no decoder looks at it
	}
	switch wire {
	case varint:
		p.next(number)
	case counted:
		p.next(length)
	case fixed64, fixed32:
		size := uint64(4)
		if wire == fixed64 {
			size = 8
		}
		if !p.fits(size) {
			return p.refuse("a number is longer than what it is in")
		}
		p.weigh(p.field.each)
		p.begin(int64(size))
	default:
		return p.refuse("field %d has type %d, which is not used", n, wire)
	}
	return 1
}

// enter goes into n bytes that follow, if they have fields.
func (p *Protobuf) enter(n int64) int {
	in := p.field.in
	switch p.field.role {
	case typeMeta:
		if p.begun {
			return p.refuse("an object comes before its kind")
		}
	case raw:
		version, err := schema.ParseGroupVersion(p.version)
		s, size, known := shapeOfKind(version.WithKind(p.kind))
		switch {
		case p.begun:
			return p.refuse("there are two objects where one is")
		case err != nil || !known:
			return p.refuse("kind %q of %q is not known here", p.kind, p.version)
		}
		p.begun, in = true, s
		p.weigh(size)
	case enveloped:
		if p.enveloped {
			return p.refuse("there are two objects in an event")
		}
		p.enveloped = true
		p.open = append(p.open, opened{envelope, p.at + 1 + n})
		p.next(prefix)
		return 1
	case jsonText:
		p.json = NewJSON(false)
	}
	if in == nil {
		p.begin(n)
		return 1
	}
	p.open = append(p.open, opened{in, p.at + 1 + n})
	p.next(tag)
	return 1
}

// begin begins with what has no fields.
func (p *Protobuf) begin(n int64) {
	p.text, p.skip = p.text[:0], n
	p.next(content)
	if n == 0 {
		p.endContent()
	}
}

// take takes what has no fields.
func (p *Protobuf) take(part []byte) int {
	n := int(min(int64(len(part)), p.skip))
	p.skip -= int64(n)
	switch p.field.role {
	case apiVersion, kind, quantity:
		most := maxKind
		if p.field.role == quantity {
			most = maxQuantity
		}
		if len(p.text)+n > most {
			return p.refuse("a text has more than %d bytes", most)
		}
		p.text = append(p.text, part[:n]...)
	case jsonText:
		if part[0] >= 0x80 && p.json.total.sent == 0 {
			return p.refuse("an object is in CBOR")
		}
		before := p.json.total.takes
		if _, _, p.err = p.json.Add(part[:n]); p.err != nil {
			return n
		}
		p.weigh(p.json.total.takes - before)
	}
	if p.skip == 0 {
		p.endContent()
	}
	return n
}

// endContent ends what has no fields.
func (p *Protobuf) endContent() {
	switch p.field.role {
	case apiVersion:
		p.version = string(p.text)
	case kind:
		p.kind = string(p.text)
	case quantity:
		if isHuge(string(p.text)) {
			p.refuse("the quantity %q is out of bounds", p.text)
		}
	}
	p.next(tag)
}

// isHuge reports whether a quantity has an exponent of more than two digits: it would be written out, zero by zero.
func isHuge(text string) bool {
	at := strings.LastIndexAny(text, "eE")
	return at >= 0 && len(strings.TrimLeft(text[at+1:], "+-")) > 2
}

// close ends the messages that end here.
func (p *Protobuf) close() {
	for len(p.open) > 0 && p.err == nil {
		end := p.open[len(p.open)-1].end
		if end > p.at {
			return
		}
		if end < p.at || p.state != tag || p.shift != 0 {
			p.refuse("a field is longer than what it is in")
			return
		}
		p.open = p.open[:len(p.open)-1]
	}
	if len(p.open) == 0 && p.state == tag {
		p.most, p.event = max(p.most, p.event.sum()), cost{}
		p.next(frame)
	}
}
