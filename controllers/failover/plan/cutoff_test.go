package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCutOffBeforeTheGracePeriod(t *testing.T) {
	f := newFleet(t, DefaultSettings(), "a", "b", "c")
	check := func(want string) {
		t.Helper()
		got := strings.Join(slices.Sorted(maps.Keys(CutOff(f.clusters, f.settings, f.now))), " ")
		if got != want {
			t.Errorf("cut off: %q, want %q", got, want)
		}
	}
	check("")
	f.observe("a", "-")
	check("") // one of three is dead
	f.observe("b", "-")
	check("a b") // at once, before anything is written
	f.settle()
	check("a b")
	f.observe("b", "+")
	f.settle()
	check("")
	f.wait(time.Hour) // a is out
	f.observe("b", "-")
	f.observe("c", "-")
	f.settle()
	check("b c")
}
