package plan

import (
	"fmt"
	"time"
)

// A copy that somebody else deletes is created again at once. Where that happens again and again, somebody means it, and each time takes
// what belongs to it, such as a load balancer: then ever longer pauses come before the next one.
const (
	remakesAtOnce   = 3
	firstPause      = 5 * time.Second
	longestPause    = 5 * time.Minute
	lastedLongAgain = 5 * time.Minute // a copy that lasted for so long begins from none
)

// Removals are the deletions of an object's copies in a member by somebody else, each soon after the copy was created.
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

// Left is how long the copy is not to be created yet.
func (r *Removals) Left(now time.Time) time.Duration { return r.last.Add(r.pause()).Sub(now) }

// Reason says why it is not.
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
