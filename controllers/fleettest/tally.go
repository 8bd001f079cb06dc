package fleettest

import "sync"

// tally counts what was injected into a fleet, and how often its laws were checked.
type tally struct {
	mu       sync.Mutex
	injected map[string]int
	checked  map[string]int
}

func newTally() *tally { return &tally{injected: map[string]int{}, checked: map[string]int{}} }

func (t *tally) check(law string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checked[law]++
}

func (t *tally) inject(fault string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.injected[fault]++
}
