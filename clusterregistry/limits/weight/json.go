package weight

const (
	// deepest is how many lists and objects may be in each other: decoders take no more.
	deepest = 10000
	// anObject, aKey and anItem are how many bytes these take at most in maps and lists of any values.
	anObject, aKey, anItem = 256, 32, 48
	// aStruct is how many bytes an object takes at most that a pointer leads to, in a type of Go. An item of a list there takes unknown.
	aStruct = 384
)

// JSON weighs values in JSON that follow each other.
type JSON struct {
	item, object, key int64

	total   cost
	event   cost
	isList  []bool // what has not ended yet, the innermost last
	fresh   bool   // a list that nothing has come of yet
	inText  bool
	escaped bool
	lost    bool
}

// NewJSON returns a JSON for what is decoded into types of Go, or into maps and lists of any values.
func NewJSON(typed bool) *JSON {
	if typed {
		return &JSON{item: unknown, object: aStruct}
	}
	return &JSON{item: anItem, object: anObject, key: aKey}
}

// Add implements Weigher.
func (j *JSON) Add(part []byte) (total, largest int64) {
	for _, c := range part {
		j.weigh(1, 1)
		switch {
		case j.lost:
			j.weigh(0, unknown)
		case j.escaped:
			j.escaped = false
		case j.inText && c == '\\':
			j.escaped = true
		case j.inText:
			j.inText = c != '"'
		default:
			j.structure(c)
		}
		largest = max(largest, j.event.sum())
		if len(j.isList) == 0 && (c == '}' || c == ']') && !j.inText {
			j.event = cost{}
		}
	}
	return j.total.sum(), largest
}

// structure takes a byte outside of texts.
func (j *JSON) structure(c byte) {
	if j.fresh && c != ']' && c != ' ' && c != '\t' && c != '\r' && c != '\n' {
		j.fresh = false
		j.weigh(0, j.item)
	}
	switch c {
	case '"':
		j.inText = true
	case ':':
		j.weigh(0, j.key)
	case ',':
		j.fresh = len(j.isList) > 0 && j.isList[len(j.isList)-1]
	case '{', '[':
		if len(j.isList) == deepest {
			j.lost = true
			return
		}
		j.isList, j.fresh = append(j.isList, c == '['), c == '['
		if c == '{' {
			j.weigh(0, j.object)
		}
	case '}', ']':
		j.fresh = false
		j.isList = j.isList[:max(0, len(j.isList)-1)]
	}
}

// weigh counts bytes that were sent, and that what they say takes.
func (j *JSON) weigh(sent, takes int64) {
	j.total.add(sent, takes)
	j.event.add(sent, takes)
}
