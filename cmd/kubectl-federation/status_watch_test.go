package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	explainplan "federation/controllers/explain/plan"
)

// TestWatchShowsWhatHasChanged, and only that where it is no terminal; a look that fails does not end it, an interruption does.
func TestWatchShowsWhatHasChanged(t *testing.T) {
	looks := []*explainplan.Status{{Name: "alpha"}, {Name: "alpha"}, nil, nil, {Name: "beta"}, {Name: "beta"}}
	ctx, interrupt := context.WithCancel(t.Context())
	n := 0
	look := func(context.Context) (*explainplan.Status, error) {
		if n == len(looks) {
			interrupt()
			return nil, ctx.Err()
		}
		s := looks[n]
		n++
		if s == nil {
			return nil, errors.New("away")
		}
		return s, nil
	}
	var out bytes.Buffer
	if err := (&statusCommand{}).keepShowing(ctx, &out, look, time.Microsecond); err != nil {
		t.Fatal(err)
	}
	for part, want := range map[string]int{"alpha": 1, "error: away": 1, "beta": 1, clearScreen: 0} {
		if got := strings.Count(out.String(), part); got != want {
			t.Errorf("%q is %d times in what was shown, want %d:\n%s", part, got, want, out.String())
		}
	}
}
