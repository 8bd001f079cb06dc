package v1beta1

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText is the maximum of bytes kept of a text that a member cluster sends.
const MaxText = 256

// Printable returns a member's text for storing and printing: at most MaxText bytes, in one line, without terminal
// controls. Characters that are not printable become spaces.
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
