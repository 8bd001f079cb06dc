package main

import (
	"bytes"
	"io"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// printable writes only what is safe for a terminal: objects, clusters and DNS servers may contain terminal control
// sequences. It writes unprintable characters as in Go's string literals.
type printable struct{ io.Writer }

func (p printable) Write(b []byte) (int, error) {
	if bytes.IndexFunc(b, isUnsafe) < 0 && utf8.Valid(b) {
		return p.Writer.Write(b)
	}
	out := make([]byte, 0, len(b)+16)
	for rest := b; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && n == 1:
			out = append(out, `\x`+strconv.FormatUint(uint64(rest[0]), 16)...)
		case isUnsafe(r):
			quoted := strconv.QuoteRune(r)
			out = append(out, quoted[1:len(quoted)-1]...)
		default:
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	if _, err := p.Writer.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

func isUnsafe(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }
