package clusterregistry

import (
	"fmt"
	"sync"
	"time"
)

// A member that goes over its limits is left alone: for firstPenalty, and twice as long each time that it does so again
// within lastPenalty of the end of the one before.
const (
	firstPenalty = time.Minute
	lastPenalty  = time.Hour
)

// penalty reports whether a member is left alone. The zero value is that of a member which never misbehaved.
type penalty struct {
	mu     sync.Mutex
	until  time.Time
	length time.Duration
	reason string
}

// impose begins a penalty, unless one stands.
func (p *penalty) impose(reason string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case now.Before(p.until):
		return
	case now.Before(p.until.Add(lastPenalty)):
		p.length = min(2*p.length, lastPenalty)
	default:
		p.length = firstPenalty
	}
	p.until = now.Add(p.length)
	p.reason = fmt.Sprintf("%s; it is left alone until %s", reason, p.until.UTC().Format(time.RFC3339))
}

// reasonNow returns why the member is left alone now; "": it is not.
func (p *penalty) reasonNow(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Before(p.until) {
		return p.reason
	}
	return ""
}

// exceedsLimits is called, from any goroutine, when the member goes over a limit.
func (k *keeper) exceedsLimits(reason string) {
	k.penalty.impose(reason, time.Now())
	k.checkNow()
}
