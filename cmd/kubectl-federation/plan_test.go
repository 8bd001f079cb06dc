package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/scheduler/apportion"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// run runs the command line and returns its output and its error's text.
func run(args ...string) (string, string) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	c := newCommand(streams)
	c.SetArgs(args)
	if err := c.Execute(); err != nil {
		return out.String(), err.Error()
	}
	return out.String(), ""
}

func TestPlanReplicasAsJSON(t *testing.T) {
	for name, test := range map[string]struct{ args, preferences, want string }{
		"weights 1 and 2": {"--replicas 60 --clusters A,B", `{"clusters":{"A":{"weight":1},"B":{"weight":2}}}`,
			`{"plan":{"A":20,"B":40},"overflow":{}}`},
		"without rebalance what runs stays": {"--replicas 50 --clusters A,B --current A=30", `{"clusters":{"*":{"weight":1}}}`,
			`{"plan":{"A":30,"B":20},"overflow":{}}`},
		"a full cluster overflows": {"--replicas 50 --clusters A,B,C --capacity C=10", `{"rebalance":true,"clusters":{"*":{"weight":1}}}`,
			`{"plan":{"A":20,"B":20,"C":10},"overflow":{"C":7}}`},
		"a heavier one at its maximum does not hide it": {"--replicas 71 --clusters A,B,C,D --capacity C=10",
			`{"rebalance":true,"clusters":{"A":{"weight":10000,"maxReplicas":10},"*":{"weight":1}}}`,
			`{"plan":{"A":10,"B":25,"C":10,"D":26},"overflow":{"C":11}}`},
		"a cluster without preferences is listed": {"--replicas 5 --clusters A,B", `{"clusters":{"A":{"weight":1}}}`,
			`{"plan":{"A":5,"B":0},"overflow":{}}`},
		"what fits nowhere": {"--replicas 5 --clusters A --capacity A=2", "",
			`{"plan":{"A":2},"overflow":{"A":3},"unschedulable":3}`},
		"nothing moves that need not": {"--replicas 50 --clusters A,B --current A=10,B=70", "",
			`{"plan":{"A":10,"B":40},"overflow":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(append([]string{"plan", "replicas", "-o", "json", "--preferences", test.preferences}, strings.Fields(test.args)...)...)
			if err != "" || out != test.want+"\n" {
				t.Errorf("got %s%s\nwant %s", out, err, test.want)
			}
		})
	}
}

func TestPlanReplicasRefuses(t *testing.T) {
	for name, test := range map[string]struct{ args, want string }{
		"no replicas":               {"--clusters A", `required flag(s) "replicas" not set`},
		"no clusters":               {"--replicas 1", `required flag(s) "clusters" not set`},
		"a word for a number":       {"--clusters A --replicas many", `--replicas "many": must be a whole number from 0 to 2147483647`},
		"a negative number":         {"--clusters A --replicas=-1", `--replicas "-1": must be a whole number from 0 to`},
		"more than an int32":        {"--clusters A --replicas 2147483648", `--replicas "2147483648": must be`},
		"more than an int64":        {"--clusters A --replicas 99999999999999999999", `must be a whole number`},
		"an empty cluster":          {"--replicas 1 --clusters A,,B", `--clusters "A,,B": must be names separated by commas, "" is none`},
		"the star as a cluster":     {"--replicas 1 --clusters *", `"*" is none`},
		"a cluster twice":           {"--replicas 1 --clusters A,A", `--clusters "A,A": names "A" twice`},
		"current of a stranger":     {"--replicas 1 --clusters A --current B=1", `--current "B=1": cluster "B" is not among --clusters A`},
		"current without number":    {"--replicas 1 --clusters A --current A", `--current "A": "A" must be CLUSTER=NUMBER`},
		"current twice":             {"--replicas 1 --clusters A --current A=1,A=2", `names "A" twice`},
		"negative capacity":         {"--replicas 1 --clusters A --capacity A=-1", `--capacity A= "-1": must be a whole number`},
		"a key without a slash":     {"--replicas 1 --clusters A --key web", `--key "web": must be NAMESPACE/NAME`},
		"an output we do not have":  {"--replicas 1 --clusters A -o xml", `--output "xml": must be table, json or yaml`},
		"preferences, no JSON":      {"--replicas 1 --clusters A --preferences {", `--preferences: Invalid value: "{": must be JSON`},
		"preferences, unknown":      {`--replicas 1 --clusters A --preferences {"wieght":1}`, `unknown field`},
		"preferences, negative":     {`--replicas 1 --clusters A --preferences {"clusters":{"A":{"weight":-1}}}`, `--preferences.clusters[A].weight: Invalid value: -1`},
		"preferences, min over max": {`--replicas 1 --clusters A --preferences {"clusters":{"A":{"minReplicas":3,"maxReplicas":2}}}`, `clusters[A].minReplicas: Invalid value: 3: must be no more than maxReplicas (2)`},
		"an argument":               {"--replicas 1 --clusters A web", `unknown command "web"`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(append([]string{"plan", "replicas"}, strings.Fields(test.args)...)...)
			if !strings.Contains(err, test.want) || out != "" {
				t.Errorf("got %q, error %q; want an error with %q and no output", out, err, test.want)
			}
		})
	}
}

func TestPlanReplicasAsYAML(t *testing.T) {
	out, err := run("plan", "replicas", "--replicas", "5", "--clusters", "B,A", "--capacity", "A=1", "-o", "yaml")
	if want := "overflow: {}\nplan:\n  A: 1\n  B: 4\n"; err != "" || out != want {
		t.Errorf("got %q %s, want %q", out, err, want)
	}
}

func TestPlanReplicasAsTable(t *testing.T) {
	var out strings.Builder
	err := printPlan(&out, apportion.Result{
		Plan: map[string]int64{"west": 10, "east-a": 20}, Overflow: map[string]int64{"west": 7}, Unschedulable: 3,
		Reasons: map[string][]string{"west": {"one", "two"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/plan.table", out.String())
}

func TestHelp(t *testing.T) {
	var all strings.Builder
	for _, args := range [][]string{{"--help"}, {"join", "--help"}, {"unjoin", "--help"}, {"plan", "replicas", "--help"}, {"plan", "failover", "--help"},
		{"cordon", "--help"}, {"uncordon", "--help"}, {"drain", "--help"}, {"undrain", "--help"}, {"explain", "--help"}, {"status", "--help"}, {"dns", "--help"}, {"dns", "ds", "--help"}, {"dns", "keys", "--help"}} {
		out, err := run(args...)
		if err != "" {
			t.Fatal(err)
		}
		all.WriteString("$ kubectl federation " + strings.Join(args, " ") + "\n" + out + "\n")
	}
	golden(t, "testdata/help.txt", all.String())
}

func TestJoinAndUnjoinRefuse(t *testing.T) {
	for args, want := range map[string]string{
		"join":                        "give one NAME of a cluster, not 0",
		"join a b --member-context x": `give one NAME of a cluster, not 2: ["a" "b"]`,
		"join a":                      "at least one of the flags in the group [member-context member-kubeconfig] is required",
		"join a --member-context x --timeout -1s":                          "--timeout -1s: must not be negative",
		"join a --member-context x --timeout soon":                         `invalid argument "soon" for "--timeout"`,
		"join a --member-context x --kubeconfig /no/file":                  "the federation (--kubeconfig, --context)",
		"join a --member-context x --nodeagent-image i":                    "--nodeagent-image needs --with-nodeagent",
		"join a --member-context x --with-nodeagent --nodeagent-mode ipvs": `--nodeagent-mode "ipvs": want nftables or iptables`,
		"unjoin":                        "give one NAME of a cluster, not 0",
		"unjoin a --member-context x y": "not 2",
		"leave":                         `unknown command "leave"`,
	} {
		if _, err := run(strings.Fields(args)...); !strings.Contains(err, want) {
			t.Errorf("%s: error %q, want one with %q", args, err, want)
		}
	}
}

// golden compares with a file, or rewrites it with -update.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, []byte(got)) {
		t.Errorf("%s differs (go test -update rewrites it); got:\n%s", file, got)
	}
}
