package shards

import (
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/cache"
)

// sightings remembers when each replica's Lease was last seen to change, by our own clock: clocks of different machines
// are never compared.
type sightings struct {
	timing  Timing
	seen    map[string]sighting
	live    []string
	since   time.Time   // since live is what it is
	changes []time.Time // changes of live within the last calm
}

// calm is how long changes of the set of live replicas are remembered.
const calm = 10 * time.Minute

type sighting struct {
	version string
	at      time.Time
}

func newSightings(t Timing) sightings { return sightings{timing: t, seen: map[string]sighting{}} }

// sight is what can be seen of the replicas now.
type sight struct {
	live    []string // sorted
	dead    []*coordinationv1.Lease
	settled bool
	again   time.Duration // until that changes without an event
}

// poll reads the cache. self is alive, whatever the cache says.
func (s *sightings) poll(store cache.Store, self string, now time.Time) sight {
	out := sight{live: []string{self}, again: s.timing.Duration}
	there := map[string]bool{}
	for _, obj := range store.List() {
		lease := obj.(*coordinationv1.Lease)
		if lease.Labels[label] != "replica" || lease.Name == self {
			continue
		}
		there[lease.Name] = true
		before, known := s.seen[lease.Name]
		if !known || before.version != lease.ResourceVersion {
			before = sighting{lease.ResourceVersion, now}
			s.seen[lease.Name] = before
		}
		if left := before.at.Add(s.leaseDuration(lease)).Sub(now); left > 0 {
			out.live, out.again = append(out.live, lease.Name), min(out.again, left)
		} else {
			out.dead = append(out.dead, lease)
		}
	}
	for name := range s.seen {
		if !there[name] {
			delete(s.seen, name)
		}
	}
	slices.Sort(out.live)
	if !slices.Equal(out.live, s.live) {
		if s.live != nil {
			s.changes = append(s.changes, now)
		}
		s.live, s.since = out.live, now
	}
	if left := s.since.Add(s.holdOff(now)).Sub(now); left > 0 {
		out.again = min(out.again, left)
	} else {
		out.settled = true
	}
	return out
}

// holdOff returns how long the set of live replicas must be unchanged before shards move from one to another. It
// doubles with each change, so that a replica in a crash loop soon moves nothing. The shards of a dead replica are
// taken at once regardless.
func (s *sightings) holdOff(now time.Time) time.Duration {
	s.changes = slices.DeleteFunc(s.changes, func(at time.Time) bool { return now.Sub(at) >= calm })
	wait := s.timing.Settle
	for range len(s.changes) - 1 {
		wait = min(2*wait, calm)
	}
	return wait
}

// leaseDuration returns the duration in the Lease, whose owner may be of another version.
func (s *sightings) leaseDuration(lease *coordinationv1.Lease) time.Duration {
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		return max(time.Duration(*seconds)*time.Second, s.timing.Duration)
	}
	return s.timing.Duration
}

// isUnchanged reports whether a Lease is as it was at the last pass.
func (s *sightings) isUnchanged(lease *coordinationv1.Lease) bool {
	return s.seen[lease.Name].version == lease.ResourceVersion
}
