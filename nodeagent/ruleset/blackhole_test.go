package ruleset

import (
	"testing"
	"time"
)

// Each line is what a node sees of the Lease, and until when it drops, by its own clock; 0: not at all. Times are seconds after the beginning; the
// clock of who renews may differ.
func TestHowLongABlackholeLasts(t *testing.T) {
	type seen struct {
		holder       string
		renewed, now int
	}
	for name, c := range map[string]struct {
		seen []seen
		want int
	}{
		"nobody holds it":                            {[]seen{{"", 0, 1}}, 0},
		"renewed":                                    {[]seen{{"d", 0, 1}, {"d", 5, 6}, {"d", 10, 11}}, 41},
		"the same again is no renewal":               {[]seen{{"d", 0, 1}, {"d", 5, 6}, {"d", 5, 30}}, 36},
		"released":                                   {[]seen{{"d", 0, 1}, {"d", 5, 6}, {"", 0, 7}}, 0},
		"found at the start":                         {[]seen{{"d", 0, 10}}, 30},
		"found at the start, long over":              {[]seen{{"d", 0, 100}}, 100},
		"found at the start, from later":             {[]seen{{"d", 1000, 10}}, 40},
		"by a clock that is behind":                  {[]seen{{"d", -1000, 1}, {"d", -995, 6}}, 36},
		"by a clock that is ahead":                   {[]seen{{"d", 1000, 1}, {"d", 1005, 6}}, 36},
		"the next drill, whose beginning was missed": {[]seen{{"d", 0, 1}, {"", 0, 9}, {"e", 20, 100}}, 100},
		"another drill takes it":                     {[]seen{{"d", 0, 1}, {"e", 4, 4}}, 34},
		// The member's API was away; its store has a renewal from before that nobody has told this node of.
		"an old renewal after a broken watch":    {[]seen{{"d", 0, 1}, {"d", 5, 6}, {"d", 10, 120}}, 41},
		"a young renewal after a broken watch":   {[]seen{{"d", 0, 1}, {"d", 5, 6}, {"d", 119, 120}}, 150},
		"after a broken watch it goes on":        {[]seen{{"d", 0, 1}, {"d", 5, 6}, {"d", 119, 120}, {"d", 124, 125}}, 155},
		"a clock set back during a broken watch": {[]seen{{"d", 0, 1}, {"d", 5, 6}, {"d", -900, 30}, {"d", -895, 35}}, 65},
	} {
		t.Run(name, func(t *testing.T) {
			at := func(s int) time.Time { return time.Unix(1e9+int64(s), 0) }
			var b Blackhole
			for _, s := range c.seen {
				b.See(s.holder, at(s.renewed), at(s.now))
			}
			want := at(c.want)
			if c.want == 0 {
				want = time.Time{}
			}
			if !b.Until().Equal(want) {
				t.Errorf("until %s, want %s", b.Until(), want)
			}
		})
	}
}
