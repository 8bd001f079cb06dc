package contain

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		Keep(t.Context(), "a test", func() {
			if calls++; calls < 3 {
				panic("again")
			}
		})
		if calls != 3 {
			t.Errorf("called %d times, want 3: again after each panic, and no more after it returned", calls)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		Keep(ended, "a test", func() { calls++; panic("at the end") })
		if calls != 4 {
			t.Errorf("called %d times after the end, want once", calls-3)
		}
	})
}
