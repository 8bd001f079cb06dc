package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/servicedns/plan"
	"federation/controllers/supervisor"
)

const (
	// maxHeader bounds the header of a response in bytes. Its body is not read.
	maxHeader = 16 << 10
	// maxWhy bounds the description of a failure in bytes.
	maxWhy = 160
	// Statuses from okay up to failed are healthy.
	okay, failed = 200, 400
)

// asker probes targets.
type asker struct {
	trust  *x509.CertPool
	refuse func(netip.Addr) error
}

// Asker returns a function that probes a target once, for callers that count by themselves. refuse returns an error for
// addresses that must not be dialed.
func Asker(trust *x509.CertPool, refuse func(netip.Addr) error) func(context.Context, plan.Target) error {
	return (&asker{trust: trust, refuse: refuse}).probeOnce
}

// Unknown reports whether an error says nothing about the target.
func Unknown(err error) bool { return isLocalError(err) }

// Why describes an error briefly.
func Why(err error) string { return describeError(err) }

// probeOnce probes a target once, for its timeout at most. Nil means healthy.
func (a *asker) probeOnce(ctx context.Context, t plan.Target) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(t.Check.TimeoutSeconds)*time.Second)
	defer cancel()
	address := net.JoinHostPort(strings.TrimSuffix(t.Address, "."), fmt.Sprint(t.Check.Port))
	if t.Check.Type == v1beta1.DNSHealthCheckTCP {
		conn, err := a.dialer().DialContext(ctx, "tcp", address)
		if err == nil {
			_ = conn.Close() // it accepted, which is the whole check
		}
		return err
	}
	return a.askHTTP(ctx, t.Check, address)
}

// dialer refuses addresses that no load balancer can have. It checks the address after any lookup.
func (a *asker) dialer() *net.Dialer {
	return &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return a.refuse(to.Addr())
	}}
}

func (a *asker) askHTTP(ctx context.Context, c v1beta1.DNSHealthCheck, address string) error {
	u, err := url.Parse(strings.ToLower(string(c.Type)) + "://" + address + c.Path)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	request.Host = c.Host
	request.Header.Set("User-Agent", "federation-check")
	transport := &http.Transport{
		DialContext: a.dialer().DialContext, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.Host, RootCAs: a.trust, InsecureSkipVerify: c.InsecureSkipVerify}, //nolint:gosec // the user's word
	}
	answer, err := transport.RoundTrip(request) // which follows no redirects
	if err != nil {
		return err
	}
	_ = answer.Body.Close() // the body is not read
	if answer.StatusCode < okay || answer.StatusCode >= failed {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	return nil
}

// isLocalError reports whether an error says nothing about the target.
func isLocalError(err error) bool {
	var lookup *net.DNSError
	if errors.As(err, &lookup) {
		return true
	}
	for _, fault := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.EADDRNOTAVAIL, syscall.ENETUNREACH, syscall.ENETDOWN} {
		if errors.Is(err, fault) {
			return true
		}
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, supervisor.ErrPanic)
}

// describeError describes an error briefly, without details that differ from one time to the next.
func describeError(err error) string {
	text := err.Error()
	var dial *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &dial) && dial.Op == "dial":
		text = dial.Err.Error()
	}
	return text[:min(len(text), maxWhy)]
}
