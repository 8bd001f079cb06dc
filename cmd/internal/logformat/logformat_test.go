package logformat

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"federation/clusterregistry/verbosity"
)

func TestJSONIsAnObjectALine(t *testing.T) {
	root := &cobra.Command{}
	f := &Flag{}
	f.Add(root, "`LEVEL` of the log")
	if err := root.ParseFlags([]string{"--logging-format=yaml"}); err == nil || !strings.Contains(err.Error(), "must be text or json") {
		t.Errorf("yaml: %v", err)
	}
	if err := root.ParseFlags([]string{"--logging-format=json"}); err != nil {
		t.Fatal(err)
	}
	defer klog.ClearLogger()
	defer SetFormat(Text)
	var out bytes.Buffer
	f.Apply(&out)
	Announce("serves %s", "a\nb")
	klog.ErrorS(errors.New("\x1b[31mred"), "Failed", "cluster", "east")
	klog.V(2).InfoS("not at this level")
	Fail("federation", errors.New("why"))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines, want 3:\n%s", len(lines), out.String())
	}
	for i, want := range []map[string]string{
		{"msg": "serves a\nb"},
		{"msg": "Failed", "cluster": "east", "err": "\x1b[31mred"},
		{"msg": "Ends", "program": "federation", "err": "why"},
	} {
		is := map[string]any{}
		if err := json.Unmarshal([]byte(lines[i]), &is); err != nil {
			t.Errorf("%s: %v", lines[i], err)
		}
		if caller, _ := is["caller"].(string); !strings.HasPrefix(caller, "logformat/logformat_test.go:") {
			t.Errorf("caller %q", caller)
		}
		for key, value := range want {
			if is[key] != value {
				t.Errorf("%s is %q, want %q", key, is[key], value)
			}
		}
	}
}

// A level that would show keys and tokens is taken for the highest that does not.
func TestNoLevelShowsWhatIsSecret(t *testing.T) {
	root := &cobra.Command{}
	f := &Flag{}
	f.Add(root, "`LEVEL` of the log")
	defer func() { _ = root.ParseFlags([]string{"-v=0"}) }()
	if err := root.ParseFlags([]string{"-v=9"}); err != nil {
		t.Fatal(err)
	}
	if f.Apply(io.Discard); klog.V(verbosity.Most+1).Enabled() || !klog.V(verbosity.Most).Enabled() {
		t.Errorf("-v=9 logs more than level %d, or less", verbosity.Most)
	}
}
