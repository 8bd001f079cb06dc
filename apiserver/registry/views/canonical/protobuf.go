package canonical

import (
	"bytes"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Protobuf reports whether data is one object, and returns the parts of it that are opened, in their order.
func (f *Form) Protobuf(data []byte, parts []Part) (all []Part, ok bool) {
	p := protobuf{notes{parts: parts}}
	ok = p.object(f, data)
	return p.parts, ok
}

// protobuf reads protobuf.
type protobuf struct{ notes }

// wireOf returns how a value is written.
func (v *value) wireOf() protowire.Type {
	switch v.kind {
	case truth, zero, int32s, int64s:
		return protowire.VarintType
	case list:
		return v.of.wireOf()
	}
	return protowire.BytesType
}

// object reports whether data is an object. Its fields are in the order of their numbers, as generated code writes them: one that comes twice is not.
func (p *protobuf) object(f *Form, data []byte) bool {
	last, lastKey := protowire.Number(0), []byte(nil)
	for len(data) > 0 {
		number, wire, n := consumeTag(data)
		if n < 0 || int(number) >= len(f.byNumber) || number < last {
			return false
		}
		known := &f.byNumber[number]
		repeats := number == last
		if wire != known.is.wireOf() || repeats && known.is.kind != list && known.is.kind != dictionary {
			return false
		}
		last = number
		if wire == protowire.VarintType {
			v, m := consumeVarint(data[n:])
			if m < 0 || !known.is.number(v) {
				return false
			}
			p.note(known, data[:n+m], nil, data[n:n+m], 0)
			data = data[n+m:]
			continue
		}
		content, m := consumeBytes(data[n:])
		if m < 0 {
			return false
		}
		switch known.is.kind {
		case dictionary:
			key, entry, ok := p.entry(known.is.of, content)
			if !ok || repeats && bytes.Compare(key, lastKey) <= 0 {
				return false
			}
			lastKey = key
			if !known.is.opened {
				key = nil
			}
			p.note(known, data[:n+m], key, entry, 0)
		case list:
			if !p.counted(known.is.of, content) {
				return false
			}
			p.note(known, data[:n+m], nil, content, 0)
		default:
			p.cut = p.cut || known.is.opened
			if !p.counted(&known.is, content) {
				return false
			}
			if p.cut = p.cut || known.is.opened; !known.is.opened {
				p.note(known, data[:n+m], nil, content, 0)
			}
		}
		data = data[n+m:]
	}
	return true
}

// number reports whether a number may be a value.
func (v *value) number(n uint64) bool {
	switch v.kind {
	case truth:
		return n <= 1
	case zero:
		return n == 0
	case int32s:
		return int64(n) >= math.MinInt32 && int64(n) <= math.MaxInt32 //nolint:gosec // the bits of a negative one
	case int64s:
		return true
	case list:
		return v.of.number(n)
	}
	return false
}

// counted reports whether bytes may be a value that is written as such.
func (p *protobuf) counted(v *value, content []byte) bool {
	switch v.kind {
	case text, bytes64:
		return true
	case object:
		return p.object(v.form, content)
	case moment:
		return len(content) == 0 || p.object(timestamp, content)
	case quantity:
		content, ok := onlyText(content)
		return ok && isQuantity(content)
	case numberOrText:
		return p.object(intOrString, content)
	case anyJSON:
		content, ok := onlyText(content)
		if !ok {
			return false
		}
		j := reader{data: content}
		return j.any(0) && j.at == len(content)
	}
	return false
}

var (
	// timestamp is metav1.Timestamp. Nanoseconds are written as 0.
	timestamp = &Form{byNumber: []field{1: {is: value{kind: int64s}}, 2: {is: value{kind: zero}}}}
	// intOrString is intstr.IntOrString.
	intOrString = &Form{byNumber: []field{1: {is: value{kind: truth}}, 2: {is: value{kind: int32s}}, 3: {is: value{kind: text}}}}
)

// entry returns the key and the value of an entry of a map.
func (p *protobuf) entry(v *value, data []byte) (key, content []byte, ok bool) {
	number, wire, n := consumeTag(data)
	if n < 0 || number != 1 || wire != protowire.BytesType {
		return nil, nil, false
	}
	key, m := consumeBytes(data[n:])
	if m < 0 {
		return nil, nil, false
	}
	data = data[n+m:]
	number, wire, n = consumeTag(data)
	if n < 0 || number != 2 || wire != protowire.BytesType {
		return nil, nil, false
	}
	content, m = consumeBytes(data[n:])
	return key, content, m >= 0 && n+m == len(data) && p.counted(v, content)
}

// onlyText returns the text of an object whose only field it is.
func onlyText(data []byte) ([]byte, bool) {
	number, wire, n := consumeTag(data)
	if n < 0 || number != 1 || wire != protowire.BytesType {
		return nil, false
	}
	content, m := consumeBytes(data[n:])
	return content, m >= 0 && n+m == len(data)
}

// isQuantity reports whether a text is a quantity in the form in which it is written. Others that are one are not: they would be written otherwise.
func isQuantity(content []byte) bool {
	digits := 0
	for digits < len(content) && content[digits] >= '0' && content[digits] <= '9' {
		digits++
	}
	if digits == 0 || digits > 15 || digits > 1 && content[0] == '0' {
		return false
	}
	switch string(content[digits:]) {
	case "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei":
		return true
	}
	return false
}

// consumeVarint is protowire.ConsumeVarint, which is not inlined, for numbers of one byte: those are nearly all.
func consumeVarint(data []byte) (uint64, int) {
	if len(data) > 0 && data[0] < 0x80 {
		return uint64(data[0]), 1
	}
	return protowire.ConsumeVarint(data)
}

// consumeTag is protowire.ConsumeTag.
func consumeTag(data []byte) (protowire.Number, protowire.Type, int) {
	if len(data) > 0 && data[0] < 0x80 && data[0] >= 1<<3 {
		return protowire.Number(data[0] >> 3), protowire.Type(data[0] & 7), 1
	}
	return protowire.ConsumeTag(data)
}

// consumeBytes is protowire.ConsumeBytes.
func consumeBytes(data []byte) ([]byte, int) {
	if len(data) > 0 && data[0] < 0x80 && int(data[0]) < len(data) {
		n := int(data[0]) + 1
		return data[1:n], n
	}
	return protowire.ConsumeBytes(data)
}
