package plan

import (
	"slices"
	"testing"
	"time"
)

func TestPausesBeforeACopyIsCreatedAgain(t *testing.T) {
	var r Removals
	now := time.Unix(1000, 0)
	var pauses []time.Duration
	for range 12 {
		r.Add(now)
		pauses = append(pauses, max(r.Left(now), 0))
		now = now.Add(r.pause() + time.Second) // it is created, and deleted a second later
	}
	s := time.Second
	want := []time.Duration{0, 0, 0, 5 * s, 10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 300 * s, 300 * s, 300 * s}
	if !slices.Equal(pauses, want) {
		t.Errorf("pauses %v, want %v", pauses, want)
	}
	now = now.Add(10 * time.Minute) // it lasted
	r.Add(now)
	if left := r.Left(now); left > 0 {
		t.Errorf("a copy that lasted for minutes waits for %s", left)
	}
}
