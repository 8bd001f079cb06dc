package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
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
	f.wait(time.Hour) // a is failed over
	f.observe("b", "-")
	f.observe("c", "-")
	f.settle()
	check("b c")
}

// The tools' settings and the controllers' select the same clusters: the window determines which ones are cut off.
func TestCutOffFollowsThePublishedWindow(t *testing.T) {
	for window, want := range map[time.Duration]int{time.Minute: 0, 5 * time.Minute: 1, 0: 0} {
		f := newFleet(t, SettingsOf(v1beta1.Info{FailoverMaxZones: 1, FailoverWindow: window}), "a", "b", "c")
		f.observe("a", "-")
		f.settle()
		f.wait(2 * time.Minute)
		f.observe("b", "-")
		if got := CutOff(f.clusters, f.settings, f.now); len(got) != want {
			t.Errorf("window %s: cut off %v, want %d (the other is out already)", window, got, want)
		}
	}
}
