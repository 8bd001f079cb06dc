package main

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"k8s.io/klog/v2"
)

// How often load balancers look at a node, how long they wait for it, and how many bad looks in a row take it out.
const (
	lookEvery = 500 * time.Millisecond
	lookWaits = time.Second
	badLooks  = 2
)

// balancer leads the load balancers' addresses to nodes, as those of clouds do: to the ones whose service proxy says that
// it is well (port 10256), and to all where none does.
type balancer struct {
	client http.Client
	nodes  []netip.Addr
	bad    []int // looks in a row, for each node
	lead   func(nodes []netip.Addr) error
}

func (c *cluster) newBalancer(nodes []netip.Addr) *balancer {
	dial := func(_ context.Context, network, address string) (conn net.Conn, err error) {
		err = c.Real.internet.inside(func() (err error) { conn, err = net.DialTimeout(network, address, lookWaits); return err })
		return conn, err
	}
	b := &balancer{client: http.Client{Timeout: lookWaits, Transport: &http.Transport{DialContext: dial}}, nodes: nodes, lead: c.leadPools}
	b.bad = slices.Repeat([]int{badLooks}, len(nodes)) // a node is taken in when it is well
	return b
}

// run looks at the nodes until ctx ends.
func (b *balancer) run(ctx context.Context) {
	led := b.nodes
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		to := b.look()
		if slices.Equal(to, led) {
			continue
		}
		if err := b.lead(to); err != nil {
			klog.ErrorS(err, "Load balancers stay as they were")
			continue
		}
		led = to
	}
}

// look asks each node, and returns those that connections are to be led to.
func (b *balancer) look() (to []netip.Addr) {
	for i, node := range b.nodes {
		if b.bad[i]++; b.well(node) {
			b.bad[i] = 0
		}
		if b.bad[i] < badLooks {
			to = append(to, node)
		}
	}
	if len(to) == 0 {
		return b.nodes
	}
	return to
}

func (b *balancer) well(node netip.Addr) bool {
	answer, err := b.client.Get("http://" + netip.AddrPortFrom(node, 10256).String() + "/healthz")
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

// leadPools leads all addresses that load balancers can have to some nodes.
func (c *cluster) leadPools(nodes []netip.Addr) error {
	for _, pool := range c.pools {
		if err := c.Real.internet.route(pool, nodes...); err != nil {
			return err
		}
	}
	return nil
}
