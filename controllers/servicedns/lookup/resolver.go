package lookup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// resolver asks one recursive resolver, over TLS or over TCP on this machine. On any other path somebody could set the
// bit that marks an answer as validated.
type resolver struct {
	client    dns.Client
	address   string
	validated bool
}

// newResolver returns a resolver at tls://HOST[:PORT], or at IP:PORT with an IP of this machine.
func newResolver(address string, validated bool) (*resolver, error) {
	r := &resolver{client: dns.Client{Net: "tcp", Timeout: 5 * time.Second}, address: address, validated: validated}
	rest, overTLS := strings.CutPrefix(address, "tls://")
	if !overTLS {
		if at, err := netip.ParseAddrPort(address); err != nil || !at.Addr().IsLoopback() {
			return nil, errors.New("must be tls://HOST[:PORT], or IP:PORT with a loopback address: the path to others is not safe without TLS")
		}
		return r, nil
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		host, port = strings.Trim(rest, "[]"), "853"
	}
	if _, ok := dns.IsDomainName(host); host == "" || !ok && net.ParseIP(host) == nil || strings.ContainsAny(host, "/ ") {
		return nil, errors.New("must be tls://HOST[:PORT] with a name or IP of a host")
	}
	r.client.Net, r.client.TLSConfig = "tcp-tls", &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	r.address = net.JoinHostPort(host, port)
	return r, nil
}

// LookupNetIP implements servicedns.Resolver.
func (r *resolver) LookupNetIP(ctx context.Context, _, host string) (all []netip.Addr, err error) {
	conn, err := r.client.DialContext(ctx, r.address)
	if err != nil {
		return nil, fmt.Errorf("resolver %s: %w", r.address, err)
	}
	defer func() { _ = conn.Close() }()
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		question := new(dns.Msg).SetQuestion(dns.Fqdn(host), kind)
		question.AuthenticatedData = true // we understand that bit (RFC 6840, section 5.7)
		question.SetEdns0(dns.DefaultMsgSize, false)
		answer, _, err := r.client.ExchangeWithConnContext(ctx, question, conn)
		if err == nil && answer.Rcode != dns.RcodeSuccess {
			err = errors.New(dns.RcodeToString[answer.Rcode])
		}
		if err == nil && r.validated && len(answer.Answer) > 0 && !answer.AuthenticatedData {
			err = errors.New("not validated: its zone is not signed, or the resolver does not validate")
		}
		if err != nil {
			return nil, fmt.Errorf("resolver %s: %s %s: %w", r.address, host, dns.TypeToString[kind], err)
		}
		all = append(all, addressesOf(question.Question[0].Name, answer.Answer)...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("resolver %s: %s has no address", r.address, host)
	}
	return all, nil
}

// addressesOf returns the addresses of a name, directly or through CNAMEs. It ignores the rest of the answer.
func addressesOf(name string, answer []dns.RR) (all []netip.Addr) {
	for range answer { // a chain has no more links
		for _, rr := range answer {
			if alias, ok := rr.(*dns.CNAME); ok && strings.EqualFold(rr.Header().Name, name) {
				name = alias.Target
				break
			}
		}
	}
	for _, rr := range answer {
		var ip net.IP
		switch rr := rr.(type) {
		case *dns.A:
			ip = rr.A
		case *dns.AAAA:
			ip = rr.AAAA
		}
		if addr, ok := netip.AddrFromSlice(ip); ok && strings.EqualFold(rr.Header().Name, name) {
			all = append(all, addr.Unmap())
		}
	}
	return all
}
