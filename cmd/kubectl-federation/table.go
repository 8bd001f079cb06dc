package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"federation/apiserver/apis/phrase"
)

// table prints rows whose cells are aligned.
type table struct{ *tabwriter.Writer }

// newTable returns a table with its titles.
func newTable(out io.Writer, titles string) table {
	t := table{tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)}
	tell(t, "%s\n", titles)
	return t
}

// end prints the rows. Nobody reads the error.
func (t table) end() { _ = t.Flush() }

// printMore prints how many there are beside those that are shown: "and 3 objects more". The line begins with and.
func printMore(out io.Writer, and string, more int, of string) {
	text := fmt.Sprint(more)
	if of != "" {
		text = phrase.Count(int64(more), of)
	}
	if more > 0 {
		tell(out, "%s %s more (--all shows them)\n", and, text)
	}
}

// isTyped reports whether the next line that somebody types is what they are asked for.
func isTyped(in io.Reader, want string) bool {
	answer, _ := bufio.NewReader(in).ReadString('\n') // no answer is none
	return strings.TrimSpace(answer) == want
}
