package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestHelpShowsFlagsInGroups(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"trace", "--help"}} {
		c := command()
		var out bytes.Buffer
		c.SetOut(&out)
		c.SetArgs(args)
		if err := c.Execute(); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, "\nWhat is served:\n      --clusterset-ip-range") || strings.Contains(text, "Flags:") {
			t.Errorf("%v:\n%s", args, text)
		}
	}
}

func TestEachGroupsFlagsAreThere(t *testing.T) {
	c := command()
	trace, _, err := c.Find([]string{"trace"})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		for _, name := range strings.Fields(g.flags) {
			if c.Flag(name) == nil && trace.Flag(name) == nil && !strings.HasSuffix(name, "-") {
				t.Errorf("%s: there is no --%s", g.title, name)
			}
		}
	}
}

func TestTheShellCompletesValues(t *testing.T) {
	c := command()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetArgs([]string{"__complete", "--scope", ""})
	if err := c.Execute(); err != nil || !strings.HasPrefix(out.String(), "all\nfederated\n") {
		t.Errorf("%v: %q", err, out.String())
	}
}
