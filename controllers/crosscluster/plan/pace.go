package plan

import (
	"maps"
	"time"
)

// Pace bounds how often changes of one thing are acted upon, by its key. It is used by one goroutine at a time.
type Pace struct {
	// Settle is how long what comes of one change is waited for, so that it is acted upon at once.
	Settle time.Duration
	// Every is how often changes of a key are acted upon in the long run, and Burst, at least 1, how often before it is waited for.
	Every time.Duration
	Burst int

	due   map[string]turns
	swept time.Time
}

// turns are those of a key: the last that was given, and when all that it used of its burst is given back.
type turns struct{ last, refilled time.Time }

// Delay returns how long a change that happens now is to wait. It goes along with one that waits already.
func (p *Pace) Delay(key string, now time.Time) time.Duration {
	p.sweep(now)
	t := p.due[key]
	if t.last.After(now) {
		return t.last.Sub(now)
	}
	t.last = now.Add(p.Settle)
	if turn := t.refilled.Add(-time.Duration(p.Burst-1) * p.Every); turn.After(t.last) {
		t.last = turn
	}
	if t.refilled.Before(t.last) {
		t.refilled = t.last
	}
	t.refilled = t.refilled.Add(p.Every)
	if p.due == nil {
		p.due = map[string]turns{}
	}
	p.due[key] = t
	return t.last.Sub(now)
}

// sweep forgets, now and then, keys that would have the whole burst.
func (p *Pace) sweep(now time.Time) {
	if now.Sub(p.swept) > p.Every {
		p.swept = now
		maps.DeleteFunc(p.due, func(_ string, t turns) bool { return !t.refilled.After(now) })
	}
}
