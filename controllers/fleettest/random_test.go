package fleettest

import (
	"flag"
	"testing"
	"testing/synctest"
)

var (
	seed  = flag.Uint64("seed", 1, "where the random driver begins")
	steps = flag.Int("steps", 150, "how many steps it takes")
)

// orderEvery is after how many steps everything is made well, and the laws of a settled fleet are checked.
const orderEvery = 25

// TestRandom takes random steps, each of which may break something, and checks the laws after each.
func TestRandom(t *testing.T) {
	t.Logf("go test ./controllers/fleettest -run Random -seed %d -steps %d", *seed, *steps)
	synctest.Test(t, func(t *testing.T) {
		f, err := New(t.Context(), DefaultSettings(), synctest.Wait)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r := NewRandom(f, *seed)
		if err := r.Begin(); err != nil {
			t.Fatal(err)
		}
		for i := range *steps {
			err := r.Step()
			if err == nil && i%orderEvery == orderEvery-1 {
				err = r.Order()
			}
			if err != nil {
				t.Errorf("step %d of seed %d: %v\nsince the fleet was last in order:\n%s", i, *seed, err, r.Log())
				return
			}
		}
	})
}
