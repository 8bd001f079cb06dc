package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A node renews its Lease every 10 s (nodeLeaseDurationSeconds / 4), and Kubernetes takes it for lost after 40 s.
const (
	// freshRenewal is the age of a renewal up to which a node counts as heard of.
	freshRenewal = 15 * time.Second
	// lostRenewal before the newest renewal a node was lost already.
	lostRenewal = 40 * time.Second
	// settling is how long after its first renewal a node's pods are not believed: a kubelet that starts renews its Lease
	// some seconds before it says that its pods do not run.
	settling = 10 * time.Second
	// silencePatience is how long is waited at most. By then the cluster itself has said what it takes for lost.
	silencePatience = time.Minute
)

// Silence is what is known of the nodes of a cluster that returned, while they are waited for. What its API says of their
// pods may be from before: a cluster that lost its power has them as ready on its disk.
type Silence struct {
	since   time.Time
	renewed map[string]time.Time // when the cluster returned, of each node that is waited for
	heard   map[string]time.Time // when a later renewal was seen
}

// Listen begins to wait for the nodes of a cluster that returned now, if none of them was heard of lately. renewed are the
// renewals of their Leases, by node. nil: there is nothing to wait for. Where the cluster's clock is behind, its nodes count
// as silent until they renew; where it is ahead, never.
func Listen(renewed map[string]time.Time, now time.Time) *Silence {
	var newest time.Time
	for _, t := range renewed {
		if t.After(newest) {
			newest = t
		}
	}
	if len(renewed) == 0 || now.Sub(newest) <= freshRenewal {
		return nil
	}
	s := &Silence{since: now, renewed: map[string]time.Time{}, heard: map[string]time.Time{}}
	for node, t := range renewed {
		if newest.Sub(t) < lostRenewal {
			s.renewed[node] = t
		}
	}
	return s
}

// Hear takes in the renewals as they are now, and tells whether the silence is over.
func (s *Silence) Hear(renewed map[string]time.Time, now time.Time) (over bool) {
	over = true
	for node, before := range s.renewed {
		t, is := renewed[node]
		if _, known := s.heard[node]; !known && t.After(before) {
			s.heard[node] = now
		}
		at, heard := s.heard[node]
		if is && (!heard || now.Sub(at) < settling) { // a node that was taken away is not waited for
			over = false
		}
	}
	return over || now.Sub(s.since) >= silencePatience
}

// String says, for people, who is waited for: the same at each look where nothing has changed.
func (s *Silence) String() string {
	silent := slices.Sorted(maps.Keys(s.renewed))
	silent = slices.DeleteFunc(silent, func(node string) bool { _, heard := s.heard[node]; return heard })
	if len(silent) == 0 {
		return "its nodes are back: what is said of their pods is believed in some seconds"
	}
	n := len(silent)
	if n > 3 {
		silent = append(silent[:3], "…")
	}
	return fmt.Sprintf("%d of %d nodes not heard of since it returned: %s", n, len(s.renewed), strings.Join(silent, ", "))
}
