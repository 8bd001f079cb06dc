package fleettest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"federation/controllers/fleettest/memapi"
)

// maxProcesses is how many processes run at most.
const maxProcesses = 9

// uplinks are those of all processes.
type uplinks [maxProcesses]*uplink

// uplink is what lies between a process and the federation's own API. The process that is started in place of one that died
// has the same.
type uplink struct {
	fleet *Fleet

	mu      sync.Mutex
	clients []*memapi.Client // of the process that runs now
	apiFaults
	isSick, isDeaf atomic.Bool    // what apiFaults says
	released       chan struct{}  // closed when a stall ends
	queue          []waiting      // what came during it
	asked          map[string]int // how often each request was made, by verb and object
}

// apiFaults are what is wrong with the federation's API as one process sees it.
type apiFaults struct {
	// stalled is until when nothing passes.
	stalled time.Time
	// fail and late are percentages: of requests that are answered with an error and not carried out, and of writes that are
	// carried out although their answer is an error.
	fail, late int
	// silent: watches deliver nothing. stale: in addition, reads that allow it are answered as of the version asOf.
	silent, stale bool
	asOf          uint64
	// salt makes other requests fail each time.
	salt int
}

func newUplink(f *Fleet) *uplink {
	return &uplink{fleet: f, released: make(chan struct{}), asked: map[string]int{}}
}

// client makes a client of the process. The clients of the process before it are forgotten.
func (l *uplink) client(api *memapi.API, user string, wire memapi.Wire, first bool) *memapi.Client {
	c := api.Client(user, wire)
	l.mu.Lock()
	defer l.mu.Unlock()
	if first {
		l.clients = nil
	}
	l.clients = append(l.clients, c)
	l.apply()
	return c
}

// hangUp ends a client.
func (l *uplink) hangUp(c *memapi.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Break()
	l.clients = slices.DeleteFunc(l.clients, func(other *memapi.Client) bool { return other == c })
}

// disconnect ends the watches of all clients.
func (l *uplink) disconnect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.clients {
		c.Break()
	}
}

// change changes what is wrong.
func (l *uplink) change(change func(*apiFaults)) {
	l.mu.Lock()
	change(&l.apiFaults)
	l.isSick.Store(l.sick())
	l.isDeaf.Store(l.deliversNothing())
	l.salt++
	l.apply()
	l.mu.Unlock()
	l.release()
}

// apply brings the clients to what is wrong now. It is called with the uplink locked.
func (l *uplink) apply() {
	for _, c := range l.clients {
		c.Silence(!l.stalled.IsZero() || l.silent || l.stale)
		c.Lag(0)
		if l.stale {
			c.Lag(l.asOf)
		}
	}
	if l.stalled.IsZero() {
		close(l.released)
		l.released = make(chan struct{})
	}
}

// stall has nothing pass for a while.
func (l *uplink) stall(d time.Duration) {
	end := time.Now().Add(d)
	l.change(func(f *apiFaults) { f.stalled = end })
	l.mu.Lock()
	released := l.released
	l.mu.Unlock()
	l.fleet.world.Go(func() {
		select {
		case <-released:
		case <-time.After(d):
			l.change(func(f *apiFaults) {
				if f.stalled.Equal(end) { // not one that came later
					f.stalled = time.Time{}
				}
			})
		}
	})
}

// deliversNothing reports whether who has these faults hears nothing new from the federation's API.
func (f *apiFaults) deliversNothing() bool { return !f.stalled.IsZero() || f.silent || f.stale }

// sick reports whether something is wrong with the federation's API.
func (f *apiFaults) sick() bool { return f.deliversNothing() || f.fail > 0 || f.late > 0 }

// anySick reports whether something is wrong with the federation's API as any process sees it.
func (u *uplinks) anySick() bool {
	return slices.ContainsFunc(u[:], func(l *uplink) bool { return l.isSick.Load() })
}

// anyDeaf reports whether the federation's API delivers nothing to some process.
func (u *uplinks) anyDeaf() bool {
	return slices.ContainsFunc(u[:], func(l *uplink) bool { return l.isDeaf.Load() })
}

// requestTimeout is after how long the API answers a request that it has not finished.
const requestTimeout = time.Minute

var errAPI = errors.New("etcdserver: leader changed")

// through carries a request to the API. committed is called with the result of each write that got there.
func (l *uplink) through(ctx context.Context, r memapi.Request, do func() error, committed func(memapi.Request, error)) error {
	carried := func() error {
		err := do()
		if r.Writes() {
			committed(r, err)
		}
		return err
	}
	l.mu.Lock()
	faults := l.apiFaults
	key := r.Verb + " " + r.Resource.Resource + "/" + r.Subresource + " " + r.Namespace + "/" + r.Name
	l.asked[key]++
	chance := percentile(fmt.Sprint(key, " ", l.asked[key], " ", l.salt))
	l.mu.Unlock()
	if chance < faults.fail {
		l.fleet.tally.inject("requests to the federation that failed")
		return apierrors.NewInternalError(errAPI)
	}
	err := error(nil)
	if faults.stalled.IsZero() {
		err = carried()
	} else {
		err = l.wait(ctx, r, carried)
	}
	if r.Writes() && chance >= 100-faults.late {
		l.fleet.tally.inject("writes to the federation whose answer was wrong")
		if chance%2 == 0 {
			return errLost
		}
		return apierrors.NewInternalError(errAPI)
	}
	return err
}

// percentile is a number from 0 to 99 that depends on a text alone: not on which of two goroutines was first.
func percentile(text string) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	n := h.Sum64()
	return int((n ^ n>>29 ^ n>>47) % 100)
}

// waiting is a request that the API has taken and not carried out.
type waiting struct {
	carry func() error
	done  chan error
	// writes: it is carried out although nobody waits for the answer any more.
	ctx    context.Context
	writes bool
}

// wait has a request wait for the end of a stall.
func (l *uplink) wait(ctx context.Context, r memapi.Request, carry func() error) error {
	l.fleet.tally.inject("requests to the federation that were stalled")
	w := waiting{carry: carry, done: make(chan error, 1), ctx: ctx, writes: r.Writes()}
	l.mu.Lock()
	if l.stalled.IsZero() { // it has just ended
		l.mu.Unlock()
		return carry()
	}
	l.queue = append(l.queue, w)
	l.mu.Unlock()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(requestTimeout):
		return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
	}
}

// release carries out what waits, in the order in which it came.
func (l *uplink) release() {
	for {
		l.mu.Lock()
		if len(l.queue) == 0 || !l.stalled.IsZero() {
			l.mu.Unlock()
			return
		}
		w := l.queue[0]
		l.queue = l.queue[1:]
		l.mu.Unlock()
		if w.writes || w.ctx.Err() == nil {
			w.done <- w.carry()
		}
	}
}

// onUplinks changes what is wrong with the API as one process sees it, or as all do.
func (p *player) onUplinks(process []string, change func(*uplink)) error {
	if len(process) == 0 {
		for _, l := range p.uplinks {
			change(l)
		}
		return nil
	}
	n, err := p.process(process)
	if err == nil {
		change(p.uplinks[n-1])
	}
	return err
}

// stallAPI carries out stall fed DURATION [PROCESS|leader]: the federation's API answers nothing for so long. Writes are carried out at the end.
func stallAPI(p *player, args []string) error {
	if err := need(args, 2, "stall fed DURATION [PROCESS|leader]"); err != nil {
		return err
	}
	d, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	return p.onUplinks(args[2:], func(l *uplink) { l.stall(d) })
}

const fedUsage = "fed fail|late N% | fed watch silent | fed stale | fed well [PROCESS]"

// setAPIFaults carries out fed: what is wrong with the federation's API, as a process sees it or as all do.
//
//	fed fail N% [PROCESS]: so many requests are answered 500 and not carried out
//	fed late N% [PROCESS]: so many writes are carried out, and answered 500 or not at all
//	fed watch silent [PROCESS]: watches deliver nothing
//	fed stale [PROCESS]: watches deliver nothing, and reads that allow it are answered as of now
//	fed well [PROCESS]: nothing is wrong any more
func setAPIFaults(p *player, args []string) error {
	if err := need(args, 1, fedUsage); err != nil {
		return err
	}
	var change func(*apiFaults)
	rest := args[1:]
	switch {
	case args[0] == "well":
		change = func(f *apiFaults) { *f = apiFaults{salt: f.salt} }
	case args[0] == "stale":
		version := p.Federation.Version()
		change = func(f *apiFaults) { f.stale, f.asOf = true, version }
	case args[0] == "watch" && len(rest) > 0 && rest[0] == "silent":
		rest = rest[1:]
		change = func(f *apiFaults) { f.silent = true }
	case (args[0] == "fail" || args[0] == "late") && len(rest) > 0:
		percent, err := strconv.Atoi(strings.TrimSuffix(rest[0], "%"))
		if err != nil || percent < 0 || percent > 100 {
			return fmt.Errorf("%q: must be a percentage", rest[0])
		}
		rest = rest[1:]
		change = func(f *apiFaults) { f.fail = percent }
		if args[0] == "late" {
			change = func(f *apiFaults) { f.late = percent }
		}
	default:
		return fmt.Errorf("usage: %s", fedUsage)
	}
	return p.onUplinks(rest, func(l *uplink) { l.change(change) })
}
