// Command table writes, from ginkgo's JSON reports of the same tests, a table in Markdown: a line for each test, a
// column for each report, with how long the test took where it passed.
//
//	table kube-proxy=kube-proxy.json iptables=iptables.json >table.md
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "table: error: %v\n", err)
		os.Exit(1)
	}
}

// column is one report: by test, what came of it.
type column struct {
	name    string
	results map[string]string
	passed  int
}

func run(args []string, out io.Writer) error {
	var columns []column
	for _, arg := range args {
		name, file, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q: want NAME=FILE", arg)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var reports []types.Report
		if err := json.Unmarshal(b, &reports); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		columns = append(columns, read(name, reports))
	}
	_, err := io.WriteString(out, table(columns))
	return err
}

// read takes of a report the tests that ran.
func read(name string, reports []types.Report) column {
	c := column{name: name, results: map[string]string{}}
	for _, report := range reports {
		for _, spec := range report.SpecReports {
			switch {
			case spec.LeafNodeType != types.NodeTypeIt || spec.State == types.SpecStateSkipped:
				continue
			case spec.State == types.SpecStatePassed:
				c.passed++
				c.results[spec.FullText()] = fmt.Sprintf("%.0f s", spec.RunTime.Seconds())
			default:
				c.results[spec.FullText()] = "**" + spec.State.String() + "**"
			}
		}
	}
	return c
}

func table(columns []column) string {
	var tests []string
	for _, c := range columns {
		for test := range c.results {
			tests = append(tests, test)
		}
	}
	slices.Sort(tests)
	tests = slices.Compact(tests)
	head, rule, sum := "| test |", "|---|", "| passed |"
	for _, c := range columns {
		head += " " + c.name + " |"
		rule += "---|"
		sum += fmt.Sprintf(" %d of %d |", c.passed, len(c.results))
	}
	lines := []string{head, rule, sum}
	for _, test := range tests {
		line := "| " + strings.ReplaceAll(test, "|", `\|`) + " |"
		for _, c := range columns {
			line += " " + c.results[test] + " |"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n") + "\n"
}
