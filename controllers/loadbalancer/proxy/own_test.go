package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"federation/controllers/loadbalancer/plan"
)

// TestConnectionsDoNotComeBack: a cluster says that its load balancer is this machine, whose port is that of the Service; also when the address has
// come to the machine a moment ago, so that only the first connection tells.
func TestConnectionsDoNotComeBack(t *testing.T) {
	own := map[netip.Addr]bool{netip.MustParseAddr("127.0.0.1"): true}
	for what, known := range map[string]bool{"it is known": true, "it came a moment ago": false} {
		t.Run(what, func(t *testing.T) {
			port := freePort(t)
			west := newEcho(t, "west-a", 102, port)
			looks := atomic.Int64{}
			o := Options{OwnAddresses: func() (map[netip.Addr]bool, error) {
				if looks.Add(1) == 1 && !known {
					return nil, nil
				}
				return own, nil
			}}
			b := newStreamBed(t, o, StreamOptions{}, nil, &echo{name: "east-a", addr: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)}, west)
			for range 3 {
				if _, name := b.open(); name != "west-a" {
					t.Fatalf("%q answers", name)
				}
			}
			eventually(t, func() string {
				b.streams.bounds.mu.Lock()
				defer b.streams.bounds.mu.Unlock()
				if open := b.streams.bounds.open; open != 3 {
					return fmt.Sprintf("%d connections are open for three of a client", open)
				}
				return ""
			})
			eventually(t, func() string {
				if refused := b.Own(); len(refused) != 1 || refused[0].Cluster != "east-a" {
					return fmt.Sprintf("told of are %v", refused)
				}
				return ""
			})
			p, _ := b.Pool(b.in.ID)
			if text := plan.TracePort(b.Table(), port, b.Pool); len(p.Parts) != 1 || !strings.Contains(text, "in cluster east-a: address 127.0.0.1 is not used: it is one of the load balancer's own machine") {
				t.Errorf("parts %v, trace\n%s", p.Parts, text)
			}
		})
	}
}

// TestOwnAddresses are those of interfaces, without those that may be targets.
func TestOwnAddresses(t *testing.T) {
	loopback := netip.MustParseAddr("127.0.0.1")
	if own, err := LocalAddresses(nil); err != nil || !own[loopback] {
		t.Errorf("%v, %v", own, err)
	}
	if own, err := LocalAddresses([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}); err != nil || own[loopback] {
		t.Errorf("with those of the network left out: %v, %v", own, err)
	}
}

// TestRequestsDoNotGoInACircle, even where nothing is known of addresses: they name where they have been.
func TestRequestsDoNotGoInACircle(t *testing.T) {
	port := freePort(t)
	self := &cluster{name: "east-a", addr: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)}
	log := &lockedBuffer{}
	b := newBed(t, Options{AccessLog: log}, ListenOptions{Address: self.addr.String()}, serviceOf(port, ""), self)
	if status, text, _ := b.do("GET", "/", nil); status != http.StatusLoopDetected {
		t.Errorf("%d %s", status, text)
	}
	eventually(t, func() string {
		if n := strings.Count(log.String(), `"status":508`); n != maxPasses+1 {
			return fmt.Sprintf("%d requests were made of one: %s", n, log)
		}
		return ""
	})
}

// TestWhereARequestHasBeen: clusters receive it, and it is counted, in whatever form it arrives.
func TestWhereARequestHasBeen(t *testing.T) {
	port, east, _ := twoClusters(t)
	east.does(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Join(r.Header["Cdn-Loop"], "|"))
	})
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east)
	for _, c := range []struct {
		said   []string
		status int
		want   string
	}{
		{nil, 200, "federation-lb"},
		{[]string{"other"}, 200, "other, federation-lb"},
		{[]string{"other; v=1, federation-lb", "x"}, 200, "other; v=1, federation-lb, x, federation-lb"},
		{[]string{strings.Repeat("federation-lb,", 4)}, 200, strings.Repeat("federation-lb,", 4) + ", federation-lb"},
		{[]string{strings.Repeat("not-federation-lb,", 9)}, 200, strings.Repeat("not-federation-lb,", 9) + ", federation-lb"},
		{[]string{"federation-lb, Federation-LB ;x=1", " federation-lb", "federation-lb,,federation-lb"}, 508, ""},
	} {
		var headers []string
		for _, value := range c.said {
			headers = append(headers, "CDN-Loop", value)
		}
		if status, text, _ := b.do("GET", "/", nil, headers...); status != c.status || c.want != "" && text != c.want {
			t.Errorf("%q: %d %q, want %d %q", c.said, status, text, c.status, c.want)
		}
	}
	if status, text, _ := b.do("GET", "/", nil, "CDN-Loop", "federation-lb", "Connection", "CDN-Loop"); status != 200 || text != "federation-lb, federation-lb" {
		t.Errorf("a client that has the header end here: %d %q", status, text)
	}
}
