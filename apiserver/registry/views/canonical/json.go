package canonical

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// JSON reports whether data begins with an object, and returns the parts of it that are opened, in their order, and what comes after it.
func (f *Form) JSON(data []byte, parts []Part) (all []Part, rest []byte, ok bool) {
	j := reader{data: data, notes: notes{parts: parts}}
	ok = j.object(f)
	return j.parts, data[j.at:], ok
}

// reader reads JSON. It has no blanks.
type reader struct {
	data []byte
	at   int
	notes
}

// takes reads one byte, if it is the next.
func (r *reader) takes(c byte) bool {
	if r.at < len(r.data) && r.data[r.at] == c {
		r.at++
		return true
	}
	return false
}

// takesAll reads a text, if it is the next.
func (r *reader) takesAll(s string) bool {
	if len(r.data)-r.at >= len(s) && string(r.data[r.at:r.at+len(s)]) == s {
		r.at += len(s)
		return true
	}
	return false
}

// object reads an object. Its fields are in the order of the type, as Go writes them: one that comes twice is not.
func (r *reader) object(f *Form) bool {
	if !r.takes('{') {
		return false
	}
	if r.takes('}') {
		return true
	}
	for i := 0; ; i++ {
		begin := r.at
		for i < len(f.inJSON) && !r.takesAll(f.inJSON[i].key) {
			i++
		}
		if i == len(f.inJSON) {
			return false
		}
		known, at := &f.inJSON[i], r.at
		r.cut = r.cut || known.is.opened
		if !r.value(&known.is, known) {
			return false
		}
		if r.cut = r.cut || known.is.opened; !known.is.opened {
			r.note(known, r.data[begin:r.at], nil, r.data[at:r.at], len(","))
		}
		if !r.takes(',') {
			return r.takes('}')
		}
	}
}

// value reads a value, of a field where it is opened.
func (r *reader) value(v *value, of *field) bool {
	if v.nullable && r.takesAll("null") {
		return true
	}
	switch v.kind {
	case text:
		_, _, ok := r.text()
		return ok
	case truth:
		return r.takesAll("true") || r.takesAll("false")
	case int32s:
		n, ok := r.integer()
		return ok && n >= math.MinInt32 && n <= math.MaxInt32
	case int64s:
		_, ok := r.integer()
		return ok
	case object:
		return r.object(v.form)
	case list:
		return r.list(v.of)
	case dictionary:
		return r.dictionary(v, of)
	case anyJSON:
		return r.any(0)
	case numberOrText:
		if r.at < len(r.data) && r.data[r.at] != '"' {
			n, ok := r.integer()
			return ok && n >= math.MinInt32 && n <= math.MaxInt32
		}
		_, _, ok := r.text()
		return ok
	}
	return r.special(v.kind)
}

// special reads what is a text of a form of its own.
func (r *reader) special(k kind) bool {
	if k == moment && r.takesAll("null") {
		return true
	}
	content, plain, ok := r.text()
	if !ok || !plain {
		return false
	}
	switch k {
	case quantity:
		return isQuantity(content)
	case moment:
		var t time.Time
		return len(content) == len("2006-01-02T15:04:05Z") && content[len(content)-1] == 'Z' && t.UnmarshalText(content) == nil
	case bytes64:
		_, err := base64.StdEncoding.AppendDecode(nil, content)
		return err == nil
	}
	return false
}

// list reads a list.
func (r *reader) list(of *value) bool {
	if !r.takes('[') {
		return false
	}
	if r.takes(']') {
		return true
	}
	for {
		if !r.value(of, nil) {
			return false
		}
		if !r.takes(',') {
			return r.takes(']')
		}
	}
}

// dictionary reads a map. Its keys are in their order, as Go writes them.
func (r *reader) dictionary(v *value, of *field) bool {
	if !r.takes('{') {
		return false
	}
	if r.takes('}') {
		return true
	}
	for last, first := []byte(nil), true; ; first = false {
		begin := r.at
		key, ok := r.key()
		if !ok || !first && bytes.Compare(key, last) <= 0 {
			return false
		}
		at := r.at
		if last = key; !r.value(v.of, nil) {
			return false
		}
		if v.opened {
			r.note(of, r.data[begin:r.at], key, r.data[at:r.at], 0)
		}
		if !r.takes(',') {
			return r.takes('}')
		}
	}
}

// key reads the key of an entry, and its colon.
func (r *reader) key() (key []byte, ok bool) {
	begin := r.at
	key, plain, ok := r.text()
	if ok && !plain {
		var read string
		ok = json.Unmarshal(r.data[begin:r.at], &read) == nil
		key = []byte(read)
	}
	return key, ok && r.takes(':')
}

// ordinary are the bytes of a text that stand for themselves.
var ordinary = func() (all [256]bool) {
	for c := byte(' '); c < utf8.RuneSelf; c++ {
		all[c] = c != '"' && c != '\\'
	}
	return all
}()

// text reads a text. It is plain if it is as it is written, without escapes.
func (r *reader) text() (content []byte, plain, ok bool) {
	if !r.takes('"') {
		return nil, false, false
	}
	begin, at, data := r.at, r.at, r.data
	plain = true
	for {
		for at < len(data) && ordinary[data[at]] {
			at++
		}
		if at == len(data) {
			return nil, false, false
		}
		switch c := data[at]; {
		case c == '"':
			r.at = at + 1
			return data[begin:at], plain, true
		case c == '\\':
			n := escape(data[at:])
			if n == 0 {
				return nil, false, false
			}
			at, plain = at+n, false
		case c < utf8.RuneSelf:
			return nil, false, false
		default:
			c, n := utf8.DecodeRune(data[at:])
			if c == utf8.RuneError && n <= 1 {
				return nil, false, false
			}
			at += n
		}
	}
}

// escape returns the length of an escape, 0 of what is none. Halves of characters are none: decoders replace them.
func escape(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	switch data[1] {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(data) < 6 {
			return 0
		}
		n, err := strconv.ParseUint(string(data[2:6]), 16, 16)
		if err != nil || n >= 0xd800 && n < 0xe000 {
			return 0
		}
		return 6
	}
	return 0
}

// integer reads an integer of 64 bits.
func (r *reader) integer() (n int64, ok bool) {
	begin := r.at
	negative := r.takes('-')
	first := r.at
	for r.at < len(r.data) && r.data[r.at] >= '0' && r.data[r.at] <= '9' {
		r.at++
	}
	if length := r.at - first; length == 0 || length > 19 || r.data[first] == '0' && (length > 1 || negative) {
		return 0, false
	}
	n, err := strconv.ParseInt(string(r.data[begin:r.at]), 10, 64)
	return n, err == nil
}

// deepest is how deep values may be in each other whose type does not say it.
const deepest = 64

// any reads any value.
func (r *reader) any(depth int) bool {
	if r.at == len(r.data) || depth == deepest {
		return false
	}
	switch c := r.data[r.at]; {
	case c == '"':
		_, _, ok := r.text()
		return ok
	case c == '{' || c == '[':
		return r.anyIn(c, depth)
	case c == '-' || c >= '0' && c <= '9':
		_, ok := r.integer()
		return ok
	}
	return r.takesAll("true") || r.takesAll("false") || r.takesAll("null")
}

// anyIn reads any list or object, which begins with c.
func (r *reader) anyIn(c byte, depth int) bool {
	r.at++
	end := c + 2 // of both
	if r.takes(end) {
		return true
	}
	for {
		if c == '{' {
			if _, _, ok := r.text(); !ok || !r.takes(':') {
				return false
			}
		}
		if !r.any(depth + 1) {
			return false
		}
		if !r.takes(',') {
			return r.takes(end)
		}
	}
}
