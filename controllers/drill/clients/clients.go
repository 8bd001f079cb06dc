// Package clients probes names of the federation during a drill, as clients do: it looks a name up at the federation's own
// DNS server, caches the answer for its TTL, connects to one of the addresses, and counts the results.
//
//	c := clients.New(clients.Options{Resolve: …, Refuse: …, TTL: …})
//	c.Want(ctx, drill)     // from now on its probes, until ctx ends; nil: none
//	c.Counts(now, window)
//
// Each probe asks once a period and has at most five questions in flight. It does not dial addresses that no load balancer
// can have: servicedns/probe, which dials, refuses them.
package clients

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/drill/plan"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/controllers/servicedns/probe"
	"federation/controllers/supervisor"
)

const (
	// maxUnderWay is the maximum of questions of a probe in flight, maxWindow how long each is remembered.
	maxUnderWay, maxWindow = 5, 10 * time.Minute
	// maxAddresses is the maximum of addresses kept of an answer.
	maxAddresses = 64
)

// Options are what New needs.
type Options struct {
	// Resolve looks a name up, with its final dot, at the federation's DNS server.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	// Refuse returns an error for an address that must not be dialed.
	Refuse func(netip.Addr) error
	// TTL is the maximum time to cache an answer.
	TTL time.Duration
	// Federation and Zone are the suffixes of the names of Services.
	Federation, Zone string
	// Observe, if set, is called with the outcome of each question: "ok", "failed" or "unknown".
	Observe func(kind v1beta1.DrillProbeType, outcome string)
}

// Clients probe for one drill at a time. Make them with New.
type Clients struct {
	Options
	ask func(context.Context, servicednsplan.Target) error

	mu    sync.Mutex
	drill string // the drill, and since when its probes count
	stop  context.CancelFunc
	all   map[string]*client
}

// New makes Clients without probes.
func New(o Options) *Clients {
	if o.Observe == nil {
		o.Observe = func(v1beta1.DrillProbeType, string) {}
	}
	return &Clients{Options: o, ask: probe.Asker(nil, o.Refuse)}
}

// Want starts the probes of a drill and stops those of any other, until ctx ends. Counting restarts at the drill's
// fault. A process that takes over a drill continues from the counts in its status.
func (c *Clients) Want(ctx context.Context, d *v1beta1.FailoverDrill) {
	c.mu.Lock()
	defer c.mu.Unlock()
	uid, since := "", "baseline"
	if d != nil && d.UnderWay() && len(d.Spec.Probes) > 0 {
		if uid = string(d.UID); d.Status.Report != nil {
			since = "fault"
		}
	}
	switch key := uid + " " + since; {
	case uid == "":
		c.stopAll()
	case c.drill == uid+" baseline" && since == "fault":
		for _, one := range c.all {
			one.restart(v1beta1.DrillProbeResult{})
		}
		c.drill = key
	case c.drill != key:
		c.stopAll()
		running, stop := context.WithCancel(ctx)
		c.drill, c.stop, c.all = key, stop, map[string]*client{}
		for i := range d.Spec.Probes {
			p := d.Spec.Probes[i]
			one := &client{clients: c, probe: p, name: p.DNSName(c.Federation, c.Zone), underWay: make(chan struct{}, maxUnderWay)}
			if d.Status.Report != nil {
				if n := slices.IndexFunc(d.Status.Report.Probes, func(r v1beta1.DrillProbeResult) bool { return r.Name == p.Name }); n >= 0 {
					one.restart(d.Status.Report.Probes[n])
				}
			}
			c.all[p.Name] = one
			go supervisor.Keep(running, "drills", one.run)
		}
	}
}

func (c *Clients) stopAll() {
	if c.stop != nil {
		c.stop()
	}
	c.drill, c.stop, c.all = "", nil, nil
}

// Counts returns the results of the probes, with what they asked within a window, by name.
func (c *Clients) Counts(now time.Time, window time.Duration) (all []plan.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.all)) {
		all = append(all, c.all[name].counts(now, window))
	}
	return all
}

// client is one probe.
type client struct {
	clients  *Clients
	probe    v1beta1.DrillProbe
	name     string
	underWay chan struct{}

	mu      sync.Mutex
	result  v1beta1.DrillProbeResult
	failing time.Time // since when nothing has succeeded; zero if the last question did
	lately  []question
	kept    []netip.Addr
	until   time.Time // expiry of kept
}

type question struct {
	at     time.Time
	failed bool
}

// restart sets the counts to these results.
func (c *client) restart(from v1beta1.DrillProbeResult) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result, c.failing = from, time.Time{}
}

func (c *client) run(ctx context.Context) {
	timer := time.NewTicker(time.Duration(c.probe.Period()) * time.Second)
	defer timer.Stop()
	for {
		select {
		case c.underWay <- struct{}{}:
			go func() {
				at := time.Now()
				err := supervisor.Protect(ctx, "drills", func() error { return c.askOnce(ctx) })
				<-c.underWay
				if ctx.Err() == nil {
					c.recordOutcome(at, err)
				}
			}()
		default:
			c.recordOutcome(time.Now(), errBusy)
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

var (
	errBusy   = errors.New("too many questions are under way")
	errNoName = errors.New("the name has no address")
)

// askOnce asks once.
func (c *client) askOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.probe.Timeout())*time.Second)
	defer cancel()
	addresses, err := c.lookupAddresses(ctx)
	if err != nil {
		return err
	}
	if len(addresses) == 0 {
		return errNoName
	}
	if c.probe.Type == v1beta1.ProbeDNS {
		return nil
	}
	check := v1beta1.DNSHealthCheck{Type: v1beta1.DNSHealthCheckType(c.probe.Type), Port: c.probe.Port, Path: c.probe.Path, InsecureSkipVerify: c.probe.InsecureSkipVerify,
		PeriodSeconds: 60, TimeoutSeconds: c.probe.Timeout()}
	if c.probe.Type != v1beta1.ProbeTCP {
		check.Host = c.name[:len(c.name)-1]
	}
	return c.clients.ask(ctx, servicednsplan.Target{Address: addresses[rand.IntN(len(addresses))].String(), Check: check.WithDefaults()})
}

// lookupAddresses returns the addresses of the name, from the cache or looked up. Answers and failures are cached for the TTL
// at most.
func (c *client) lookupAddresses(ctx context.Context) ([]netip.Addr, error) {
	c.mu.Lock()
	kept, until := c.kept, c.until
	c.mu.Unlock()
	if c.probe.Mode != v1beta1.ProbeFresh && c.probe.Type != v1beta1.ProbeDNS && time.Now().Before(until) {
		return kept, nil
	}
	found, err := c.clients.Resolve(ctx, c.name)
	var lookup *net.DNSError
	if errors.As(err, &lookup) {
		if lookup.IsNotFound {
			return nil, nil
		}
		return nil, fmt.Errorf("the DNS server does not answer: %s", lookup.Err)
	}
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(a netip.Addr) bool { return c.clients.Refuse(a) != nil })
	found = found[:min(len(found), maxAddresses)]
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(found) > 0 {
		c.kept, c.until = found, time.Now().Add(c.clients.TTL)
	}
	return found, nil
}

// recordOutcome counts the outcome of a question asked at a time.
func (c *client) recordOutcome(at time.Time, err error) {
	outcome := "ok"
	switch {
	case errors.Is(err, errBusy) || err != nil && probe.Unknown(err):
		outcome = "unknown"
	case err != nil:
		outcome = "failed"
	}
	c.clients.Observe(c.probe.Type, outcome)
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.result
	if outcome == "unknown" {
		r.Unknown++
		return
	}
	r.Asked++
	c.lately = append(slices.DeleteFunc(c.lately, func(q question) bool { return at.Sub(q.at) > maxWindow }), question{at, err != nil})
	if err != nil {
		r.Failed++
		if r.LastFailure = probe.Why(err); c.failing.IsZero() {
			c.failing = at
		}
		return
	}
	if !c.failing.IsZero() {
		r.LongestOutageMilliseconds = max(r.LongestOutageMilliseconds, at.Sub(c.failing).Milliseconds())
		c.failing = time.Time{}
	}
}

// counts returns the results so far. A current outage counts as long as it has lasted.
func (c *client) counts(now time.Time, window time.Duration) plan.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := plan.Client{DrillProbeResult: c.result}
	is.Name, is.From = c.probe.Name, "Federation"
	if !c.failing.IsZero() {
		is.LongestOutageMilliseconds = max(is.LongestOutageMilliseconds, now.Sub(c.failing).Milliseconds())
	}
	for _, q := range c.lately {
		if now.Sub(q.at) <= window {
			if is.Recent++; q.failed {
				is.RecentFailed++
			}
		}
	}
	return is
}

// Server returns a resolver that asks the federation's own DNS server. For a wildcard address it asks on loopback.
func Server(at netip.AddrPort) func(ctx context.Context, name string) ([]netip.Addr, error) {
	if at.Addr().IsUnspecified() {
		local := netip.AddrFrom4([4]byte{127, 0, 0, 1})
		if at.Addr().Is6() {
			local = netip.IPv6Loopback()
		}
		at = netip.AddrPortFrom(local, at.Port())
	}
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, at.String())
	}}
	return func(ctx context.Context, name string) ([]netip.Addr, error) { return r.LookupNetIP(ctx, "ip", name) }
}
