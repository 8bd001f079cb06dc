package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/types"
)

func TestTable(t *testing.T) {
	spec := func(text string, state types.SpecState, took time.Duration) types.SpecReport {
		return types.SpecReport{ContainerHierarchyTexts: []string{"Services"}, LeafNodeText: text, LeafNodeType: types.NodeTypeIt, State: state,
			StartTime: time.Unix(1, 0), RunTime: took}
	}
	suite := types.SpecReport{LeafNodeType: types.NodeTypeBeforeSuite, State: types.SpecStatePassed}
	notChosen := types.SpecReport{LeafNodeText: "other", LeafNodeType: types.NodeTypeIt, State: types.SpecStateSkipped}
	got := table([]column{
		read("theirs", []types.Report{{SpecReports: types.SpecReports{suite, notChosen, spec("b", types.SpecStatePassed, 1600*time.Millisecond)}}}),
		read("ours", []types.Report{{SpecReports: types.SpecReports{spec("b", types.SpecStateFailed, time.Second), spec("a", types.SpecStatePassed, time.Second)}}}),
	})
	want := `| test | theirs | ours |
|---|---|---|
| passed | 1 of 1 | 1 of 2 |
| Services a |  | 1 s |
| Services b | 2 s | **failed** |
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := table(parse("# Title\n\nText.\n\n" + want)); got != want {
		t.Errorf("read and written again:\n%swant\n%s", got, want)
	}
}

// Only what was run is written anew; the rest of the table stays.
func TestBefore(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	before := file("before.md", "| test | theirs | ours, old | more, old |\n|---|---|---|---|\n| passed | 1 of 1 | 0 of 1 | 1 of 1 |\n| a | 1 s | **failed** | 3 s |\n")
	now := file("now.json", `[{"SpecReports": [{"LeafNodeText": "a", "LeafNodeType": "It", "State": "passed", "RunTime": 2000000000}]}]`)
	var got strings.Builder
	if err := run([]string{"theirs", "none", "ours, new=" + now, "more"}, before, &got); err != nil {
		t.Fatal(err)
	}
	want := "| test | theirs | ours, new | more, old |\n|---|---|---|---|\n| passed | 1 of 1 | 1 of 1 | 1 of 1 |\n| a | 1 s | 2 s | 3 s |\n"
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}
