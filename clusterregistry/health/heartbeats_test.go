package health

import (
	"testing"
	"time"
)

// hearing is one look at the Leases of nodes.
type hearing struct {
	after   int // seconds after the return
	renewed map[string]time.Time
	over    bool
	says    string
}

// at gives renewals in seconds after the return, start; nodes are a, b, …
func at(seconds ...int) map[string]time.Time {
	renewed := map[string]time.Time{}
	for i, s := range seconds {
		renewed[string(rune('a'+i))] = start.Add(time.Duration(s) * time.Second)
	}
	return renewed
}

const (
	unknown = "the Leases of its nodes cannot be read yet"
	back    = "its nodes renew their Leases again: the status of their pods counts in some seconds"
	noA     = "1 of 2 nodes have not renewed their Leases since it returned: a"
	noB     = "1 of 2 nodes have not renewed their Leases since it returned: b"
	neither = "2 of 2 nodes have not renewed their Leases since it returned: a, b"
)

func TestHeartbeatTracker(t *testing.T) {
	for name, hearings := range map[string][]hearing{
		"no node has a lease":          {{0, at(), true, back}},
		"only the way to it was cut":   {{0, at(-4, -9), true, back}},
		"one node lives, one does not": {{0, at(-4, -300), true, back}},
		"its clock is ahead":           {{0, at(300, 290), true, back}},
		"its clock is behind": {
			{0, at(-604, -609), false, neither},
			{2, at(-604, -599), false, noA}, {7, at(-594, -599), false, back}, {17, at(-584, -589), true, back},
		},
		"the power came back": { // c was lost before
			{0, at(-20, -25, -400), false, neither}, {1, at(-20, -25, -400), false, neither},
			{5, at(4, -25, -400), false, noB}, {9, at(4, 9, -400), false, back}, {15, at(15, 9, -400), false, back}, {19, at(15, 19, -400), true, back},
		},
		"a node stays away": {
			{0, at(-20, -20), false, neither},
			{5, at(4, -20), false, noB}, {89, at(84, -20), false, noB}, {90, at(84, -20), true, noB},
		},
		"a node is taken away":             {{0, at(-20, -20), false, neither}, {5, at(4), false, noB}, {15, at(14), true, noB}},
		"many":                             {{0, at(-20, -20, -20, -20, -20), false, "5 of 5 nodes have not renewed their Leases since it returned: a, b, c, …"}},
		"the Leases can't be read at once": {{0, nil, false, unknown}, {3, at(-20, -25), false, neither}, {5, nil, false, neither}, {9, at(4, -25), false, noB}},
		"the Leases can't be read":         {{0, nil, false, unknown}, {89, nil, false, unknown}, {90, nil, true, unknown}},
	} {
		t.Run(name, func(t *testing.T) { listen(t, NewHeartbeatTracker(start, false), hearings) })
	}
}

// TestHeartbeatTrackerGoesOn: nobody knows any more which renewals were before the return.
func TestHeartbeatTrackerGoesOn(t *testing.T) {
	listen(t, NewHeartbeatTracker(start, true), []hearing{
		{30, at(24, -600), false, neither}, {34, at(34, -600), false, noB}, {89, at(84, -600), false, noB}, {90, at(84, -600), true, noB},
	})
}

func listen(t *testing.T, s *HeartbeatTracker, hearings []hearing) {
	t.Helper()
	for _, h := range hearings {
		over := s.Observe(h.renewed, start.Add(time.Duration(h.after)*time.Second))
		if over != h.over || s.String() != h.says {
			t.Errorf("after %d s: got over=%v, %q; want %v, %q", h.after, over, s, h.over, h.says)
		}
	}
}
