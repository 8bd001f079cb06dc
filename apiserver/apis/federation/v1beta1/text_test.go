package v1beta1

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"exceeded quota":                     "exceeded quota",
		"a\x1b[2Jb\r\n\tc":                   "a [2Jb c",
		"\u202egnp.exe \u0085\u2028x":        "gnp.exe x",
		"Überfüllt":                          "Überfüllt",
		"\xff\xfe":                           "",
		strings.Repeat("x", 300):             strings.Repeat("x", 253) + "…",
		strings.Repeat("ü", 200):             strings.Repeat("ü", 126) + "…",
		strings.Repeat("x", 256):             strings.Repeat("x", 256),
		strings.Repeat("\x1b", 5000) + "end": "",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("a\x1b]0;b\x07")
	f.Fuzz(func(t *testing.T, text string) {
		got := Printable(text)
		if len(got) > MaxText || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) || Printable(got) != got {
			t.Errorf("%q: %q", text, got)
		}
	})
}
