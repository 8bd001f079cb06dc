package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestFlagsSayWhatIsAllowed: the error names the flag, the value and what it may be.
func TestFlagsSayWhatIsAllowed(t *testing.T) {
	for _, c := range []struct{ flag, want string }{
		{"--member-token-lifetime=10m", ""},
		{"--member-token-lifetime=144h", ""},
		{"--member-token-lifetime=9m59s", "--member-token-lifetime 9m59s: must be from 10m0s to 1193046h28m16s"},
		{"--member-token-lifetime=1200000h", "--member-token-lifetime 1200000h0m0s: must be from 10m0s to 1193046h28m16s"},
		{"--propagate-secrets=All", ""},
		{"--propagate-secrets=all", `--propagate-secrets "all": must be Referenced or All`},
		{"--object-metrics-limit=0", "--object-metrics-limit 0: must be from 1 to 200000"},
		{"--object-metrics-limit=200001", "--object-metrics-limit 200001: must be from 1 to 200000"},
	} {
		o, fs := newControllersOptions(), pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addFlags(fs)
		err := fs.Parse([]string{c.flag})
		if err == nil {
			err = o.validate()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.flag, err, c.want)
		}
	}
}
