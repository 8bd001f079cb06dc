package ruleset

import "time"

// BlackholeLasts is how long one renewal of the Lease makes a node drop packets to Services from outside.
const BlackholeLasts = 30 * time.Second

// watched is the longest time between two renewals with an unbroken watch.
const watched = BlackholeLasts / 2

// Blackhole decides until when a node drops packets to Services from outside, because a drill of the federation asks
// for it by a Lease (ADR 117). The zero value has seen nothing.
type Blackhole struct {
	holder         string
	renewed, heard time.Time // as the Lease says, and when that was seen
	until          time.Time // by the clock of this node; zero: not at all
}

// See takes in the Lease; holder "" means that nobody holds it. now has a monotonic clock, which alone counts from the
// second renewal on. The first one that is seen of a holder may be old, and is valid as long as the clocks of both
// agree. If the watch was broken for a while, a renewal counts from when it was made, by the time in the Lease since
// the previous one.
func (b *Blackhole) See(holder string, renewed, now time.Time) {
	switch {
	case holder == "":
		b.until = time.Time{}
	case holder != b.holder:
		b.until = now.Add(min(BlackholeLasts, max(0, BlackholeLasts-now.Sub(renewed))))
	case renewed.Equal(b.renewed):
		return
	case now.Sub(b.heard) > watched:
		b.until = earlierTime(now, b.heard.Add(renewed.Sub(b.renewed))).Add(BlackholeLasts)
	default:
		b.until = now.Add(BlackholeLasts)
	}
	b.holder, b.renewed, b.heard = holder, renewed, now
}

func earlierTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Until returns when it ends if the Lease is not renewed; the zero time: nothing is dropped.
func (b *Blackhole) Until() time.Time { return b.until }
