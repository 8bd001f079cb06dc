package fleettest

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// Script is a scenario: comments (#), commands, and what they show (>), then files. Each command is one line.
type Script struct {
	lines []string
	files map[string]string
	// archive is what was read, for writing it back.
	archive *txtar.Archive
}

// ParseScript reads a scenario.
func ParseScript(data []byte) *Script {
	a := txtar.Parse(data)
	s := &Script{archive: a, files: map[string]string{}, lines: strings.Split(strings.TrimSuffix(string(a.Comment), "\n"), "\n")}
	for _, f := range a.Files {
		s.files[f.Name] = string(f.Data)
	}
	return s
}

// Run runs the commands in a fleet, with after following each. It returns the scenario as it would be with
// what the commands show now.
func (s *Script) Run(f *Fleet, after func(command string) error) ([]byte, error) {
	p := &player{Fleet: f, files: s.files}
	var out []string
	for i, line := range s.lines {
		if strings.HasPrefix(line, "> ") || line == ">" {
			continue
		}
		out = append(out, line)
		command := strings.TrimSpace(line)
		if command == "" || strings.HasPrefix(command, "#") {
			continue
		}
		shown, err := p.do(strings.Fields(command))
		for _, l := range shown {
			out = append(out, strings.TrimSuffix("> "+l, " "))
		}
		if err == nil && after != nil {
			err = after(command)
		}
		if err == nil {
			err = f.Failures()
		}
		if err != nil {
			return nil, fmt.Errorf("line %d, %s: %w; so far it showed\n%s", i+1, command, err, strings.Join(out, "\n"))
		}
	}
	return txtar.Format(&txtar.Archive{Comment: []byte(strings.Join(out, "\n") + "\n"), Files: s.archive.Files}), nil
}

// End returns what a scenario shows after its last settle, without the named subjects: what it comes to.
func End(scenario []byte, without ...string) (out []string) {
	skip := false
	for line := range strings.Lines(string(txtar.Parse(scenario).Comment)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "settle":
			out = nil
		case !strings.HasPrefix(line, ">"):
			words := strings.Fields(line)
			skip = len(words) > 1 && slices.Contains(without, words[1])
		case !skip:
			out = append(out, line)
		}
	}
	return out
}
