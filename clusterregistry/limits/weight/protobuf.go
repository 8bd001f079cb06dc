package weight

import "math"

// Protobuf weighs objects in protobuf.
type Protobuf struct {
	at    int64 // bytes so far
	total cost
	event cost
	most  int64 // of the most expensive event of this part

	state   state
	open    []message // what has not ended yet, the innermost last
	value   uint64    // of the number that is being read
	shift   uint
	field   *field
	skip    int64 // bytes that are left of what has no fields
	magic   int
	text    []byte // of a role
	role    role
	version string
	kind    string
	begun   bool // an object: what kind it is can't change any more
}

// message is one that has not ended yet.
type message struct {
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
	unclear              // nothing can be said about it any more
)

// magic begins each object.
const magic = "k8s\x00"

// maxRole is how long the text of a role may be, in bytes.
const maxRole = 256

// NewProtobuf returns a Protobuf for an object or a list, or for the events of a watch.
func NewProtobuf(events bool) *Protobuf {
	p := &Protobuf{}
	if !events {
		p.state = prefix
		p.open = []message{{envelope, math.MaxInt64}}
	}
	return p
}

// Add implements Weigher.
func (p *Protobuf) Add(part []byte) (total, largest int64) {
	p.most = 0
	for len(part) > 0 {
		n := p.step(part)
		part, p.at = part[n:], p.at+int64(n)
		p.total.sent, p.event.sent = p.total.sent+int64(n), p.event.sent+int64(n)
		p.close()
	}
	return p.total.sum(), max(p.most, p.event.sum())
}

// step takes bytes that belong together, one at least.
func (p *Protobuf) step(part []byte) int {
	switch p.state {
	case frame:
		p.value = p.value<<8 | uint64(part[0])
		if p.shift += 8; p.shift == 32 {
			p.version, p.kind, p.begun = "", "", false
			p.open = append(p.open, message{event, p.at + 1 + int64(p.value)})
			p.next(tag)
		}
	case prefix:
		if part[0] != magic[p.magic] {
			return p.lose(part)
		}
		if p.magic++; p.magic == len(magic) {
			p.magic = 0
			p.next(tag)
		}
	case tag, number, length:
		if p.shift > 63 {
			return p.lose(part)
		}
		p.value |= uint64(part[0]&0x7f) << p.shift
		if p.shift += 7; part[0] < 0x80 {
			return p.read(part)
		}
	case content:
		n := int(min(int64(len(part)), p.skip))
		p.skip -= int64(n)
		if p.role == apiVersion || p.role == kind {
			if len(p.text)+n > maxRole {
				return p.lose(part)
			}
			p.text = append(p.text, part[:n]...)
		}
		if p.skip == 0 {
			p.endContent()
		}
		return n
	case unclear:
		p.weigh(unknown * int64(len(part)))
		return len(part)
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

// lose gives up: what follows may be anything.
func (p *Protobuf) lose(part []byte) int {
	p.next(unclear)
	p.open = nil
	return p.step(part)
}

// read takes a number whose last byte is the first of part.
func (p *Protobuf) read(part []byte) int {
	value := p.value
	switch p.state {
	case number:
		p.weigh(p.field.each)
		p.next(tag)
	case tag:
		number32 := value >> 3
		if number32 == 0 || number32 > math.MaxInt32 {
			return p.lose(part)
		}
		p.field = p.open[len(p.open)-1].shape.field(number32)
		switch value & 7 {
		case 0:
			p.next(number)
		case 1:
			p.begin(8)
		case 2:
			p.next(length)
		case 5:
			p.begin(4)
		default: // groups, which nothing has
			return p.lose(part)
		}
	default:
		if value > math.MaxInt32 || p.at+1+int64(value) > p.open[len(p.open)-1].end {
			return p.lose(part)
		}
		p.weigh(p.field.each + max(p.field.perByte, p.field.packed)*int64(value))
		return p.enter(part, int64(value))
	}
	return 1
}

// begin begins with what has no fields.
func (p *Protobuf) begin(n int64) {
	p.role, p.text, p.skip = p.field.role, p.text[:0], n
	p.next(content)
	if n == 0 {
		p.endContent()
	}
}

// endContent ends what has no fields.
func (p *Protobuf) endContent() {
	switch p.role {
	case apiVersion:
		p.version = string(p.text)
	case kind:
		p.kind = string(p.text)
	}
	p.next(tag)
}

// enter goes into n bytes that follow, if they have fields.
func (p *Protobuf) enter(part []byte, n int64) int {
	in := p.field.in
	switch p.field.role {
	case typeMeta:
		if p.begun {
			return p.lose(part)
		}
	case raw:
		s, size, known := shapeOfKind(p.version, p.kind)
		if !known {
			return p.lose(part)
		}
		p.begun, in = true, s
		p.weigh(size)
	case enveloped:
		p.open = append(p.open, message{envelope, p.at + 1 + n})
		p.next(prefix)
		return 1
	}
	if in == nil {
		p.begin(n)
		return 1
	}
	p.open = append(p.open, message{in, p.at + 1 + n})
	p.next(tag)
	return 1
}

// close ends the messages that end here.
func (p *Protobuf) close() {
	for len(p.open) > 0 && p.open[len(p.open)-1].end == p.at {
		if p.state != tag || p.shift != 0 { // it ends too soon
			p.next(unclear)
			p.open = nil
			return
		}
		p.open = p.open[:len(p.open)-1]
	}
	if len(p.open) == 0 && p.state == tag {
		p.most, p.event = max(p.most, p.event.sum()), cost{}
		p.next(frame)
	}
}
