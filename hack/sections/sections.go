// Package sections keeps what programs write into documents apart from what people do: a section stands between two
// marks, comments with its name, which do not show.
package sections

import "strings"

// Replace replaces what stands between the marks of a name in a document, or adds it at the end.
func Replace(document, name, text string) string {
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	section := begin + strings.TrimRight(text, "\n") + "\n" + end
	head, rest, found := strings.Cut(document, begin)
	if !found {
		return strings.TrimRight(document, "\n") + "\n\n" + section
	}
	_, tail, _ := strings.Cut(rest, end)
	return head + section + tail
}
