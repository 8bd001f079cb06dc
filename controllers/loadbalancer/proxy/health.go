package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"federation/controllers/loadbalancer/plan"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/controllers/servicedns/probe"
	"federation/controllers/supervisor"
)

const (
	// tick is how often it is looked at what is due.
	tick = 100 * time.Millisecond
	// usedPeriod is that of checks of targets that were used within usedFor, idlePeriod of all others, urgentPeriod of those that
	// have let requests wait for silence.
	usedPeriod, idlePeriod, urgentPeriod = time.Second, 10 * time.Second, 200 * time.Millisecond
	usedFor, silence                     = time.Minute, 500 * time.Millisecond
	// checkTimeout bounds a check, urgentTimeout one while requests wait.
	checkTimeout, urgentTimeout = time.Second, 500 * time.Millisecond
	// maxChecks bounds the checks under way, maxChecksOfOne those of a target.
	maxChecks, maxChecksOfOne = 512, 3
	// failAfter failures in a row make a target fail, passAfter successes end that.
	failAfter, passAfter = 2, 2
	// ejectAfter undelivered requests in a row, or ejectAfterErrors gateway errors, eject a target for ejectFor, and each time longer up to ejectMost.
	ejectAfter, ejectAfterErrors = 3, 5
	ejectFor, ejectMost          = 10 * time.Second, 5 * time.Minute
	// warmFor is how long a target that is back takes to get its whole share.
	warmFor = 30 * time.Second
)

// health is what is known of a target. The target's lock guards it.
type health struct {
	// failing by its checks; row counts results in a row against that.
	failing bool
	row     int
	// checked is when the last check began, checking how many are under way.
	checked  time.Time
	checking int
	// undelivered and errors count in a row; ejections the times since it was well for long.
	undelivered, errors, ejections int
	ejectedUntil                   time.Time
	// back is when it came back; zero if it never was away, or is warm.
	back time.Time
	why  string
	// gone: no pool has it any more.
	gone bool
	silences
}

// view returns the health as the plan wants it. The caller holds the lock.
func (h *health) view(now time.Time) plan.Health {
	v := plan.Health{Failing: h.failing, Ejected: now.Before(h.ejectedUntil), Silent: h.isSilent()}
	if since := now.Sub(h.back); !h.back.IsZero() && since < warmFor {
		v.Cold = 1 - max(0.05, float64(since)/float64(warmFor))
	}
	return v
}

// runHealth looks at what is due until ctx ends.
func (p *Proxy) runHealth(ctx context.Context) {
	p.pools.lookAtOwn()
	slots := make(chan struct{}, maxChecks)
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		second := n%int(time.Second/tick) == 0
		for _, t := range p.pools.allTargets() {
			if second {
				t.closeIdle(false)
				t.settle()
			}
			if timeout := t.due(); timeout > 0 {
				t.startCheck(ctx, slots, timeout)
			}
		}
		if second {
			p.pools.lookAtOwn()
			p.pools.decideMoving()
			if s := p.streams.Load(); s != nil {
				s.retry()
			}
		}
	}
}

// due reports, by its timeout, whether a check is to begin now. It counts as begun.
func (t *target) due() time.Duration {
	now, clock := time.Now(), t.proxy.clock()
	t.mu.Lock()
	defer t.mu.Unlock()
	period, timeout := idlePeriod, checkTimeout
	if used := t.used.Load(); used > 0 && clock-used < int64(usedFor) || t.failing || t.row > 0 || t.isSilent() || len(t.streams) > 0 {
		period = usedPeriod
	}
	if t.mayBeSilent() {
		period, timeout = urgentPeriod, urgentTimeout
	}
	if clock-t.heard.Load() > int64(silence) {
		for x := range t.waiting {
			if clock-x.since() > int64(silence) {
				period, timeout = urgentPeriod, urgentTimeout
				break
			}
		}
	}
	if now.Sub(t.checked) < period || t.checking >= maxChecksOfOne {
		return 0
	}
	t.checked = now
	t.checking++
	return timeout
}

// startCheck checks in a goroutine, if there is a slot; or else the next time.
func (t *target) startCheck(ctx context.Context, slots chan struct{}, timeout time.Duration) {
	select {
	case slots <- struct{}{}:
	default:
		t.record(nil, false)
		return
	}
	go func() {
		defer func() { <-slots }()
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		err := supervisor.Protect(ctx, "loadbalancer", func() error { return t.ask(ctx, timeout) })
		t.record(err, !probe.Unknown(err) || err == nil)
	}()
}

// record takes in the result of a check, if it says anything.
func (t *target) record(err error, counts bool) {
	t.mu.Lock()
	t.checking--
	before := t.failing
	if counts && !t.gone {
		t.count(err)
	}
	changed := t.failing != before
	if changed && t.failing {
		t.why = probe.Why(err)
		for x := range t.waiting {
			x.abandon()
		}
	}
	failing := t.failing
	t.mu.Unlock()
	if changed {
		if failing {
			t.closeIdle(true)
		}
		t.proxy.changed(t, failing, err)
	}
}

func (t *target) count(err error) {
	if (err != nil) == t.failing {
		t.row = 0
		return
	}
	enough := failAfter
	if t.failing {
		enough = passAfter
	}
	if t.row++; t.row < enough {
		return
	}
	t.failing, t.row = !t.failing, 0
	if !t.failing {
		t.back, t.ejectedUntil, t.undelivered, t.errors = time.Now(), time.Time{}, 0, 0
	}
}

// settle forgets what is over. A target whose ejection has ended is back.
func (t *target) settle() {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.ejectedUntil.IsZero() && now.After(t.ejectedUntil):
		t.back, t.ejectedUntil = now, time.Time{}
	case !t.back.IsZero() && now.Sub(t.back) > ejectMost:
		t.back, t.ejections = time.Time{}, 0
	}
}

// delivered takes in how a request went: undelivered, with a gateway error, or well.
func (t *target) delivered(err error, status int) {
	t.mu.Lock()
	bad := false
	switch {
	case err != nil:
		t.undelivered++
		bad = t.undelivered >= ejectAfter
	case status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout:
		t.undelivered = 0
		t.errors++
		bad = t.errors >= ejectAfterErrors
	case t.undelivered+t.errors > 0:
		t.undelivered, t.errors = 0, 0
	}
	now := time.Now()
	if bad = bad && !t.failing && !now.Before(t.ejectedUntil); bad {
		t.ejectedUntil = now.Add(min(ejectFor<<min(t.ejections, 8), ejectMost))
		t.ejections++
		t.undelivered, t.errors = 0, 0
	}
	t.mu.Unlock()
	if bad {
		t.proxy.ejected(t)
	}
}

// ask checks the target once.
func (t *target) ask(ctx context.Context, timeout time.Duration) error {
	if check := t.check.Value(); check.Type != "" {
		check.TimeoutSeconds = 1 // ctx may end before
		return t.proxy.ask(ctx, servicednsplan.Target{Address: t.Address.Addr().String(), Check: check})
	}
	if t.Protocol == plan.UDP && t.checkPort == 0 {
		return nil // what the federation says of it counts alone
	}
	c, err := t.dial(ctx, -1)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(timeout)) // fails only for what is closed
	if t.proxyProtocol && t.Protocol != plan.UDP {
		if _, err := io.WriteString(c, localProxyHeader); err != nil {
			return err
		}
	}
	switch t.Protocol {
	case plan.UDP:
		return nil
	case plan.TCP:
		t.hearEnd(c)
		return nil
	case plan.TLS:
		return t.greetTLS(ctx, c)
	case plan.H2C:
		return greetHTTP2(c)
	case plan.HTTPS:
		err := tls.Client(c, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) //nolint:gosec // it is asked whether it lives, and gets no data
		var refusal *net.OpError
		if errors.As(err, &refusal) && refusal.Op == "remote error" { // as of a server that wants a name
			return nil
		}
		return err
	}
	return askOptions(c)
}

// askOptions asks by HTTP/1.1 for what the server can do, which applications do not see. Any answer will do.
func askOptions(c net.Conn) error {
	if _, err := io.WriteString(c, "OPTIONS * HTTP/1.1\r\nHost: federation-lb\r\nUser-Agent: federation-check\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(io.LimitReader(c, maxResponseHead)), nil)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it closed the connection without an answer")
	}
	if err == nil {
		_ = answer.Body.Close() // it is not read
	}
	return err
}

// greetTLS begins TLS for the server name. Anything that comes back is an answer: versions and certificates are between clients and servers.
func (t *target) greetTLS(ctx context.Context, c net.Conn) error {
	heard := &heardConn{Conn: c}
	err := tls.Client(heard, &tls.Config{ServerName: t.serverName, InsecureSkipVerify: true}).HandshakeContext(ctx) //nolint:gosec // it is asked whether it lives, and gets no data
	if heard.heard {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return errors.New("it closed the connection without an answer")
	}
	return err
}

// heardConn notes whether something has come.
type heardConn struct {
	net.Conn
	heard bool
}

func (c *heardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.heard = c.heard || n > 0
	return n, err
}

// greetHTTP2 begins HTTP/2; the server's settings are an answer.
func greetHTTP2(c net.Conn) error {
	const frameHeader, settings = 9, 4
	if _, err := io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		return err
	}
	var head [frameHeader]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	if head[3] != settings {
		return fmt.Errorf("it does not speak HTTP/2: frame type %d", head[3])
	}
	return nil
}
