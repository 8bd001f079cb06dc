package lbprovider

import (
	"context"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"federation/controllers/lbprovider/plan"
	"federation/controllers/supervisor"
)

// How often a node is asked, how long an answer may take, and how many times in a row it has to fail.
const (
	checkEvery   = 500 * time.Millisecond
	checkTimeout = 500 * time.Millisecond
	failures     = 2
)

// checks asks nodes whether their service proxy is well, as load balancers of clouds do (KEP-3836): /healthz at port 10256.
type checks struct {
	port    uint16
	changed func()

	mu    sync.Mutex
	ctx   context.Context // nil before run
	asked map[netip.Addr]*check
}

type check struct {
	stop  context.CancelFunc
	fails bool
}

// run lets nodes be asked until ctx ends.
func (c *checks) run(ctx context.Context) {
	c.mu.Lock()
	c.ctx, c.asked = ctx, map[netip.Addr]*check{}
	c.mu.Unlock()
	c.changed()
	<-ctx.Done()
}

// ask has these nodes asked, each by itself, and no others.
func (c *checks) ask(nodes []plan.Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil || c.port == 0 {
		return
	}
	gone := c.asked
	c.asked = make(map[netip.Addr]*check, len(nodes))
	for _, n := range nodes {
		k, ok := gone[n.Addr]
		if delete(gone, n.Addr); !ok {
			ctx, stop := context.WithCancel(c.ctx)
			k = &check{stop: stop}
			go supervisor.Keep(ctx, "lbprovider", func(ctx context.Context) { c.look(ctx, n, k) })
		}
		c.asked[n.Addr] = k
	}
	for _, k := range gone {
		k.stop()
	}
}

// look asks a node until ctx ends.
func (c *checks) look(ctx context.Context, n plan.Member, k *check) {
	client := &http.Client{Timeout: checkTimeout, Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	url := "http://" + netip.AddrPortFrom(n.Addr, c.port).String() + "/healthz"
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for bad := 0; ; {
		if bad++; isWell(ctx, client, url) {
			bad = 0
		}
		if ctx.Err() != nil {
			return
		}
		c.note(n, k, bad)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func isWell(ctx context.Context, client *http.Client, url string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	answer, err := client.Do(r)
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

// note takes in how many looks at a node have failed in a row.
func (c *checks) note(n plan.Member, k *check, bad int) {
	c.mu.Lock()
	was := k.fails
	k.fails = bad >= failures || bad > 0 && was
	is := k.fails
	c.mu.Unlock()
	if is != was {
		klog.InfoS("A node's service proxy", "node", n.Node, "port", strconv.Itoa(int(c.port)), "well", !is)
		c.changed()
	}
}

// failing returns the nodes that fail.
func (c *checks) failing() map[netip.Addr]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[netip.Addr]bool{}
	for addr, k := range c.asked {
		if k.fails {
			out[addr] = true
		}
	}
	observeNodes(len(c.asked), len(out))
	return out
}
