package main

import (
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
}
