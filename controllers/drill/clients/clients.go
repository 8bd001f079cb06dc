// Package clients asks names of the federation while a drill is under way, as clients do: it looks a name up at the federation's own DNS server, keeps the
// answer for its TTL, connects to one of the addresses, and counts what comes of it.
//
//	c := clients.New(clients.Options{Resolve: …, Refuse: …, TTL: …})
//	c.Want(ctx, drill, asked)     // from now on these, until ctx ends; nil: none
//	c.Counts(window)
//
// Each probe asks once a period, and has five questions under way at most. No address is dialed where no load balancer can be: servicedns/probe sees to
// that, which asks.
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
	servicedns "federation/controllers/servicedns/plan"
	"federation/controllers/servicedns/probe"
)

const (
	// maxUnderWay is how many questions of a probe are under way at once, and maxWindow for how long each is remembered.
	maxUnderWay, maxWindow = 5, 10 * time.Minute
	// maxAddresses is how many addresses of an answer are kept.
	maxAddresses = 64
)

// Options are what Clients need.
type Options struct {
	// Resolve looks a name up, with its final dot, at the federation's DNS server.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	// Refuse says which addresses are not asked, and why.
	Refuse func(netip.Addr) error
	// TTL is how long an answer may be kept.
	TTL time.Duration
	// Federation and Zone are the names that names of Services end with.
	Federation, Zone string
	// Observe, if set, is called with the outcome of each question: "ok", "failed" or "unknown".
	Observe func(kind v1beta1.DrillProbeType, outcome string)
}

// Clients ask for one drill at a time. Make them with New.
type Clients struct {
	Options
	ask func(context.Context, servicedns.Target) error

	mu    sync.Mutex
	drill string // whose they are, and since when they count
	stop  context.CancelFunc
	all   map[string]*client
}

// New makes clients that ask nothing.
func New(o Options) *Clients {
	if o.Observe == nil {
		o.Observe = func(v1beta1.DrillProbeType, string) {}
	}
	return &Clients{Options: o, ask: probe.Asker(nil, o.Refuse)}
}

// Want has the probes of a drill asked, and none of another, until ctx ends. Counting starts again at its fault; a process that takes a drill over counts on
// from what it has noted.
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
		c.end()
	case c.drill == uid+" baseline" && since == "fault":
		for _, one := range c.all {
			one.restart(v1beta1.DrillProbeResult{})
		}
		c.drill = key
	case c.drill != key:
		c.end()
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
			go one.run(running)
		}
	}
}

func (c *Clients) end() {
	if c.stop != nil {
		c.stop()
	}
	c.drill, c.stop, c.all = "", nil, nil
}

// Counts are what the probes have found, with what they asked within a window, by name.
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
	failing time.Time // since when nothing has succeeded; zero: the last question did
	lately  []question
	kept    []netip.Addr
	until   time.Time // of kept
}

type question struct {
	at     time.Time
	failed bool
}

// restart starts counting again from these results.
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
				err := c.once(ctx)
				<-c.underWay
				if ctx.Err() == nil {
					c.note(at, err)
				}
			}()
		default:
			c.note(time.Now(), errBusy)
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

// once asks once.
func (c *client) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.probe.Timeout())*time.Second)
	defer cancel()
	addresses, err := c.addresses(ctx)
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
	return c.clients.ask(ctx, servicedns.Target{Address: addresses[rand.IntN(len(addresses))].String(), Check: check.WithDefaults()})
}

// addresses are those of the name: as a resolver has kept them, or looked up. No answer is kept longer than its TTL, nor is none.
func (c *client) addresses(ctx context.Context) ([]netip.Addr, error) {
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

// note counts an outcome of a question that was asked at a time.
func (c *client) note(at time.Time, err error) {
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

// counts are what has been found so far. An outage that goes on counts as long as it has lasted.
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

// Server is a resolver that asks the federation's own DNS server. What it listens on everywhere is asked on this machine.
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
