package limits

// maxEvent is how many bytes one event of a watch may have. Clients bound events of protobuf, and read those of JSON to their end.
const maxEvent = 16 << 20

// jsonEvents finds where the values end that follow each other in a stream of JSON.
type jsonEvents struct {
	size             int64 // bytes since the last one ended
	depth            int   // of objects and lists
	inText, inEscape bool
}

// read takes the next bytes of the stream, and reports whether one value has become too large.
func (e *jsonEvents) read(part []byte) (tooLarge bool) {
	for _, c := range part {
		e.size++
		switch {
		case e.inEscape:
			e.inEscape = false
		case e.inText && c == '\\':
			e.inEscape = true
		case c == '"':
			e.inText = !e.inText
		case e.inText:
		case c == '{' || c == '[':
			e.depth++
		case c == '}' || c == ']':
			if e.depth--; e.depth <= 0 {
				e.size, e.depth = 0, 0
			}
		}
		if e.size > maxEvent {
			return true
		}
	}
	return false
}
