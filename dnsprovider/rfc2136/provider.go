package rfc2136

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider"
)

// Options say which server, and how it knows us.
type Options struct {
	// Server is the host:port of the zone's primary server.
	Server string
	// Key signs every message, and must have signed every answer.
	Key Key
}

// Provider keeps records in one server. Make it with New.
type Provider struct {
	options Options
}

var _ dnsprovider.Provider = (*Provider)(nil)

// callTimeout bounds a call whose context has no earlier deadline.
const callTimeout = 60 * time.Second

// New makes a provider; it does not speak to the server yet. It fails when the address is no
// host:port, or the key cannot be used.
func New(options Options) (*Provider, error) {
	if _, port, err := net.SplitHostPort(options.Server); err != nil || port == "" {
		return nil, fmt.Errorf("server %q: must be HOST:PORT", options.Server)
	}
	if _, err := options.Key.signer(); err != nil {
		return nil, err
	}
	return &Provider{options: options}, nil
}

// Records transfers the zone. See dnsprovider.Provider.
func (p *Provider) Records(ctx context.Context, zone string) ([]dnsprovider.RRSet, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	rrs, err := p.transfer(conn, zone)
	if err != nil {
		return nil, fmt.Errorf("server %s: transfer of zone %s: %w", p.options.Server, zone, withContextError(ctx, err))
	}
	return setsOf(zone, rrs), nil
}

// Apply sends the changes. Without changes it sends an empty update, which shows that the zone is
// held and the key is good for it. See dnsprovider.Provider, and the package for large changes.
func (p *Provider) Apply(ctx context.Context, zone string, changes dnsprovider.ChangeSet) error {
	messages, err := messagesOf(zone, changes)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := p.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for changed := 0; len(messages) > 0; messages = messages[1:] {
		if err := p.update(conn, messages[0].Msg); err != nil {
			err = fmt.Errorf("server %s: update of zone %s: %w", p.options.Server, zone, withContextError(ctx, p.explain(ctx, zone, changes[changed:], err)))
			if changed > 0 {
				err = &dnsprovider.PartialError{Done: changed, Of: len(changes), Err: err}
			}
			return err
		}
		changed += messages[0].steps
	}
	return nil
}

// explain finds which record failed a prerequisite. A name that the key may not change, and a message that the server
// cannot parse, are refused for good.
func (p *Provider) explain(ctx context.Context, zone string, changes dnsprovider.ChangeSet, refusal error) error {
	var r *rcodeError
	switch {
	case !errors.As(refusal, &r):
		return refusal
	case r.code == dns.RcodeRefused || r.code == dns.RcodeFormatError:
		return &dnsprovider.RefusedError{Err: refusal}
	case !r.isPrerequisite():
		return refusal
	}
	current, err := p.Records(ctx, zone)
	if err != nil {
		return fmt.Errorf("%w; what is there could not be read: %w", refusal, err)
	}
	if _, err := changes.Apply(current); err != nil {
		return err
	}
	return refusal
}

// dial connects until the context ends.
func (p *Provider) dial(ctx context.Context) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.options.Server)
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", p.options.Server, err)
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	return conn, nil
}

// withContextError adds that the context has ended, if that is why reading or writing failed.
func withContextError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", ctx.Err(), err)
	}
	return err
}

// update sends one message and reads the answer.
func (p *Provider) update(conn net.Conn, m *dns.Msg) error {
	signer, err := p.options.Key.signer()
	if err != nil {
		return err
	}
	signer.sign(m)
	wire := &dns.Conn{Conn: conn, TsigProvider: signer} // of its own: it remembers the last signature
	if err := wire.WriteMsg(m); err != nil {
		return err
	}
	reply, err := wire.ReadMsg()
	return signer.check(m, reply, err)
}
