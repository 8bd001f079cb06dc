package weight

import (
	"errors"
	"regexp"
	"strings"
)

const (
	// deepest is how many lists and objects may be in each other: decoders take no more.
	deepest = 10000
	// anObject is how many bytes one takes as a map, someKeys what the first eight of its keys take together, aKey and anItem what one of its
	// keys takes, and one of a list, as any value.
	anObject, someKeys, aKey, anItem = 48, 264, 32, 96
	// aStruct is how many bytes an object takes at most that a pointer leads to, in a type of Go, and aStructItem an item of a list there, whatever
	// it is: an empty Pod.
	aStruct, aStructItem = 384, 1280
	// maxNumberText is how long a number may be, in bytes, or a text that is one.
	maxNumberText = 128
)

// JSON weighs values in JSON that follow each other.
type JSON struct {
	typed bool

	total   cost
	event   cost
	open    []level // what has not ended yet, the innermost last
	fresh   bool    // a list that nothing has come of yet
	inText  bool
	escaped bool
	number  numberText // of what is decoded into types of Go
	err     error
}

// numberText is a number, or a text that may be a quantity, which may have blanks around it.
type numberText struct {
	text []byte
	// ended: a blank has come after it. other: there is something else in the text.
	ended, other bool
}

// level is a list or an object that has not ended yet.
type level int

// The levels.
const (
	list level = iota
	emptyObject
	objectWithKeys
)

// NewJSON returns a JSON for what is decoded into types of Go, or into maps and lists of any values.
func NewJSON(typed bool) *JSON { return &JSON{typed: typed} }

// Add implements Weigher.
func (j *JSON) Add(part []byte) (total, largest int64, err error) {
	for len(part) > 0 && j.err == nil {
		n := j.step(part)
		largest = max(largest, j.event.sum())
		if c := part[n-1]; len(j.open) == 0 && (c == '}' || c == ']') && !j.inText {
			j.event = cost{}
		}
		part = part[n:]
	}
	return j.total.sum(), largest, j.err
}

// step takes a byte, or what a text goes on with.
func (j *JSON) step(part []byte) int {
	n := 1
	switch c := part[0]; {
	case j.escaped:
		j.escaped, j.number.other = false, true // quantities are not unescaped
	case j.inText && c == '\\':
		j.escaped = true
	case j.inText && c == '"':
		j.inText = false
		j.endNumber()
	case j.inText && j.typed:
		j.number.add(c)
	case j.inText:
		for n < len(part) && part[n] != '"' && part[n] != '\\' {
			n++
		}
	default:
		j.structure(c)
	}
	j.weigh(int64(n), int64(n))
	return n
}

// structure takes a byte outside of texts.
func (j *JSON) structure(c byte) {
	if j.fresh && c != ']' && c != ' ' && c != '\t' && c != '\r' && c != '\n' {
		j.fresh = false
		j.weigh(0, j.pick(anItem, aStructItem))
	}
	if isOfNumber(c) {
		j.number.add(c)
		return
	}
	j.endNumber()
	switch c {
	case '"':
		j.inText = true
	case ':':
		if at := len(j.open) - 1; at >= 0 && j.open[at] == emptyObject {
			j.open[at] = objectWithKeys
			j.weigh(0, someKeys)
		}
		j.weigh(0, aKey)
	case ',':
		j.fresh = len(j.open) > 0 && j.open[len(j.open)-1] == list
	case '{', '[':
		if len(j.open) == deepest {
			j.err = errTooDeep
			return
		}
		if j.fresh = c == '['; j.fresh {
			j.open = append(j.open, list)
			return
		}
		j.open = append(j.open, emptyObject)
		j.weigh(0, j.pick(anObject, aStruct))
	case '}', ']':
		j.fresh = false
		j.open = j.open[:max(0, len(j.open)-1)]
	}
}

var (
	errTooDeep = errors.New("the answer is refused: lists and objects are too deep in each other")
	errHuge    = errors.New("the answer is refused: a number is out of bounds")
)

// pick returns what something takes as any value, or in a type of Go.
func (j *JSON) pick(any, typed int64) int64 {
	if j.typed {
		return typed
	}
	return any
}

// endNumber ends a number or a text. A quantity with a large exponent would be written out, zero by zero, and reading a long one takes long.
func (j *JSON) endNumber() {
	n := &j.number
	if j.typed && !n.other && (len(n.text) == maxNumberText && longQuantity.Match(n.text) || hugeQuantity.Match(n.text)) {
		j.err = errHuge
	}
	n.text, n.ended, n.other = n.text[:0], false, false
}

// hugeQuantity is a number with an exponent of more than two digits, longQuantity the beginning of one.
var hugeQuantity, longQuantity = regexp.MustCompile(`^[+-]?[0-9.]+[eE][+-]?[0-9]{3,}$`), regexp.MustCompile(`^[+-]?[0-9.]`)

// isOfNumber reports whether a number may have a letter.
func isOfNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '.' || c == '+' || c == '-' || c == 'e' || c == 'E'
}

// add takes a letter.
func (n *numberText) add(c byte) {
	switch {
	case n.other:
	case c <= ' ' || c >= 0x80: // any blank
		n.ended = len(n.text) > 0
	case n.ended || len(n.text) == 0 && !isOfNumber(c) || !isOfNumber(c) && strings.IndexByte("inumkKMGTP", c) < 0:
		n.other = true
	case len(n.text) < maxNumberText:
		n.text = append(n.text, c)
	}
}

// weigh counts bytes that were sent, and what they say takes.
func (j *JSON) weigh(sent, takes int64) {
	j.total.add(sent, takes)
	j.event.add(sent, takes)
}
