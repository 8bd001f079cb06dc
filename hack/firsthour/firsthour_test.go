package firsthour

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const root = "../.."

// longest is how long one block of commands may take.
const longest = 5 * time.Minute

const page = "docs/first-hour.md"

var show = flag.Bool("show", false, "show all that is printed: to write a page")

// TestFirstHour runs the page, and looks whether it leaves anything running.
func TestFirstHour(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, page))
	must(t, err)
	steps, err := parse(string(content))
	if err != nil {
		t.Fatalf("%s:%v", page, err)
	}
	clone := cleanClone(t)
	s, err := startShell(clone, t.TempDir(), environment(t))
	must(t, err)
	t.Cleanup(func() { s.end(); endStack(t, clone) })
	for _, step := range steps {
		if err := follow(t, s, step); err != nil {
			t.Fatalf("%s:%v", page, err)
		}
	}
	if left := running(t, clone); len(left) > 0 {
		t.Errorf("%s: at its end these still run:\n%s", page, strings.Join(left, "\n"))
	}
}

// follow runs a step, again and again while its time lasts.
func follow(t *testing.T, s *shell, step step) error {
	began := time.Now()
	for {
		ctx, cancel := context.WithTimeoutCause(t.Context(), longest, fmt.Errorf("it has not ended within %s", longest))
		output, err := s.run(ctx, step.commands)
		cancel()
		if err != nil {
			err = fmt.Errorf("%d: %w\ngot\n%s", step.line, err, output)
		} else if step.promised != nil {
			err = step.promised.compare(output)
		}
		if err == nil {
			t.Logf("%5.1fs  %s", time.Since(began).Seconds(), strings.SplitN(step.commands, "\n", 2)[0])
			if *show {
				t.Logf("\n%s", output)
			}
			return nil
		}
		if time.Since(began) >= step.within {
			if step.within > 0 {
				err = fmt.Errorf("%w\n(after %s)", err, step.within)
			}
			return err
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// cleanClone returns a copy of what the repository has, and of the programs that make build made of it: a newcomer waits for them.
func cleanClone(t *testing.T) string {
	t.Helper()
	clone := filepath.Join(t.TempDir(), "federation")
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	files, err := list.Output()
	must(t, err)
	for name := range strings.SplitSeq(strings.TrimRight(string(files), "\x00"), "\x00") {
		copyFile(t, filepath.Join(root, name), filepath.Join(clone, name))
	}
	const programs = "_output/bin"
	must(t, os.CopyFS(filepath.Join(clone, programs), os.DirFS(filepath.Join(root, programs))))
	must(t, os.WriteFile(filepath.Join(clone, programs, ".built"), nil, 0o644)) // newer than the copies: there is nothing to build
	return clone
}

// copyFile copies a file with its mode; one that was removed and is not committed yet is left out.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if os.IsNotExist(err) {
		return
	}
	must(t, err)
	content, err := os.ReadFile(from)
	must(t, err)
	must(t, os.MkdirAll(filepath.Dir(to), 0o755))
	must(t, os.WriteFile(to, content, info.Mode().Perm()))
}

// environment is a newcomer's: nothing of ours, no kubeconfig, no display, a home that is empty. Go finds its caches.
func environment(t *testing.T) []string {
	t.Helper()
	values, err := exec.Command("go", "env", "GOENV", "GOCACHE", "GOMODCACHE").Output()
	must(t, err)
	found := strings.Split(strings.TrimSpace(string(values)), "\n")
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8", "TERM=dumb",
		"GOENV=" + found[0], "GOCACHE=" + found[1], "GOMODCACHE=" + found[2]}
}

// endStack ends the clone's stack, if the page has not.
func endStack(t *testing.T, clone string) {
	down := exec.Command("_output/bin/local", "down")
	down.Dir = clone
	if out, err := down.CombinedOutput(); err != nil {
		t.Errorf("%s: local down: %v\n%s", clone, err, out)
	}
}

// running returns the command lines of processes that have a path below the clone in them.
func running(t *testing.T, clone string) (found []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, name := range lines {
		line, err := os.ReadFile(name)
		if err == nil && bytes.Contains(line, []byte(clone+"/")) { // an error: it has ended
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
