package split

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"federation/dnsprovider"
)

// picky is a provider that refuses names with "bad", fails at names with "away", and makes at most a number of steps at once.
type picky struct {
	made  []string
	calls int
	most  int
}

func (p *picky) Records(context.Context, string) ([]dnsprovider.RRSet, error) { return nil, nil }

func (p *picky) Apply(_ context.Context, _ string, changes dnsprovider.ChangeSet) error {
	p.calls++
	done := 0
	for start := 0; start < len(changes); start += p.most {
		some := changes[start:min(start+p.most, len(changes))]
		for _, step := range some {
			var err error
			switch {
			case strings.Contains(step.Name, "bad"):
				err = dnsprovider.Refusef("%s is refused", step.Name)
			case strings.Contains(step.Name, "away"):
				err = errors.New("timeout")
			}
			if err != nil && done > 0 {
				err = &dnsprovider.PartialError{Done: done, Of: len(changes), Err: err}
			}
			if err != nil {
				return err
			}
		}
		for _, step := range some {
			p.made = append(p.made, step.Name)
		}
		done += len(some)
	}
	return nil
}

func steps(names ...string) (changes dnsprovider.ChangeSet) {
	for _, name := range names {
		changes = append(changes, dnsprovider.Step{Name: name})
	}
	slices.SortFunc(changes, byName)
	return changes
}

func many(n int, more ...string) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("n%03d.", i))
	}
	return append(names, more...)
}

func TestApply(t *testing.T) {
	for name, c := range map[string]struct {
		names   []string
		most    int // refusals
		batch   int
		refused []string
		made    int
		left    int
		calls   int // at most
		fails   bool
	}{
		"all are taken":                   {many(100), 9, 1000, nil, 100, 0, 1, false},
		"nothing to do":                   {nil, 9, 1000, nil, 0, 0, 1, false},
		"one of a hundred":                {many(99, "n050bad."), 9, 1000, []string{"n050bad."}, 99, 0, 16, false},
		"one, and it is alone":            {[]string{"bad."}, 9, 1000, []string{"bad."}, 0, 0, 1, false},
		"a name and its mark go together": {many(20, "n007bad.", "_federation.n007bad."), 9, 1000, []string{"n007bad."}, 20, 0, 16, false},
		"a mark is refused":               {many(20, "nbad.", "_federation.nbad.", "other.", "_federation.other."), 9, 1000, []string{"nbad."}, 22, 0, 16, false},
		"in batches":                      {many(99, "n050bad."), 9, 10, []string{"n050bad."}, 99, 0, 16, false},
		"more than may be":                {many(50, "bad1.", "bad2.", "bad3.", "bad4."), 2, 1000, []string{"bad1.", "bad2."}, 0, 52, 20, false},
		"it is away":                      {many(99, "n010bad.", "n050away."), 9, 1000, []string{"n010bad."}, 0, 0, 20, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &picky{most: c.batch}
			result, err := Apply(context.Background(), p, "example.", steps(c.names...), c.most)
			var refused []string
			for name, why := range result.Refused {
				if refused = append(refused, name); why.Err == nil || len(why.Changes) == 0 {
					t.Errorf("%s: %+v", name, why)
				}
			}
			slices.Sort(refused)
			if (err != nil) != c.fails || !c.fails && (!slices.Equal(refused, c.refused) || len(p.made)+len(result.Left) != c.made+c.left) || p.calls > c.calls {
				t.Errorf("error %v, refused %q, %d made, %d left, %d calls", err, refused, len(p.made), len(result.Left), p.calls)
			}
			slices.Sort(p.made)
			if len(slices.Compact(slices.Clone(p.made))) != len(p.made) {
				t.Errorf("made twice: %q", p.made)
			}
		})
	}
}
