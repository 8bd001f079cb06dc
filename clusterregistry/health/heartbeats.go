package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A node renews its Lease every 10 s (nodeLeaseDurationSeconds / 4). Kubernetes takes it for lost after 50 s (40 s before
// 1.32), counted from when kube-controller-manager first sees it: up to 75 s after the API is back, for after a loss of
// power that one first waits 15 s for the Lease of its own that it left behind.
const (
	// freshRenewal is the age of a renewal up to which a node counts as heard of.
	freshRenewal = 15 * time.Second
	// lostRenewal before the newest renewal a node was lost already.
	lostRenewal = 50 * time.Second
	// settling is how long after its first renewal a node's pods are not believed: a kubelet that starts renews its Lease
	// some seconds before it says that its pods do not run.
	settling = 10 * time.Second
	// silencePatience is how long is waited at most. By then the cluster itself has said what it takes for lost.
	silencePatience = 90 * time.Second
)

// HeartbeatTracker is what is known of the nodes of a cluster that returned, while they are waited for. What its API says of their
// pods may be from before: a cluster that lost its power has them as ready on its disk.
type HeartbeatTracker struct {
	since   time.Time
	again   bool
	renewed map[string]time.Time // at the first look, of each node that is waited for; nil: there was none yet
	heard   map[string]time.Time // when a later renewal was seen
}

// NewHeartbeatTracker begins to wait for the nodes of a cluster that returned at since. again: they were waited for already, and what was
// heard meanwhile is forgotten. Then a fresh renewal may be that of a node that came back, and all nodes are waited for.
func NewHeartbeatTracker(since time.Time, again bool) *HeartbeatTracker {
	return &HeartbeatTracker{since: since, again: again, heard: map[string]time.Time{}}
}

// Observe takes in the renewals of the nodes' Leases as they are now, by node, nil where they could not be read. It tells
// whether nobody is waited for any more: at the first renewals already if one is fresh, for then the nodes lived all the
// time. Where the cluster's clock is behind, its nodes count as stale until they renew; where it is ahead, never.
func (s *HeartbeatTracker) Observe(renewed map[string]time.Time, now time.Time) (over bool) {
	if now.Sub(s.since) >= silencePatience {
		return true
	}
	if renewed == nil {
		return false
	}
	if s.renewed == nil {
		s.renewed = s.stale(renewed)
	}
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
	return over
}

// stale are those of the first renewals whose nodes are waited for.
func (s *HeartbeatTracker) stale(renewed map[string]time.Time) map[string]time.Time {
	var newest time.Time
	for _, t := range renewed {
		if t.After(newest) {
			newest = t
		}
	}
	waited := map[string]time.Time{}
	for node, t := range renewed {
		if s.again || s.since.Sub(newest) > freshRenewal && newest.Sub(t) < lostRenewal {
			waited[node] = t
		}
	}
	return waited
}

// String says, for people, who is waited for: the same at each look where nothing has changed.
func (s *HeartbeatTracker) String() string {
	if s.renewed == nil {
		return "the Leases of its nodes cannot be read yet"
	}
	silent := slices.Sorted(maps.Keys(s.renewed))
	silent = slices.DeleteFunc(silent, func(node string) bool { _, heard := s.heard[node]; return heard })
	if len(silent) == 0 {
		return "its nodes renew their Leases again: the status of their pods counts in some seconds"
	}
	n := len(silent)
	if n > 3 {
		silent = append(silent[:3], "…")
	}
	return fmt.Sprintf("%d of %d nodes have not renewed their Leases since it returned: %s", n, len(s.renewed), strings.Join(silent, ", "))
}
