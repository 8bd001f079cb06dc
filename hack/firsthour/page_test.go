package firsthour

import (
	"context"
	"strings"
	"testing"
	"time"
)

const fence = "```"

func TestParse(t *testing.T) {
	steps, err := parse("# A page\n\nStart it:\n" + fence + "sh\nmake up\n" + fence + "\nIt prints\n" + fence + "text\n…\nready\n" + fence +
		"\nWithin 20 seconds:\n" + fence + "sh\nkubectl get\n  pods\n" + fence + "\n")
	must(t, err)
	if len(steps) != 2 {
		t.Fatalf("%d steps", len(steps))
	}
	first, second := steps[0], steps[1]
	if first.line != 5 || first.commands != "make up\n" || first.within != 0 || first.promised.line != 9 || strings.Join(first.promised.lines, "|") != "…|ready" {
		t.Errorf("the first: %+v %+v", first, first.promised)
	}
	if second.commands != "kubectl get\n  pods\n" || second.within != 20*time.Second || second.promised != nil {
		t.Errorf("the second: %+v", second)
	}
}

func TestPagesThatAreRefused(t *testing.T) {
	for page, want := range map[string]string{
		fence + "sh\nmake up\n":                                              "1: the block that begins here does not end",
		fence + "\nmake up\n" + fence:                                        `1: block of "": sh and text are allowed`,
		fence + "text\nready\n" + fence:                                      "2: a text block comes after the commands",
		"within 1 seconds or within 2 seconds\n" + fence + "sh\nx\n" + fence: "3: the text before promises more than one time",
	} {
		if _, err := parse(page); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, wanted %s", page, err, want)
		}
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct{ promised, output, wrong string }{
		{"NAME   AGE\nweb    …", "\nNAME AGE\nweb    12s\n", ""},
		{"…\nready\n…", "ready\n", ""},
		{"…\nready\n…", "a\nb\nready\nc\n", ""},
		{"…\na\nc", "a\nb\na\nc", ""},
		{"web  12/12", "web 11/12", "10: wanted\nweb  12/12\ngot\nweb 11/12"},
		{"web\n…\nready\ndone", "web\nx\nready\nready\n", "13: wanted\ndone"},
		{"web", "web\nand more", "11: wanted the end"},
		{"web\nmore", "web", "11: wanted\nmore"},
		{"a.c", "abc", "10: wanted\na.c"}, // no regular expression
		{"…", "", ""},
	} {
		err := (&block{line: 10, lines: strings.Split(c.promised, "\n")}).compare(c.output)
		switch {
		case c.wrong == "" && err != nil:
			t.Errorf("%q is not %q: %v", c.output, c.promised, err)
		case c.wrong != "" && (err == nil || !strings.HasPrefix(err.Error(), c.wrong)):
			t.Errorf("%q, promised %q: %v, wanted %s", c.output, c.promised, err, c.wrong)
		}
	}
}

func TestShell(t *testing.T) {
	s, err := startShell(t.TempDir(), t.TempDir(), []string{"PATH=/usr/bin:/bin"})
	must(t, err)
	t.Cleanup(s.end)
	for _, c := range []struct{ commands, output, wrong string }{
		{"export A=1\ncd /\necho out; echo err >&2\n", "out\nerr\n", ""},
		{"echo $A $PWD\n", "1 /\n", ""},
		{"cat <<EOF\na\nEOF\ncat\n", "a\n", ""}, // nothing to read
		{"sleep 60 &\n", "", ""},
		{"kill %1\n", "", ""},
		{"false\necho on\n", "on\n", "a command failed with exit code 1"},
		{"if false; then true; fi\n", "", ""},
	} {
		output, err := s.run(t.Context(), c.commands)
		if output != c.output || (err == nil) != (c.wrong == "") || err != nil && err.Error() != c.wrong {
			t.Errorf("%q: %q, %v", c.commands, output, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.run(ctx, "sleep 60\n"); err != context.DeadlineExceeded {
		t.Errorf("commands that do not end: %v", err)
	}
}
