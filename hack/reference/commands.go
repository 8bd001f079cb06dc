package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// subcommand is a line of a help text that names one.
var subcommand = regexp.MustCompile(`^  ([a-z][a-z-]*) {2,}\S`)

// commands are the help texts of a program and all of its subcommands.
func commands(program string) (string, error) {
	name := filepath.Base(program)
	page := head(name, "the program's own help")
	return page, help(program, strings.Replace(name, "kubectl-", "kubectl ", 1), nil, &page)
}

func help(program, name string, path []string, page *string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, append(path, "--help")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %v --help: %w: %s", program, path, err, out)
	}
	*page += fmt.Sprintf("\n%s `%s`\n\n```\n%s\n```\n", strings.Repeat("#", min(2+len(path), 4)), strings.Join(append([]string{name}, path...), " "), strings.TrimSpace(string(out)))
	for _, sub := range subcommands(string(out)) {
		if err := help(program, name, append(path[:len(path):len(path)], sub), page); err != nil {
			return err
		}
	}
	return nil
}

// subcommands are those that a help text names: below its usage and above its flags, and no examples.
func subcommands(text string) (names []string) {
	_, text, _ = strings.Cut(text, "\nUsage:\n")
	text, _, _ = strings.Cut(text, "\nFlags:\n")
	inside := false
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " ") {
			inside = strings.HasSuffix(strings.TrimSpace(line), ":") && !strings.HasPrefix(line, "Examples")
		}
		if m := subcommand.FindStringSubmatch(line); inside && m != nil && m[1] != "help" && m[1] != "completion" {
			names = append(names, m[1])
		}
	}
	return names
}
