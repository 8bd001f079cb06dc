package plan

import (
	"cmp"
	"time"
)

// Urgency is why a domain is evaluated again.
type Urgency int

const (
	// None: no change matters.
	None Urgency = iota
	// Stale: room has changed, and what the loss needs is still there. The numbers may differ, the verdict
	// hardly.
	Stale
	// Changed: an object there, a policy, or a cluster's usability has changed.
	Changed
	// Doubt: a change does not fit as the last evaluation left the clusters, or room shrank below what that needs.
	Doubt
)

const (
	// evaluateEvery is the minimum time between two evaluations of a domain.
	evaluateEvery = 30 * time.Second
	// settles is how long a change takes to show in the room that clusters report: replicas are placed before they are
	// counted.
	settles = 10 * time.Second
	// refreshEvery is the same for a domain that is only stale.
	refreshEvery = time.Minute
	// doubts is how long a loss may be in doubt before the status reports it. With the delay of the write it is less
	// than a minute.
	doubts = 45 * time.Second
	// WriteEvery is the minimum time between two writes of a status whose verdict is still that of an evaluation.
	WriteEvery = time.Minute
	// gathers is how long changes wait at most until they are taken in: what they put in doubt is reported within a minute.
	gathers = 8 * time.Second
	// evaluating, refitting and takingIn are the inverse shares of a core for evaluations, refits and intake at most. With what else there is to do, they
	// come to a tenth at 1,000 clusters.
	evaluating, refitting, takingIn = 22, 50, 35
)

// Standing is the evaluation state of a domain.
type Standing struct {
	Urgency Urgency
	// Since is when an object there first changed after the last evaluation; zero if none has.
	Since time.Time
	// Evaluated is the time of the last evaluation; zero means never. Appeared is since when there is the domain, if it was never evaluated.
	Evaluated, Appeared time.Time
	// Doubtful is since when it has been in doubt; zero if it is not.
	Doubtful time.Time
	// OnlyRoom: it is in doubt for nothing but room that shrank.
	OnlyRoom bool
}

// DoubtRoom marks the domain as in doubt because room shrank.
func (s *Standing) DoubtRoom(now time.Time) {
	s.OnlyRoom = s.OnlyRoom || s.Urgency != Doubt
	s.doubt(now)
}

func (s *Standing) doubt(now time.Time) {
	if s.Urgency = max(s.Urgency, Doubt); s.Doubtful.IsZero() {
		s.Doubtful = now
	}
}

// Settle ends a doubt about room without an evaluation: that comes in turn.
func (s *Standing) Settle() { s.Urgency, s.Doubtful, s.OnlyRoom = Changed, time.Time{}, false }

// Doubted reports whether it has been in doubt for so long that the status must report it. If it is in doubt, left is
// how long until then.
func (s *Standing) Doubted(now time.Time) (is bool, left time.Duration) {
	if s.Doubtful.IsZero() {
		return false, 0
	}
	left = s.Doubtful.Add(doubts).Sub(now)
	return left <= 0, max(0, left)
}

// dueTime returns when it may be evaluated.
func (s *Standing) dueTime() time.Time {
	at := s.Evaluated.Add(evaluateEvery)
	if s.Urgency == Stale {
		at = s.Evaluated.Add(refreshEvery)
	}
	if settled := s.Since.Add(settles); !s.Since.IsZero() && settled.After(at) {
		return settled
	}
	return at
}

// Touch records that an object there has changed.
func (s *Standing) Touch(u Urgency, now time.Time) {
	if s.Urgency = max(s.Urgency, u); u == Doubt {
		s.doubt(now)
		s.OnlyRoom = false
	}
	if s.Since.IsZero() {
		s.Since = now
	}
}

// Next returns the domain to evaluate now: of those that are due, one in doubt, one never evaluated, or the one
// evaluated longest ago; each third turn the one that has waited longest, whatever others have. Else who keeps a domain in doubt, or has new ones appear all the
// time, would keep all others from being evaluated. If none is due, next is -1 and wait is how long; 0 means until something changes.
func Next(all []Standing, now time.Time, turn int) (next int, wait time.Duration) {
	next = -1
	goesFirst := (*Standing).before
	if turn%3 == 2 {
		goesFirst = (*Standing).waitsLonger
	}
	for i := range all {
		s := &all[i]
		if s.Urgency == None && !s.Evaluated.IsZero() {
			continue
		}
		if left := s.dueTime().Sub(now); left > 0 && !s.Evaluated.IsZero() {
			if wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		if next < 0 || goesFirst(s, &all[next]) {
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

func (s *Standing) waitsLonger(o *Standing) bool { return s.waitsSince().Before(o.waitsSince()) }

func (s *Standing) waitsSince() time.Time {
	if s.Evaluated.IsZero() {
		return s.Appeared
	}
	return s.Evaluated
}

// boolCompare sorts true first.
func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// Rest returns the pause after an evaluation that took so much CPU time.
func Rest(took time.Duration) time.Duration { return (evaluating - 1) * took }

// RestRefit returns the pause after a refit that took so much CPU time.
func RestRefit(took time.Duration) time.Duration { return (refitting - 1) * took }

// Gather returns the pause after an intake that took so much CPU time.
func Gather(took time.Duration) time.Duration { return min((takingIn-1)*took, gathers) }
