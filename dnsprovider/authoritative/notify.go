package authoritative

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/miekg/dns"
)

const (
	// notifyPause is between two messages to one server, so that changes that follow each other go together.
	notifyPause = 100 * time.Millisecond
	// notifyTimeout is how long the answer to one may take; then it is sent again, later each time (RFC 1996, section 3.6).
	notifyTimeout, maxNotifyPause = 2 * time.Second, time.Minute
)

// target is a server that is notified of changes.
type target struct {
	address netip.AddrPort
	// wake has an element when there is a change to notify of.
	wake chan struct{}
}

func (t *target) changed() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// notify notifies a server of changes until the context ends.
func (s *transfers) notify(ctx context.Context, t *target) {
	pause := notifyPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		}
		if err := t.send(ctx, s.Keys[0], s.zone.current.Load().soa); err == nil {
			pause = notifyPause
			s.overtakeSerial(ctx, t)
		} else if ctx.Err() == nil {
			pause = min(2*pause, maxNotifyPause)
			slog.Warn("Failed to notify a server of the zone's change, will retry", "zone", s.zone.name, "server", t.address, "err", err, "after", pause)
			t.changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// send sends the zone's SOA and waits for a response; any code confirms receipt.
func (t *target) send(ctx context.Context, key Key, soa dns.SOA) error {
	m := new(dns.Msg).SetNotify(soa.Hdr.Name)
	m.Answer = []dns.RR{&soa}
	m.SetTsig(key.Name, key.Algorithm+".", fudge, time.Now().Unix())
	client := dns.Client{Timeout: notifyTimeout, TsigSecret: map[string]string{key.Name: key.Secret}}
	_, _, err := client.ExchangeContext(ctx, m, t.address.String())
	return err
}
