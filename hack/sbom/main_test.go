package main

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"runtime/debug"
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
