package shards

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestACrashLoopMovesNothing checks that a process that crashes repeatedly, each time under a new name and after living
// longer than Settle, moves shards a few times and then no more, and gets its share once it stays.
func TestACrashLoopMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b")
		f.balanced(10 * time.Second)
		tables := func() int {
			f.server.mu.Lock()
			defer f.server.mu.Unlock()
			return f.server.tables
		}
		for life := range 30 {
			before := tables()
			name := fmt.Sprint("loop-", life)
			f.start(name)
			time.Sleep(10 * time.Second)
			f.kill(name)
			time.Sleep(10 * time.Second)
			if n := tables() - before; life >= 3 && n > 0 {
				t.Errorf("life %d: the table was written %d times", life, n)
			}
		}
		f.start("c")
		t.Logf("one that stays: balanced after %s", f.balanced(15*time.Minute))
		f.endAll()
	})
}
