package authoritative

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider"
)

// BenchmarkChangeToAnswer is the time from the call of Apply to the changed answer over UDP, for one
// name of a zone of 10,000 and 200,000.
func BenchmarkChangeToAnswer(b *testing.B) {
	for _, n := range []int{10000, 200000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, conn := served(b)
			sets := manyNames(b, n)
			fill(b, s, sets)
			from, to := zoneLines(b, "n4711 A 192.0.2.1"), zoneLines(b, "n4711 A 192.0.2.2")
			change(b, s, sets[4711:4712], from)
			for b.Loop() {
				change(b, s, from, to)
				awaitAddress(b, conn, "n4711."+testZone, to[0].Rdata[0])
				from, to = to, from
			}
		})
	}
}

func change(b *testing.B, s *Server, from, to []dnsprovider.RRSet) {
	if err := s.Apply(context.Background(), testZone, dnsprovider.Diff(from, to)); err != nil {
		b.Fatal(err)
	}
}

func awaitAddress(b *testing.B, conn *dns.Conn, name, address string) {
	for {
		if err := conn.WriteMsg(new(dns.Msg).SetQuestion(name, dns.TypeA)); err != nil {
			b.Fatal(err)
		}
		reply, err := conn.ReadMsg()
		if err != nil {
			b.Fatal(err)
		}
		if a, ok := reply.Answer[0].(*dns.A); ok && a.A.String() == address {
			return
		}
	}
}

func served(b *testing.B) (*Server, *dns.Conn) {
	s, err := New(Options{Zone: testZone, Listen: "127.0.0.1:0", RateLimit: -1})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	conn, err := net.Dial("udp", s.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	b.Cleanup(func() { conn.Close(); stop(); <-done })
	return s, &dns.Conn{Conn: conn}
}
