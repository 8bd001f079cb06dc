package fleettest

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seed   = flag.Uint64("seed", 1, "where the random driver begins")
	seeds  = flag.Uint64("seeds", 1, "how many seeds it takes, from -seed on")
	steps  = flag.Int("steps", 150, "how many steps it takes with each")
	with   = flag.String("with", "", "faults and kinds that are switched on, in place of a random half: rs,svc,fed")
	also   = flag.String("also", "", "what is switched on besides")
	shrink = flag.Duration("shrink", 2*time.Minute, "how long a list of steps that fails is made shorter")
)

// TestRandom takes random steps, each of which may break something, and checks the laws after each.
func TestRandom(t *testing.T) {
	all := NewTally()
	t.Cleanup(func() { t.Logf("%d seeds of %d steps\n%s", *seeds, *steps, all) })
	for s := range *seeds {
		s += *seed
		t.Run(fmt.Sprintf("seed-%d", s), func(t *testing.T) {
			t.Parallel()
			t.Logf("make fleet SEED=%d STEPS=%d: %s", s, *steps, swarmOf(s))
			lines, files, err := drive(t, s, *steps, all)
			if err != nil {
				t.Errorf("seed %d: %v\n%s", s, err, shortest(t, lines, files, err))
			}
		})
	}
}

// swarmOf is what is switched on with a seed, or by -with, and by -also.
func swarmOf(seed uint64) swarm {
	on := newSwarm(seed)
	if *with != "" {
		on = swarm{"": true}
		for name := range strings.SplitSeq(*with, ",") {
			on[name] = true
		}
	}
	for name := range strings.SplitSeq(*also, ",") {
		on[name] = true
	}
	return on
}

// drive takes steps until one fails. It returns what was done since the fleet was last as new.
func drive(t *testing.T, seed uint64, steps int, all *Tally) (lines []string, files map[string]string, err error) {
	synctest.Test(t, func(t *testing.T) {
		f, r := (*Fleet)(nil), (*Random)(nil)
		if f, err = New(t.Context(), DefaultSettings(), synctest.Wait); err != nil {
			return
		}
		defer f.Close()
		r = NewRandom(f, seed)
		r.swarm = swarmOf(seed)
		for err = r.Begin(); err == nil && r.steps < steps; {
			if err = r.Step(); err != nil {
				err = fmt.Errorf("step %d: %w", r.steps, err)
			}
		}
		lines, files = r.Log()
		all.Add(f.Tally())
	})
	return lines, files, err
}

// shortest is a scenario of as few of the lines as can be found that break the same law.
func shortest(t *testing.T, lines []string, files map[string]string, err error) string {
	fails := func(lines []string) bool {
		var again error
		synctest.Test(t, func(t *testing.T) {
			f, e := New(t.Context(), DefaultSettings(), synctest.Wait)
			if e != nil {
				t.Fatal(e)
			}
			defer f.Close()
			again = Replay(f, lines, files)
		})
		return SameLaw(err, again)
	}
	end := time.Now().Add(*shrink)
	head := "what was done since the fleet was last as new does not break it by itself; all of it was:"
	if fails(lines) {
		head = "these steps do it, too:"
		mend := lines[mendingOf(lines):] // without it, what settles is not what broke
		lines = Shrink(lines[:len(lines)-len(mend)], func(lines []string) bool { return fails(slices.Concat(lines, mend)) }, func() bool { return time.Now().After(end) })
		lines = slices.Concat(lines, mend)
	}
	out := head + "\n" + strings.Join(lines, "\n")
	for name, text := range files {
		if strings.Contains(out, "apply "+name) {
			out += "\n-- " + name + " --\n" + strings.TrimSpace(text)
		}
	}
	return out
}

// mendingOf is where the lines begin that make all well again before a last one that has the fleet settle; the end where none has.
func mendingOf(lines []string) int {
	if last := lines[len(lines)-1]; last != "settle" && last != "rest" && !strings.HasPrefix(last, "core ") {
		return len(lines)
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i] == "fed well" {
			return i
		}
	}
	return len(lines)
}

// TestShrink: what is needed stays, what is not goes, and the time that there is is kept to.
func TestShrink(t *testing.T) {
	all := strings.Split("a b c d e f g", " ")
	needs := func(lines []string) bool {
		text := strings.Join(lines, "")
		return strings.Contains(text, "b") && strings.Contains(text, "f")
	}
	if got := strings.Join(Shrink(all, needs, func() bool { return false }), ""); got != "bf" {
		t.Errorf("got %s, wanted bf", got)
	}
	if got := strings.Join(Shrink(all, needs, func() bool { return true }), ""); got != "abcdefg" {
		t.Errorf("got %s, wanted all: there is no time", got)
	}
	one, other := against("one", "a"), against("other", "b")
	if !SameLaw(one, errors.Join(errors.New("x"), against("one", "c"))) || SameLaw(one, other) || SameLaw(one, errors.New("one")) {
		t.Error("errors are about one law exactly if its name is the same")
	}
}
