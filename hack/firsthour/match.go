package firsthour

import (
	"fmt"
	"regexp"
	"strings"
)

const anything = "…"

// compare returns nil if the output is what the block promises, or else an error that begins with the number of the line that nothing matched.
func (b *block) compare(output string) error {
	var wanted []*regexp.Regexp
	var at []int // the wanted lines' places in the block
	for i, line := range b.lines {
		if line = oneSpace(line); line != "" {
			wanted, at = append(wanted, pattern(line)), append(at, i)
		}
	}
	var got []string
	for _, line := range strings.Split(output, "\n") {
		if line = oneSpace(line); line != "" {
			got = append(got, line)
		}
	}
	missing, ok := firstMissing(wanted, got)
	switch {
	case ok:
		return nil
	case missing == len(wanted):
		return fmt.Errorf("%d: wanted the end\ngot\n%s", b.line+len(b.lines), output)
	default:
		return fmt.Errorf("%d: wanted\n%s\ngot\n%s", b.line+at[missing], b.lines[at[missing]], output)
	}
}

// oneSpace leaves one space between words.
func oneSpace(line string) string { return strings.Join(strings.Fields(line), " ") }

// pattern returns nil for a line that stands for any number of lines.
func pattern(line string) *regexp.Regexp {
	if line == anything {
		return nil
	}
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(line), anything, ".*") + "$")
}

// firstMissing returns true if the lines of the output are the wanted ones, or else the first wanted one that there is no line for: the
// number of the wanted ones, where too many came.
func firstMissing(wanted []*regexp.Regexp, got []string) (int, bool) {
	w, g, furthest := 0, 0, 0
	afterGap, nextTry := -1, 0 // what is wanted after the last nil, and the line that it is looked for from next
	for g < len(got) {
		switch {
		case w < len(wanted) && wanted[w] == nil:
			w++
			afterGap, nextTry = w, g
		case w < len(wanted) && wanted[w].MatchString(got[g]):
			w, g = w+1, g+1
		case afterGap >= 0:
			nextTry++
			w, g = afterGap, nextTry
		default:
			return max(w, furthest), false
		}
		furthest = max(furthest, w)
	}
	for w < len(wanted) && wanted[w] == nil {
		w++
	}
	return max(w, furthest), w == len(wanted)
}
