package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// report counts requests by what was going on when they began.
type report struct {
	mu     sync.Mutex
	phases []*phase
}

type phase struct {
	name                  string
	requests, failed      int
	by                    map[string]int // answered, by cluster
	firstFailed, lastFail time.Time
}

func (r *report) begin(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phases = append(r.phases, &phase{name: name, by: map[string]int{}})
}

func (r *report) current() *phase {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.phases) == 0 {
		return nil
	}
	return r.phases[len(r.phases)-1]
}

// add counts a request that began at a time, and was answered by a cluster or not at all.
func (r *report) add(p *phase, begun time.Time, by string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.requests++
	if err == nil {
		p.by[by]++
		return
	}
	p.failed++
	if p.firstFailed.IsZero() || begun.Before(p.firstFailed) {
		p.firstFailed = begun
	}
	if begun.After(p.lastFail) {
		p.lastFail = begun
	}
}

// String is the table: a line for each phase, a column for each cluster that answered in any.
func (r *report) String() string {
	clusters := map[string]bool{}
	for _, p := range r.phases {
		for name := range p.by {
			clusters[name] = true
		}
	}
	names := slices.Sorted(maps.Keys(clusters))
	var b strings.Builder
	fmt.Fprintf(&b, "  %-34s %8s", "", "requests")
	for _, name := range names {
		fmt.Fprintf(&b, " %8s", name)
	}
	fmt.Fprintf(&b, " %8s\n", "failed")
	for _, p := range r.phases {
		fmt.Fprintf(&b, "  %-34s %8d", p.name, p.requests)
		for _, name := range names {
			fmt.Fprintf(&b, " %8d", p.by[name])
		}
		fmt.Fprintf(&b, " %8d", p.failed)
		if p.failed > 0 {
			fmt.Fprintf(&b, ", within %.1f s", p.lastFail.Sub(p.firstFailed).Seconds())
		}
		b.WriteByte('\n')
	}
	return b.String()
}
