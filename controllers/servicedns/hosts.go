package servicedns

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"federation/controllers/supervisor"
)

// Resolver looks addresses up; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

const (
	// lookupTimeout bounds the lookup of one host name.
	lookupTimeout = 5 * time.Second
	// maxLookups bounds concurrent lookups.
	maxLookups = 16
)

// hosts caches the addresses of the wanted host names and keeps looking them up.
type hosts struct {
	resolver Resolver
	every    time.Duration
	// changed is called when the addresses of a host name have changed.
	changed func(host string)
	// due has an element when a new host name is wanted.
	due   supervisor.Wake
	slots chan struct{}

	mu sync.Mutex
	// wanted counts the Services per host. addresses is replaced, never changed in place.
	wanted    map[string]int
	addresses map[string][]netip.Addr
	busy      map[string]bool
}

func newHosts(resolver Resolver, every time.Duration, changed func(string)) *hosts {
	return &hosts{
		resolver: resolver, every: every, changed: changed, due: supervisor.NewWake(), slots: make(chan struct{}, maxLookups),
		wanted: map[string]int{}, addresses: map[string][]netip.Addr{}, busy: map[string]bool{},
	}
}

// addressesByHost returns the addresses by host name. The caller must not change the map.
func (h *hosts) addressesByHost() map[string][]netip.Addr {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.addresses
}

// countUses adds n to the use counts of the hosts. A new host is looked up at once.
func (h *hosts) countUses(names []string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range names {
		if h.wanted[name] += n; n > 0 && h.wanted[name] == n {
			h.due.Signal()
		}
	}
}

// dropUnused drops the hosts that are no longer wanted.
func (h *hosts) dropUnused() {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.wanted, func(_ string, n int) bool { return n <= 0 })
	left := maps.Clone(h.addresses)
	maps.DeleteFunc(left, func(name string, _ []netip.Addr) bool { return h.wanted[name] == 0 })
	if len(left) < len(h.addresses) {
		h.addresses = left
	}
}

// run looks hosts up until the context ends.
func (h *hosts) run(ctx context.Context) {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.due:
			h.startLookups(ctx, false)
		case <-tick.C:
			h.startLookups(ctx, true)
		}
	}
}

// startLookups starts lookups of the wanted hosts: all, or those without a result. A slow lookup delays no other, and is not
// started twice.
func (h *hosts) startLookups(ctx context.Context, all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range h.wanted {
		if _, known := h.addresses[name]; h.busy[name] || known && !all {
			continue
		}
		h.busy[name] = true
		go supervisor.Keep(ctx, "servicedns", func(ctx context.Context) { h.lookupOne(ctx, name) })
	}
}

func (h *hosts) lookupOne(ctx context.Context, name string) {
	found, err := h.lookup(ctx, name)
	if h.recordResult(name, found, err) {
		h.changed(name)
	}
}

func (h *hosts) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	h.slots <- struct{}{}
	defer func() { <-h.slots }()
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	return h.resolver.LookupNetIP(ctx, "ip", name)
}

// recordResult takes in the result of a lookup, and reports whether it changed anything. A failed lookup does not.
func (h *hosts) recordResult(name string, found []netip.Addr, err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.busy, name)
	if err != nil {
		klog.V(2).InfoS("Failed to look up a load balancer's host name, keeping its addresses", "host", name, "err", err)
		return false
	}
	slices.SortFunc(found, netip.Addr.Compare)
	before, known := h.addresses[name]
	if h.wanted[name] == 0 || known && slices.Equal(before, found) {
		return false
	}
	next := maps.Clone(h.addresses)
	next[name] = found
	h.addresses = next
	return true
}
