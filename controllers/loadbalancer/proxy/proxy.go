package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/loadbalancer/plan"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/controllers/servicedns/probe"
	"federation/controllers/supervisor"
)

// Options are what a Proxy needs.
type Options struct {
	// Trusted are the peers whose X-Forwarded-For, Forwarded and PROXY headers are believed. Default: nobody.
	Trusted []netip.Prefix
	// Roots are the authorities of clusters' certificates. Default: the system's.
	Roots *x509.CertPool
	// Refuse returns an error for addresses that are not dialed. Default: v1beta1.RefuseAddress.
	Refuse func(netip.Addr) error
	// OwnAddresses returns the addresses of this machine that are no targets. Nil: there are none.
	OwnAddresses func() (map[netip.Addr]bool, error)
	// AccessLog gets a line of JSON for each request. Nil: none is written.
	AccessLog io.Writer
	// SpreadChanged, if set, is called when Spreads may say something else. It must return at once.
	SpreadChanged func()
	// Changed, if set, is called when a target begins to fail its checks, is ejected, or is back. why is empty for the last.
	Changed func(t plan.Target, why string)
}

// Proxy sends requests to clusters. Make it with New.
type Proxy struct {
	Options
	started time.Time
	ask     func(context.Context, servicednsplan.Target) error
	routing atomic.Pointer[routing]
	// draining: answers ask clients to close their connections.
	draining atomic.Bool

	pools *pools
	log   *accessLog
	// tunnels are what Shutdown of each server waits for.
	tunnels tunnels
	// streams takes the connections to ports of Services; nil: nothing does.
	streams atomic.Pointer[Streams]
}

// routing is what Routes and certificates say, swapped as one.
type routing struct {
	table *plan.Table
	certs map[string]*tls.Certificate
}

// New makes a proxy without routes: it answers 404.
func New(o Options) *Proxy {
	if o.Refuse == nil {
		o.Refuse = v1beta1.RefuseAddress
	}
	if o.SpreadChanged == nil {
		o.SpreadChanged = func() {}
	}
	if o.Changed == nil {
		o.Changed = func(plan.Target, string) {}
	}
	p := &Proxy{Options: o, started: time.Now(), ask: probe.Asker(o.Roots, o.Refuse)}
	p.pools = newPools(func(key targetKey) *target { return newTarget(p, key) }, o.OwnAddresses, o.SpreadChanged)
	p.routing.Store(&routing{table: plan.Routes(plan.World{})})
	if o.AccessLog != nil {
		p.log = newAccessLog(o.AccessLog)
	}
	return p
}

// Run checks targets and writes the access log until ctx ends.
func (p *Proxy) Run(ctx context.Context) {
	if p.log != nil {
		var writing sync.WaitGroup
		defer writing.Wait()
		writing.Go(supervisor.Kept(ctx, "loadbalancer", p.log.run))
	}
	p.runHealth(ctx)
}

// clock is in nanoseconds since the proxy was made.
func (p *Proxy) clock() int64 { return int64(time.Since(p.started)) }

// SetRoutes has requests routed by a table, with certificates by the namespace/name of their Secrets.
func (p *Proxy) SetRoutes(table *plan.Table, certs map[string]*tls.Certificate) {
	p.routing.Store(&routing{table, certs})
	if s := p.streams.Load(); s != nil {
		s.listenAll()
	}
	p.SpreadChanged()
}

// Table returns the table in use.
func (p *Proxy) Table() *plan.Table { return p.routing.Load().table }

// Pool returns a pool as it is now, with all that explains it, which is not kept.
func (p *Proxy) Pool(id plan.PoolID) (plan.Pool, bool) { return p.pools.explained(id) }

// SetPool has a pool decided from these values, whose Health and Own are the proxy's own.
func (p *Proxy) SetPool(in plan.PoolInput) { p.pools.set(in) }

// DropPool forgets a pool.
func (p *Proxy) DropPool(id plan.PoolID) { p.pools.drop(id) }

// Pools returns the ids of all pools.
func (p *Proxy) Pools() []plan.PoolID { return p.pools.ids() }

// Health returns what is known against targets. Of one that several pools check in different ways, the worst counts.
func (p *Proxy) Health() map[plan.Target]plan.Health { return p.pools.health() }

// Own returns the addresses of this machine that clusters say to be their load balancers.
func (p *Proxy) Own() []plan.Target { return p.pools.refusedOwn() }

// changed decides the pools of a target again whose checks began to fail, or to pass.
func (p *Proxy) changed(t *target, failing bool, err error) {
	p.pools.decideOf(t)
	if failing && !p.pools.uses(t) {
		t.endStreams()
	}
	why := ""
	if failing {
		why = "its checks fail: " + probe.Why(err)
	}
	observeOut(t.Cluster, failing)
	p.Changed(t.Target, why)
}

// ejected decides the pools of a target again that was ejected.
func (p *Proxy) ejected(t *target) {
	p.pools.decideOf(t)
	ejections.WithLabelValues(t.Cluster).Inc()
	p.Changed(t.Target, "requests failed there")
}

// isTrusted reports whether a peer's word on clients counts.
func (p *Proxy) isTrusted(addr netip.Addr) bool {
	return slices.ContainsFunc(p.Trusted, func(n netip.Prefix) bool { return n.Contains(addr.Unmap()) })
}

func addrOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
