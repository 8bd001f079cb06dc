package scheduler

import (
	"fmt"
	"strings"
	"testing"

	"federation/apiserver/apis/federation/v1beta1"
)

// A placement drops what it can do without before the API would reject it.
func TestPlacementsOfManyClustersFit(t *testing.T) {
	of := func(clusters, length int) map[string]int64 {
		out := map[string]int64{}
		for i := range clusters {
			out[fmt.Sprintf("%04d%s", i, strings.Repeat("x", length-4))] = 12345
		}
		return out
	}
	for name, c := range map[string]struct {
		p        v1beta1.Placement
		overflow int
		notes    int
		last     string
	}{
		"few":                {v1beta1.Placement{Clusters: of(10, 63), Overflow: of(10, 63), Notes: []string{"a"}}, 10, 1, "a"},
		"a thousand, short":  {v1beta1.Placement{Clusters: of(1000, 30), Home: of(1000, 30), Overflow: of(1000, 30)}, 1000, 0, ""},
		"a thousand, long":   {v1beta1.Placement{Clusters: of(1000, 63), Home: of(1000, 63), Overflow: of(1000, 63), Notes: []string{"a"}}, 0, 2, tooLarge},
		"notes on each":      {v1beta1.Placement{Clusters: of(10, 63), Notes: make([]string, 1000)}, 0, 11, "and 990 more"},
		"a thousand, no one": {v1beta1.Placement{Clusters: of(1000, 63), Home: of(1000, 63)}, 0, 0, ""},
	} {
		p := c.p
		trimToFit(&p)
		last := ""
		if len(p.Notes) > 0 {
			last = p.Notes[len(p.Notes)-1]
		}
		if len(p.Overflow) != c.overflow || len(p.Notes) != c.notes || last != c.last || len(p.Clusters) != len(c.p.Clusters) || len(p.Home) != len(c.p.Home) {
			t.Errorf("%s: overflow of %d, %d notes, the last %q", name, len(p.Overflow), len(p.Notes), last)
		}
		if n := len(p.String()); n > 200<<10 {
			t.Errorf("%s: %d bytes", name, n)
		}
		again := p
		if trimToFit(&again); !equalPlacements(&p, &again) && c.notes <= maxNotes {
			t.Errorf("%s: it is another one the second time", name)
		}
	}
}
