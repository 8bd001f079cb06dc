package main

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestABillHasWhatIsLinked(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8", Path: "federation/cmd/federation",
		Deps: []*debug.Module{
			{Path: "sigs.k8s.io/yaml", Version: "v1.6.0", Sum: "h1:abc="},
			{Path: "k8s.io/api", Version: "v0.0.0", Replace: &debug.Module{Path: "k8s.io/api", Version: "v0.36.3", Sum: "h1:def="}},
			{Path: "example.com/old", Version: "v2.0.0+incompatible"},
		},
		Settings: []debug.BuildSetting{{Key: "-compiler", Value: "gc"}, {Key: "vcs.revision", Value: "abc"}},
	}
	text, err := json.Marshal(billOf(info, "v0.1.0"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"bomFormat":"CycloneDX","specVersion":"1.5","version":1,"metadata":{"component":{"type":"application","bom-ref":"federation@v0.1.0","name":"federation","version":"v0.1.0",` +
		`"properties":[{"name":"vcs.revision","value":"abc"}]}},"components":[` +
		`{"type":"library","bom-ref":"pkg:golang/example.com/old@v2.0.0%2Bincompatible","name":"example.com/old","version":"v2.0.0+incompatible","purl":"pkg:golang/example.com/old@v2.0.0%2Bincompatible"},` +
		`{"type":"library","bom-ref":"pkg:golang/k8s.io/api@v0.36.3","name":"k8s.io/api","version":"v0.36.3","purl":"pkg:golang/k8s.io/api@v0.36.3","properties":[{"name":"go:sum","value":"h1:def="}]},` +
		`{"type":"library","bom-ref":"pkg:golang/sigs.k8s.io/yaml@v1.6.0","name":"sigs.k8s.io/yaml","version":"v1.6.0","purl":"pkg:golang/sigs.k8s.io/yaml@v1.6.0","properties":[{"name":"go:sum","value":"h1:abc="}]},` +
		`{"type":"library","bom-ref":"pkg:golang/stdlib@1.26.8","name":"stdlib","version":"1.26.8","purl":"pkg:golang/stdlib@1.26.8"}]}`
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestARealProgramIsRead(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if b := billOf(info, "v0"); len(b.Components) == 0 || !strings.HasPrefix(b.Components[0].PURL, "pkg:golang/stdlib@1.") {
		t.Errorf("got %+v", b.Components)
	}
}

// TestEachModuleIsNamed: what the Go tool says a program is made of is in its bill, module by module, with the version that is linked.
func TestEachModuleIsNamed(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range append([]string{self}, built(t)...) {
		said, err := exec.Command("go", "version", "-m", program).Output()
		if err != nil {
			t.Fatal(err)
		}
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		want, got := []string{"stdlib " + strings.TrimPrefix(info.GoVersion, "go")}, []string{}
		for line := range strings.Lines(string(said)) {
			fields := strings.Fields(line)
			if len(fields) > 2 && fields[0] == "=>" { // it replaces the one before
				want = want[:len(want)-1]
			}
			if len(fields) > 2 && (fields[0] == "dep" || fields[0] == "=>") {
				want = append(want, fields[1]+" "+fields[2])
			}
		}
		for _, c := range billOf(info, "v0").Components {
			got = append(got, c.Name+" "+c.Version)
		}
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: the bill has %q, and the program is made of %q", program, got, want)
		}
		t.Logf("%s: %d modules", program, len(want)-1)
	}
}

// built are the programs that make build has made; none if it has not.
func built(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, name := range []string{"federation", "federation-agent", "federation-dns", "federation-lb", "federation-nodeagent", "kubectl-federation"} {
		if file := "../../_output/bin/" + name; exists(file) {
			all = append(all, file)
		}
	}
	return all
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
