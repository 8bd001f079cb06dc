package plan

import (
	"fmt"
	"time"
)

// A copy that somebody else deletes is created again at once. If that happens repeatedly, it is intended, and each time
// takes what belongs to the copy, such as a load balancer: so each further creation waits longer.
const (
	remakesAtOnce   = 3
	firstPause      = 5 * time.Second
	longestPause    = 5 * time.Minute
	lastedLongAgain = 5 * time.Minute // after a copy that lasted so long the pauses start over
)

// Removals counts the deletions of an object's copies in a member by somebody else, each soon after the copy was
// created.
type Removals struct {
	count int
	last  time.Time
}

// Add counts one more, at now.
func (r *Removals) Add(now time.Time) {
	if now.Sub(r.last) > r.pause()+lastedLongAgain {
		r.count = 0
	}
	r.count++
	r.last = now
}

// Left returns how long the copy must not be created yet.
func (r *Removals) Left(now time.Time) time.Duration { return r.last.Add(r.pause()).Sub(now) }

// Reason returns why not.
func (r *Removals) Reason() string {
	return fmt.Sprintf("somebody else deleted it %d times in a row: it is created again after a pause of %s", r.count, r.pause())
}

func (r *Removals) pause() time.Duration {
	if r.count <= remakesAtOnce {
		return 0
	}
	pause := firstPause
	for n := remakesAtOnce + 1; n < r.count && pause < longestPause; n++ {
		pause *= 2
	}
	return min(pause, longestPause)
}
