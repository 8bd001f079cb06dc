package fleettest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Tally counts what was injected into fleets, and how often laws were checked.
type Tally struct {
	mu                sync.Mutex
	injected, checked map[string]int
}

// NewTally makes one in which nothing is counted.
func NewTally() *Tally { return &Tally{injected: map[string]int{}, checked: map[string]int{}} }

func (t *Tally) check(law string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checked[law]++
}

func (t *Tally) inject(fault string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.injected[fault]++
}

// Add adds what another has counted.
func (t *Tally) Add(other *Tally) {
	other.mu.Lock()
	defer other.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, n := range other.injected {
		t.injected[name] += n
	}
	for name, n := range other.checked {
		t.checked[name] += n
	}
}

// String has what is frequent first.
func (t *Tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return "injected:\n" + listCounts(t.injected) + "checked:\n" + listCounts(t.checked)
}

func listCounts(counts map[string]int) string {
	var out strings.Builder
	for _, name := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(&out, "%10d × %s\n", counts[name], name)
	}
	return out.String()
}

// injection is what a command injects, without the names in it.
func injection(words []string) string {
	n := 1
	switch words[0] {
	case "member":
		return "member " + words[2]
	case "fed", "stall", "drill":
		n = 2
	case "wait", "settle", "rest", "heal", "apply", "scale":
		return ""
	case "delete":
		if len(words) > 2 {
			return "delete " + words[2]
		}
	}
	return strings.Join(words[:min(n, len(words))], " ")
}
