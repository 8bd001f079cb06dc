package ruleset

import "time"

// BlackholeLasts is for how long one renewal of the Lease has a node drop what comes to Services from outside.
const BlackholeLasts = 30 * time.Second

// watched is the longest time between two renewals that a watch which is not broken may tell of.
const watched = BlackholeLasts / 2

// Blackhole is until when a node drops what comes to Services from outside, because a drill of the federation asks for it by a Lease (ADR 117). The
// zero value has seen nothing.
type Blackhole struct {
	holder         string
	renewed, heard time.Time // as the Lease says, and when that was seen
	until          time.Time // by the clock of this node; zero: not at all
}

// See takes the Lease in as it is now; holder "": nobody holds it. now has a monotonic clock, which alone counts from the second renewal on; the first
// one that is seen of a holder may be old, and is believed as far as the clocks of both agree that it lasts. Where the watch was broken for a while,
// a renewal counts from when it was made, by what the Lease says of the time since the one before.
func (b *Blackhole) See(holder string, renewed, now time.Time) {
	switch {
	case holder == "":
		b.until = time.Time{}
	case holder != b.holder:
		b.until = now.Add(min(BlackholeLasts, max(0, BlackholeLasts-now.Sub(renewed))))
	case renewed.Equal(b.renewed):
		return
	case now.Sub(b.heard) > watched:
		b.until = earlier(now, b.heard.Add(renewed.Sub(b.renewed))).Add(BlackholeLasts)
	default:
		b.until = now.Add(BlackholeLasts)
	}
	b.holder, b.renewed, b.heard = holder, renewed, now
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Until is when it ends if the Lease is not renewed; the zero time: nothing is dropped.
func (b *Blackhole) Until() time.Time { return b.until }
