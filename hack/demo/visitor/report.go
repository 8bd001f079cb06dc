package main

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// report counts requests by what was going on when they began.
type report struct {
	mu     sync.Mutex
	phases []*phase
}

type phase struct {
	name             string
	begun            time.Time
	requests, failed int
	by               map[string]int // answered, by cluster
	why              map[string]int // failed, by reason
	outcomes         []outcome
}

// outcome is that of a request that began at a time.
type outcome struct {
	begun  time.Time
	failed bool
}

// outage returns when the first and the last request that failed began, and the longest time in which none that began succeeded.
func (p *phase) outage() (first, last time.Time, longest time.Duration) {
	slices.SortFunc(p.outcomes, func(a, b outcome) int { return a.begun.Compare(b.begun) })
	var since time.Time
	for _, o := range p.outcomes {
		if !since.IsZero() {
			longest = max(longest, o.begun.Sub(since))
		}
		switch {
		case !o.failed:
			since = time.Time{}
		case since.IsZero():
			since = o.begun
		}
		if o.failed {
			if last = o.begun; first.IsZero() {
				first = o.begun
			}
		}
	}
	return first, last, longest
}

func (r *report) begin(name string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phases = append(r.phases, &phase{name: name, begun: now, by: map[string]int{}, why: map[string]int{}})
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
	p.outcomes = append(p.outcomes, outcome{begun, err != nil})
	if err == nil {
		p.by[by]++
		return
	}
	p.failed++
	p.why[reason(err)]++
}

// reason is an error in a few words, which are the same each time that the cause is the same, with the address.
func reason(err error) string {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Addr != nil {
		return dial.Addr.String() + ": " + cause(err)
	}
	return cause(err)
}

func cause(err error) string {
	var errno syscall.Errno
	var network net.Error
	switch {
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &network) && network.Timeout():
		return "no answer in time"
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
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
			first, last, longest := p.outage()
			fmt.Fprintf(&b, ", begun %.1f to %.1f s after that, none answered for %.1f s", first.Sub(p.begun).Seconds(), last.Sub(p.begun).Seconds(), longest.Seconds())
		}
		b.WriteByte('\n')
		for _, why := range slices.Sorted(maps.Keys(p.why)) {
			fmt.Fprintf(&b, "  %-34s %8d\n", "  "+why, p.why[why])
		}
	}
	return b.String()
}
