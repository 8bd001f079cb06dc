package views

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"federation/clusterregistry/limits"
)

const (
	// patience is how long a member has to begin its response, and for each next part.
	patience = 2 * time.Second
	// whole is how long it has for a complete response that is neither a watch nor a log.
	whole = 20 * time.Second
	// maxAnswer is the maximum size of a response in bytes, maxReading that of all responses being read at the same time, and
	// maxReadingEach that of those of one member.
	maxAnswer, maxReading, maxReadingEach = 128 << 20, 512 << 20, 128 << 20
)

var (
	errSilent = fmt.Errorf("no answer within %s", patience)
	errBusy   = errors.New("as much as may be is read of clusters right now: try again")
)

// allowance is what one request of a client may cost of one member's response.
type allowance struct {
	meter *limits.Meter
	// budget is shared by all requests. What is taken of it, and of the member's own, is held until the answer has been decoded.
	budget *budget
	holds  *holds
	// stream is for responses without an end: only their beginning has a deadline.
	stream bool
	// waits is for responses that begin when there is something to send.
	waits bool
	// copying takes what comes of a response in its format; nil: none does.
	copying *copying
}

// budget is how many bytes may be read at the same time.
type budget struct {
	most int64
	read atomic.Int64
}

// holds collect what release gives back to budgets. An answer without one gives it back when it is closed.
type holds struct {
	mu    sync.Mutex
	given []func()
}

// add has release call back.
func (h *holds) add(back func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.given = append(h.given, back)
}

// release gives everything back.
func (h *holds) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, back := range h.given {
		back()
	}
	h.given = nil
}

type allowanceKey struct{}

// allow returns a context whose requests to a member are bounded.
func (m *Members) allow(ctx context.Context, stream bool) context.Context {
	return context.WithValue(ctx, allowanceKey{}, allowance{meter: m.meter(false), budget: &m.budget, stream: stream})
}

// meter returns what bounds the answers to one request.
func (m *Members) meter(unweighed bool) *limits.Meter {
	return limits.New(limits.Limits{Response: m.maxAnswer, Open: 2 * m.maxAnswer, Burst: 2 * m.maxAnswer, Unweighed: unweighed}, func(string) {})
}

// allowHeld is allow for answers that are decoded before h is released.
func (m *Members) allowHeld(ctx context.Context, h *holds) context.Context {
	ctx = m.allow(ctx, false)
	a := ctx.Value(allowanceKey{}).(allowance) // it has just been put there
	a.holds = h
	return context.WithValue(ctx, allowanceKey{}, a)
}

// copied returns the context for an answer that is copied as it comes, without decoding it, if that can be done: it costs its length.
func (m *Members) copied(ctx context.Context, c *copying) context.Context {
	a, _ := ctx.Value(allowanceKey{}).(allowance)
	a.meter, a.copying = m.meter(true), c
	return context.WithValue(ctx, allowanceKey{}, a)
}

// weigh takes what it costs to decode an unweighed answer, beyond its length, from the budgets.
func (m *Members) weigh(ctx context.Context, l *link, mediaType string, body []byte) error {
	cost, err := limits.Weigh(mediaType, body)
	if err != nil {
		return err
	}
	if cost > m.maxAnswer {
		return &limits.ExceededError{What: "one answer", Limit: m.maxAnswer}
	}
	a, _ := ctx.Value(allowanceKey{}).(allowance)
	more := &patientBody{budgets: [2]*budget{&l.reading, a.budget}, held: a.holds}
	a.holds.add(more.release)
	if more.exceeds(cost - int64(len(body))) {
		return errBusy
	}
	return nil
}

// allowWaiting is allow for logs, which are passed through: nothing of them is kept, and they may be silent and long.
func (m *Members) allowWaiting(ctx context.Context) context.Context {
	return context.WithValue(ctx, allowanceKey{}, allowance{stream: true, waits: true})
}

// bounded ends requests to a member that exceed their allowance, or the member's own.
type bounded struct {
	http.RoundTripper
	own *budget
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	a, ok := r.Context().Value(allowanceKey{}).(allowance)
	if !ok {
		return nil, errors.New("a request without an allowance")
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	silent := time.AfterFunc(patience, func() { cancel(errSilent) })
	if a.waits {
		silent.Stop()
	}
	rt := b.RoundTripper
	if a.meter != nil {
		rt = a.meter.Over(rt)
	}
	response, err := rt.RoundTrip(r.WithContext(ctx))
	if err != nil {
		silent.Stop()
		if context.Cause(ctx) == errSilent { //nolint:errorlint // it is that very one
			err = errSilent
		}
		cancel(nil)
		return nil, err
	}
	if a.stream {
		silent.Stop()
	}
	body := &patientBody{ReadCloser: response.Body, ctx: ctx, cancel: cancel, silent: silent, stream: a.stream, budgets: [2]*budget{b.own, a.budget}, end: time.Now().Add(whole), held: a.holds}
	if c := a.copying; c != nil {
		c.reset()
		if response.StatusCode == http.StatusOK && response.Header.Get("Content-Type") == c.format.mediaType() {
			body.copying = c
		}
	}
	response.Body = body
	if a.holds != nil {
		a.holds.add(body.release)
	}
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.RoundTripper }

// patientBody limits the wait for each part of a response, and for all of it.
type patientBody struct {
	io.ReadCloser
	ctx     context.Context //nolint:containedctx // of the request whose answer it is
	cancel  context.CancelCauseFunc
	silent  *time.Timer
	stream  bool
	budgets [2]*budget   // of answers that are held as a whole: the member's, and that of all
	cost    int64        // of what has been read, in bytes
	counted atomic.Int64 // what of it is taken from the budgets
	held    *holds       // gives back what is counted; nil: Close does
	end     time.Time
	copying *copying
	closed  atomic.Bool // perhaps while it is being read
}

// Read implements io.Reader.
func (b *patientBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	cost := int64(n)
	if c, ok := b.ReadCloser.(limits.Costed); ok {
		cost, b.cost = c.Cost()-b.cost, c.Cost()
	}
	switch {
	case b.stream:
	case b.exceeds(cost):
		return 0, errBusy
	case err == nil:
		b.silent.Reset(min(patience, time.Until(b.end)))
	case context.Cause(b.ctx) == errSilent: //nolint:errorlint // it is that very one
		err = errSilent
	}
	if b.copying != nil {
		b.copying.take(p[:n])
	}
	return n, err
}

// exceeds takes bytes from the budgets, and reports whether one has fewer.
func (b *patientBody) exceeds(n int64) (exceeds bool) {
	b.counted.Add(n)
	for _, budget := range b.budgets {
		exceeds = budget.read.Add(n) > budget.most || exceeds
	}
	if b.closed.Load() && b.held == nil {
		b.release()
	}
	return exceeds
}

// Close implements io.Closer.
func (b *patientBody) Close() error {
	b.silent.Stop()
	b.closed.Store(true)
	if !b.stream && b.held == nil {
		b.release()
	}
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

// release gives back to the budgets what is counted.
func (b *patientBody) release() {
	counted := b.counted.Swap(0)
	for _, budget := range b.budgets {
		budget.read.Add(-counted)
	}
}
