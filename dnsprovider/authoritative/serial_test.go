package authoritative

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider/servertest"
)

func TestSerialsOnlyGrow(t *testing.T) {
	for _, c := range []struct{ serial, now, want uint32 }{
		{1_700_000_000, 1_700_000_009, 1_700_000_009},
		{1_700_000_009, 1_700_000_009, 1_700_000_010},
		{1_700_000_900, 1_700_000_009, 1_700_000_901}, // the clock was set back, or changes came faster than seconds
		{4_294_967_295, 1_700_000_009, 1_700_000_009}, // more than half of all numbers lie between them: now is newer (RFC 1982)
		{4_294_967_295, 4_294_967_290, 0},             // in the year 2106 they begin again
		{4_294_967_290, 20, 20},
		{20, 4_294_967_290, 21},
	} {
		if got := nextSerial(c.serial, c.now); got != c.want {
			t.Errorf("after %d at %d: %d, want %d", c.serial, c.now, got, c.want)
		}
	}
}

// TestRealServersFollowAfterTheClockWasSetBack restarts a primary whose clock was ten minutes ahead. Each of the secondaries
// has a zone from the future then, and must follow all the same.
func TestRealServersFollowAfterTheClockWasSetBack(t *testing.T) {
	for name := range secondaries {
		t.Run(name, func(t *testing.T) {
			port, own := servertest.FreePort(t), servertest.FreePort(t)
			at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))
			options := Options{Listen: fmt.Sprintf("127.0.0.1:%d", own), Transfers: Transfers{Notify: []netip.AddrPort{at}}}
			startSecondary(t, name, port, netip.MustParseAddrPort(options.Listen))
			t.Run("ahead", func(t *testing.T) {
				primary := startPrimary(t, options)
				fill(t, primary, zoneLines(t, "web A 198.51.100.1"))
				old := primary.zone.current.Load()
				ahead, err := old.edit().finishSnapshot(old.soa.Serial + 600)
				if err != nil {
					t.Fatal(err)
				}
				primary.zone.current.Store(ahead)
				primary.answering.transfers.observe(old, ahead, nil)
				followed(t, at.String(), "web."+testZone, "198.51.100.1")
				serialIs(t, at.String(), ahead.soa.Serial)
			})
			again := startPrimary(t, options)
			fill(t, again, zoneLines(t, "web A 198.51.100.2"))
			followed(t, at.String(), "web."+testZone, "198.51.100.2")
			become(t, again, zoneLines(t, "web A 198.51.100.3"), nil)
			followed(t, at.String(), "web."+testZone, "198.51.100.3")
			serialIs(t, at.String(), again.zone.current.Load().soa.Serial)
		})
	}
}

// serialIs waits until a server has the zone with a serial number.
func serialIs(t *testing.T, server string, want uint32) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		reply, err := dns.Exchange(new(dns.Msg).SetQuestion(testZone, dns.TypeSOA), server)
		if err == nil && len(reply.Answer) == 1 && reply.Answer[0].(*dns.SOA).Serial == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the serial number is not %d after 20 s: %v, %v", want, reply, err)
		}
	}
}
