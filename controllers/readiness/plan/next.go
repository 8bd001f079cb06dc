package plan

import (
	"cmp"
	"time"
)

// Urgency is why a domain is looked at again.
type Urgency int

const (
	// None: nothing has changed that could matter.
	None Urgency = iota
	// Stale: room has changed, with a tenth to spare of what the loss needs: the numbers may be others, the verdict hardly.
	Stale
	// Changed: an object there, a policy, or what a cluster may be used for.
	Changed
	// Doubt: what changed would not fit as the last evaluation left things, or room shrank below what that needs.
	Doubt
)

const (
	// evaluateEvery is how long a domain is left alone after it was evaluated.
	evaluateEvery = 30 * time.Second
	// settles is how long a change of an object is left to show in the room that clusters report: its replicas are placed, and not counted yet.
	settles = 10 * time.Second
	// refreshEvery is the same where it is only stale.
	refreshEvery = time.Minute
	// doubts is how long a loss may be in doubt before that is said: with what then passes until it is written, less than a minute.
	doubts = 45 * time.Second
	// WriteEvery is how often a status is written at most.
	WriteEvery = time.Minute
	// evaluating and takingIn are the parts of one core that these may take, one in so many: a tenth together.
	evaluating, takingIn = 14, 35
)

// Standing is where a domain stands.
type Standing struct {
	Urgency Urgency
	// Since is when an object there first changed after the last evaluation; zero: none has.
	Since time.Time
	// Evaluated is when it was last; zero: never.
	Evaluated time.Time
	// Doubtful is since when it has been in doubt; zero: it is not.
	Doubtful time.Time
}

// Doubt notes that it is in doubt.
func (s *Standing) Doubt(now time.Time) {
	if s.Urgency = max(s.Urgency, Doubt); s.Doubtful.IsZero() {
		s.Doubtful = now
	}
}

// Doubted reports whether it has been in doubt for so long that it is to be said; where it is in doubt at all, left is how long it is until then.
func (s *Standing) Doubted(now time.Time) (is bool, left time.Duration) {
	if s.Doubtful.IsZero() {
		return false, 0
	}
	left = s.Doubtful.Add(doubts).Sub(now)
	return left <= 0, max(0, left)
}

// due is when it may be evaluated.
func (s *Standing) due() time.Time {
	at := s.Evaluated.Add(evaluateEvery)
	if s.Urgency == Stale {
		at = s.Evaluated.Add(refreshEvery)
	}
	if settled := s.Since.Add(settles); !s.Since.IsZero() && settled.After(at) {
		return settled
	}
	return at
}

// Touch notes that an object there has changed.
func (s *Standing) Touch(u Urgency, now time.Time) {
	if s.Urgency = max(s.Urgency, u); u == Doubt {
		s.Doubt(now)
	}
	if s.Since.IsZero() {
		s.Since = now
	}
}

// Next says which domain is evaluated now: of those that are due the one in doubt, never looked at, or looked at longest ago. Where none is due
// it is -1, and wait is how long none is; 0: until something changes.
func Next(all []Standing, now time.Time) (next int, wait time.Duration) {
	next = -1
	for i := range all {
		s := &all[i]
		if s.Urgency == None && !s.Evaluated.IsZero() {
			continue
		}
		if left := s.due().Sub(now); left > 0 && !s.Evaluated.IsZero() {
			if wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		if next < 0 || s.before(&all[next]) {
			next = i
		}
	}
	if next >= 0 {
		return next, 0
	}
	return -1, wait
}

func (s *Standing) before(o *Standing) bool {
	return cmp.Or(boolCompare(s.Urgency == Doubt, o.Urgency == Doubt), boolCompare(s.Evaluated.IsZero(), o.Evaluated.IsZero()), cmp.Compare(o.Urgency, s.Urgency), s.Evaluated.Compare(o.Evaluated)) < 0
}

// boolCompare has what is true first.
func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// Rest is how long nothing is evaluated after an evaluation that took so much of a core.
func Rest(took time.Duration) time.Duration { return (evaluating - 1) * took }

// Gather is how long changes come together after some were taken in, which took so much of a core.
func Gather(took time.Duration) time.Duration { return (takingIn - 1) * took }
