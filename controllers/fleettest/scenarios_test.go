package fleettest

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
)

var update = flag.Bool("update", false, "write what the scenarios show into their files")

func TestMain(m *testing.M) {
	debug.SetGCPercent(800) // nearly all is dead at once
	// The default handlers wait by a clock that goes back with each new bubble.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:0]
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	if err := flags.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"}); err != nil {
		panic(err)
	}
	klog.SetOutput(nowhere{})
	os.Exit(m.Run())
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

// play runs a scenario in a bubble of its own.
func play(t *testing.T, data []byte, after func(*Fleet, string) error) (out []byte) {
	synctest.Test(t, func(t *testing.T) {
		f, err := New(t.Context(), DefaultSettings(), synctest.Wait)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		out, err = ParseScript(data).Run(f, func(command string) error {
			synctest.Wait() // all that watch one command have seen it before the next: what it says does not depend on who was first
			if after == nil {
				return nil
			}
			defer synctest.Wait()
			return after(f, command)
		})
		if err == nil {
			err = errors.Join(f.Settle(), errors.Join(f.Check()...), f.CheckIdle())
		}
		if err != nil {
			t.Error(err)
		}
	})
	return out
}

func scenarios(t *testing.T, run func(t *testing.T, path string, data []byte)) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			run(t, path, data)
		})
	}
}

// TestScenarios plays each scenario: the laws must hold, and it must show what its file says.
func TestScenarios(t *testing.T) {
	scenarios(t, func(t *testing.T, path string, data []byte) {
		got := play(t, data, nil)
		switch {
		case got == nil || bytes.Equal(got, data):
		case *update:
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("it shows something else (run with -update and read the diff):\n%s", difference(data, got))
		}
	})
}

// difference is the lines of b from the first on in which it differs from a.
func difference(a, b []byte) string {
	before, after := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range after {
		if i >= len(before) || before[i] != after[i] {
			return "wanted\n" + strings.Join(before[min(i, len(before)):min(i+8, len(before))], "\n") + "\ngot\n" + strings.Join(after[i:min(i+8, len(after))], "\n")
		}
	}
	return "it ends early"
}

// TestRestartAtEachStep plays each scenario with a restart of the federation after each command: it must come to
// the same end.
func TestRestartAtEachStep(t *testing.T) {
	scenarios(t, func(t *testing.T, _ string, data []byte) {
		sameEnd(t, data, play(t, data, func(f *Fleet, command string) error {
			if !strings.HasPrefix(command, "show") && !strings.HasPrefix(command, "expect") && !endsDrill(f, bytes.Contains(data, []byte("\ncrash "))) {
				f.processes.restart()
			}
			return nil
		}))
	})
}

// endsDrill reports whether a drill would end if one more process took over: its guardrail ControlPlane lets one do so. crashes: the scenario itself
// has that happen.
func endsDrill(f *Fleet, crashes bool) bool {
	return slices.ContainsFunc(f.Federation.List(v1beta1.FailoverDrillsResource, nil), func(u *unstructured.Unstructured) bool {
		return crashes || valueAt(u, "status.leaderChanges") == "1"
	})
}

// sameEnd checks that a scenario that was played in another way came to the end that its file says.
func sameEnd(t *testing.T, data, got []byte) {
	t.Helper()
	passing := []string{"writes", "events", "history"} // what another way may change
	was, is := strings.Join(End(data, passing...), "\n"), strings.Join(End(got, passing...), "\n")
	if got != nil && was != is {
		t.Errorf("it comes to another end: wanted\n%s\ngot\n%s", was, is)
	}
}
