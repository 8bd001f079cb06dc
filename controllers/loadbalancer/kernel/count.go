package kernel

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/nftables"
)

const (
	// unansweredFor is how long nothing comes of new connections to a target until it counts as one that does not take them. It is less than the second
	// after which clients send their first SYN again, so that it goes elsewhere.
	unansweredFor = 600 * time.Millisecond
	// busyFor is how long after its last new connection a target is checked as one in use: connections may still be open.
	busyFor = time.Hour
)

// watched is what is known of a backend by its counters.
type watched struct {
	last nftables.Count
	// open are the connections that were asked for, and that nothing has come of yet; doubted is since when that is so, zero if it is not.
	open    uint64
	doubted time.Time
	// asked is when the last one was.
	asked time.Time
}

// outcome is what has become of new connections since the last look.
type outcome struct {
	asked, taken, refused uint64
	// undelivered are those that it refused or did not answer; unanswered: there are some of the latter.
	undelivered int
	unanswered  bool
}

// note takes in the counters of a backend.
func (w *watched) note(now nftables.Count, protocol corev1.Protocol, at time.Time) (o outcome) {
	o.asked, o.taken, o.refused = since(w.last.Asked, now.Asked), since(w.last.Taken, now.Taken), since(w.last.Refused, now.Refused)
	w.last = now
	if o.asked > 0 {
		w.asked = at
	}
	if protocol != corev1.ProtocolTCP {
		return o
	}
	o.undelivered = int(o.refused)
	w.open += o.asked
	w.open -= min(w.open, o.taken+o.refused)
	switch {
	case w.open == 0 || o.taken > 0:
		w.doubted = time.Time{}
	case w.doubted.IsZero():
		w.doubted = at
	case at.Sub(w.doubted) >= unansweredFor:
		o.undelivered += int(w.open)
		o.unanswered = true
		w.open, w.doubted = 0, time.Time{}
	}
	return o
}

// since returns how much a counter has grown, which begins again when its backend does.
func since(before, now uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}
