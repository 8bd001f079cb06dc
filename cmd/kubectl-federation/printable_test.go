package main

import (
	"bytes"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Names, reasons and messages are arbitrary text of others.
func TestNothingIsShownThatTerminalsObey(t *testing.T) {
	var out bytes.Buffer
	root := newCommand(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
	tell(root.OutOrStdout(), "a\x1b[2J\tb\r\u202e\xffc …\n")
	if got, want := out.String(), `a\x1b[2J`+"\t"+`b\r\u202e\xffc …`+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
