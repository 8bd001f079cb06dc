package authoritative

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"federation/dnsprovider"
	"federation/dnsprovider/contain"
	"federation/dnsprovider/dnssec"
)

// Options say which zone is served, and where.
type Options struct {
	// Zone is the name of the zone.
	Zone string
	// Listen is the host:port for UDP and TCP. An empty host is all addresses, port 0 a free one.
	Listen string
	// NameServers are the addresses of ns.<zone>, the name server at the apex. Default: the listening
	// address, unless that is all addresses.
	NameServers []netip.Addr
	// NegativeTTL is how many seconds "no such name" may be cached. Default: 5.
	NegativeTTL uint32
	// NSID identifies this server among several (RFC 5001); "": none.
	NSID string
	// CookieSecret is the key of the cookies (RFC 9018). Default: a random one, another each day.
	CookieSecret CookieSecret
	// PreviousCookieSecret is a second valid secret: the previous CookieSecret. Default: none.
	PreviousCookieSecret CookieSecret
	// RateLimit is the maximum of answers per second over UDP to one network (/24, /56), of each class: with records,
	// without, errors. Above it half of the answers are dropped, half say "ask over TCP". Clients with a valid cookie
	// have no limit. An answer counts as one per 512 bytes. Default: 100; less than 0: no limit; at most MaxRateLimit.
	RateLimit int
	// Locator locates clients, for sets with variants by region. Default: none.
	Locator Locator
	// Transfers configure who may transfer the zone. Default: nobody.
	Transfers Transfers
	// Threads is the number of UDP sockets, each with its own goroutine. Default: GOMAXPROCS.
	Threads int
	// MaxConns bounds the TCP connections at one time; further ones are closed. Default: 512.
	MaxConns int
	// MaxConnsPerNetwork bounds those of one network (/24, /56). Default: an eighth of MaxConns.
	MaxConnsPerNetwork int
	// TLSListen is the host:port for DNS over TLS (RFC 7858), with TLSConfig. Default: none.
	TLSListen string
	TLSConfig *tls.Config
	// QueryLog gets a line for each message. Default: none.
	QueryLog *slog.Logger
	// IdleTimeout is how long a TCP connection may take for a whole message. Default: 10 s.
	IdleTimeout time.Duration
}

// Server answers for one zone. Make it with New.
type Server struct {
	zone      *zone
	answering *answering
	sockets   sockets
	tcp       *tcpServer
	// counters has those of each UDP socket, and at its end those of all TCP connections.
	counters []*counters
}

var _ dnsprovider.Chooser = (*Server)(nil)

// New opens the sockets; Run serves them, and closes them at its end. It fails if the zone is no valid name, or if it
// cannot listen at the address.
func New(options Options) (*Server, error) {
	name, err := dnsprovider.CanonicalName(options.Zone)
	if err != nil {
		return nil, fmt.Errorf("DNS zone: %w", err)
	}
	options = options.withDefaults()
	answering := newAnswering(options, name)
	s := &Server{zone: answering.zone, answering: answering}
	for range options.Threads + 1 {
		s.counters = append(s.counters, &counters{})
	}
	s.tcp = newTCPServer(answering, s.counters[options.Threads])
	if s.sockets, err = listen(&options); err != nil {
		return nil, err
	}
	nameServers := options.NameServers
	if local := s.Addr().Addr(); len(nameServers) == 0 && !local.IsUnspecified() {
		nameServers = []netip.Addr{local}
	}
	first, err := newSnapshot(name, nameServers, options.NegativeTTL)
	if err != nil {
		s.sockets.close()
		return nil, err
	}
	s.zone.current.Store(first)
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.NegativeTTL == 0 {
		o.NegativeTTL = 5
	}
	if o.RateLimit == 0 {
		o.RateLimit = 100
	}
	if o.Threads == 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.MaxConns == 0 {
		o.MaxConns = 512
	}
	if o.MaxConnsPerNetwork == 0 {
		o.MaxConnsPerNetwork = (o.MaxConns + 7) / 8
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 10 * time.Second
	}
	return o
}

// Addr returns where the server listens, over UDP and TCP.
func (s *Server) Addr() netip.AddrPort {
	at := s.sockets.streams[0].Addr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// TLSAddr returns where it listens for DNS over TLS; not valid if nowhere.
func (s *Server) TLSAddr() netip.AddrPort {
	if len(s.sockets.streams) < 2 {
		return netip.AddrPort{}
	}
	return s.sockets.streams[1].Addr().(*net.TCPAddr).AddrPort()
}

// Zone returns the canonical name of the zone.
func (s *Server) Zone() string { return s.zone.name }

// Run answers until the context ends. It returns nil then.
func (s *Server) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, s.sockets.close)()
	defer s.sockets.close()
	var running sync.WaitGroup
	start := func(part string, run func()) { running.Go(func() { contain.Keep(ctx, part, run) }) }
	for i, socket := range s.sockets.udp { // one goroutine each: memory is bounded, and the kernel drops the excess
		start("udp", func() { s.answering.serveUDP(ctx, socket, s.counters[i]) })
	}
	for _, t := range s.answering.transfers.targets {
		start("notify", func() { s.answering.transfers.notify(ctx, t) })
	}
	start("dnssec", func() { s.zone.renewOnTime(ctx) })
	if service := &s.answering.service; service.CookieSecret == (CookieSecret{}) { // a configured secret is shared: its owner rotates it
		start("cookies", func() { service.rotateCookieSecrets(ctx) })
	}
	for _, listener := range s.sockets.streams {
		start("tcp", func() { s.tcp.serve(ctx, listener, &running) })
	}
	running.Wait()
	return nil
}

// Records returns the zone without the server's own records. See dnsprovider.Provider.
func (s *Server) Records(_ context.Context, zone string) ([]dnsprovider.RRSet, error) {
	if err := s.zone.check(zone); err != nil {
		return nil, err
	}
	return s.zone.current.Load().sets(), nil
}

// RecordsOf returns the record sets of one canonical name of the zone, without the server's own. It costs as much as a
// question.
func (s *Server) RecordsOf(name string) []dnsprovider.RRSet {
	now := s.zone.current.Load()
	if now.reserves(name) {
		return nil
	}
	return now.lookup(wireName(name)).sets(name)
}

// Apply makes the changes; the next question is answered from them. Until the first call, which may be empty, every
// question gets SERVFAIL. See dnsprovider.Provider.
func (s *Server) Apply(_ context.Context, zone string, changes dnsprovider.ChangeSet) error {
	if err := s.zone.check(zone); err != nil {
		return err
	}
	return s.zone.apply(changes)
}

// Sign signs everything in the zone, now and when it changes; nil ends that. It takes some 50 µs per record set;
// meanwhile the zone is answered unsigned. A signed zone is not transferred.
func (s *Server) Sign(signer *dnssec.Signer) error { return s.zone.sign(signer) }

// Chooses marks the server as one that gives one variant of a set at a time. See dnsprovider.Chooser.
func (s *Server) Chooses() {}

// Reserves reports whether a name has the server's own records: the zone itself, and its name server. See dnsprovider.Reserver.
func (s *Server) Reserves(name string) bool { return s.zone.current.Load().reserves(name) }

// SetAway sets whether the source of the zone is unreachable. The server then still answers, and marks the answers as
// possibly stale (RFC 8914, code 3).
func (s *Server) SetAway(away bool) { s.answering.away.Store(away) }
