// Command table writes, from ginkgo's JSON reports of the same tests, a table in Markdown: a line for each test, a
// column for each report, with how long the test took where it passed. A column without a report is the one of that name
// in the table that was written before, if there is one; what follows a comma is not of its name.
//
//	table --before table.md kube-proxy iptables nftables,302e1f5=nftables.json >new.md
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
	"github.com/spf13/pflag"
)

func main() {
	before := pflag.String("before", "", "`FILE` with the table that was written before")
	pflag.Parse()
	if err := run(pflag.Args(), *before, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "table: error: %v\n", err)
		os.Exit(1)
	}
}

// column is one report: by test, what came of it.
type column struct {
	name    string
	results map[string]string
}

func run(args []string, before string, out io.Writer) error {
	text, err := os.ReadFile(before)
	if err != nil && before != "" {
		return err
	}
	old := parse(string(text))
	var columns []column
	for _, arg := range args {
		name, file, ok := strings.Cut(arg, "=")
		if !ok {
			if i := slices.IndexFunc(old, func(c column) bool { kind, _, _ := strings.Cut(c.name, ","); return kind == name }); i >= 0 {
				columns = append(columns, old[i])
			}
			continue
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
	_, err = io.WriteString(out, table(columns))
	return err
}

// parse reads what table has written, and other text around it.
func parse(text string) (columns []column) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line[2:], " |"), " | ")
		switch test, cells := cells[0], cells[1:]; test {
		case "test":
			for _, name := range cells {
				columns = append(columns, column{name: name, results: map[string]string{}})
			}
		case "passed":
		default:
			for i, cell := range cells[:min(len(cells), len(columns))] {
				if cell != "" {
					columns[i].results[test] = cell
				}
			}
		}
	}
	return columns
}

// read takes of a report the tests that ran.
func read(name string, reports []types.Report) column {
	c := column{name: name, results: map[string]string{}}
	for _, report := range reports {
		for _, spec := range report.SpecReports {
			test := strings.ReplaceAll(spec.FullText(), "|", `\|`)
			switch {
			case spec.LeafNodeType != types.NodeTypeIt || spec.State == types.SpecStateSkipped:
				continue
			case spec.State == types.SpecStatePassed:
				c.results[test] = fmt.Sprintf("%.0f s", spec.RunTime.Seconds())
			default:
				c.results[test] = "**" + spec.State.String() + "**"
			}
		}
	}
	return c
}

func (c column) passed() (n int) {
	for _, result := range c.results {
		if !strings.HasPrefix(result, "**") {
			n++
		}
	}
	return n
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
		sum += fmt.Sprintf(" %d of %d |", c.passed(), len(c.results))
	}
	lines := []string{head, rule, sum}
	for _, test := range tests {
		line := "| " + test + " |"
		for _, c := range columns {
			line += " " + c.results[test] + " |"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n") + "\n"
}
