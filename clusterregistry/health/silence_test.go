package health

import (
	"testing"
	"time"
)

func TestSilence(t *testing.T) {
	returned := start.Add(time.Hour)
	// at gives renewals in seconds after the return; nodes are a, b, …
	at := func(seconds ...int) map[string]time.Time {
		renewed := map[string]time.Time{}
		for i, s := range seconds {
			renewed[string(rune('a'+i))] = returned.Add(time.Duration(s) * time.Second)
		}
		return renewed
	}
	type look struct {
		after   int
		renewed map[string]time.Time
		over    bool
		says    string
	}
	const back = "its nodes are back: what is said of their pods is believed in some seconds"
	for name, test := range map[string]struct {
		first map[string]time.Time
		looks []look // none: there is nothing to wait for
	}{
		"no node has a lease":          {at(), nil},
		"only the way to it was cut":   {at(-4, -9), nil},
		"one node lives, one does not": {at(-4, -300), nil},
		"its clock is ahead":           {at(300, 290), nil},
		"its clock is behind": {at(-604, -609), []look{
			{2, at(-604, -599), false, "1 of 2 nodes not heard of since it returned: a"},
			{7, at(-594, -599), false, back},
			{17, at(-584, -589), true, back},
		}},
		"the power came back": {at(-20, -25, -400), []look{
			{1, at(-20, -25, -400), false, "2 of 2 nodes not heard of since it returned: a, b"}, // c was lost before
			{5, at(4, -25, -400), false, "1 of 2 nodes not heard of since it returned: b"},
			{9, at(4, 9, -400), false, back},
			{15, at(15, 9, -400), false, back},
			{19, at(15, 19, -400), true, back},
		}},
		"a node stays away": {at(-20, -20), []look{
			{5, at(4, -20), false, "1 of 2 nodes not heard of since it returned: b"},
			{59, at(54, -20), false, "1 of 2 nodes not heard of since it returned: b"},
			{60, at(54, -20), true, "1 of 2 nodes not heard of since it returned: b"},
		}},
		"a node is taken away": {at(-20, -20), []look{
			{5, at(4), false, "1 of 2 nodes not heard of since it returned: b"},
			{15, at(14), true, "1 of 2 nodes not heard of since it returned: b"},
		}},
		"many": {at(-20, -20, -20, -20, -20), []look{{1, at(-20, -20, -20, -20, -20), false, "5 of 5 nodes not heard of since it returned: a, b, c, …"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Listen(test.first, returned)
			if (s == nil) != (len(test.looks) == 0) {
				t.Fatalf("Listen: got %v", s)
			}
			for _, l := range test.looks {
				over := s.Hear(l.renewed, returned.Add(time.Duration(l.after)*time.Second))
				if over != l.over || s.String() != l.says {
					t.Errorf("after %d s: got over=%v, %q; want %v, %q", l.after, over, s, l.over, l.says)
				}
			}
		})
	}
}
