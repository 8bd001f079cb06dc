package v1beta1

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText is how many bytes are kept of a text that a member cluster sends.
const MaxText = 256

// Printable is a text of a member as it may be kept and shown: at most MaxText bytes, in one line, without what a terminal would obey. What was
// not printable is a space.
func Printable(text string) string {
	text = text[:min(len(text), 4*MaxText)]
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == utf8.RuneError || r == ' ' || !unicode.IsPrint(r) }), " ")
	if len(text) <= MaxText {
		return text
	}
	end := MaxText - len("…")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
