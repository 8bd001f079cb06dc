package authoritative

import (
	"context"
	"log/slog"
	"time"

	"github.com/miekg/dns"
)

// isNewerSerial reports whether one serial number is newer than another (RFC 1982): the numbers are a circle.
func isNewerSerial(a, b uint32) bool { return int32(a-b) > 0 }

// nextSerial returns the time in seconds, so that it also grows over restarts, or one more if there were more changes
// than seconds.
func nextSerial(serial, now uint32) uint32 {
	if isNewerSerial(now, serial) {
		return now
	}
	return serial + 1
}

// askAttempts is how often a secondary without an answer is asked for its serial.
const askAttempts = 3

// overtakeSerial asks a secondary that has just been notified for its serial. If that is newer than ours and than any that we
// would use now, the secondary has a zone from before our clock was set back, and would keep it until that time comes
// again. So the zone gets a serial that is newer still. Other replicas' serials are no newer than the time, and are
// left alone (ADR 28); if their clock is ahead, they may do the same, so it is done at most a few times until the zone
// changes.
func (s *transfers) overtakeSerial(ctx context.Context, t *target) {
	has, ok := t.serial(ctx, s.Keys[0], s.zone.name)
	if !ok || !isNewerSerial(has, uint32(time.Now().Unix())) {
		return
	}
	switch had, raised, err := s.zone.raiseSerial(has, len(s.targets)); {
	case err != nil:
		slog.Error("The zone keeps a serial number that is too old for a secondary", "zone", s.zone.name, "server", t.address, "err", err)
	case raised:
		slog.Warn("A secondary has a newer serial number than any of now, as after the clock was set back: the zone gets a newer one", "zone", s.zone.name, "server", t.address, "has", has, "had", had)
	}
}

// raiseSerial gives the zone a newer serial number than has, at most so many times until it changes. It returns which it had before.
func (z *zone) raiseSerial(has uint32, most int) (had uint32, raised bool, err error) {
	z.applying.Lock()
	defer z.applying.Unlock()
	old := z.current.Load()
	if had = old.soa.Serial; !old.synced || !isNewerSerial(has, had) || z.leaps >= most {
		return had, false, nil
	}
	z.leaps++
	err = z.publishAs(has+1, old, old.edit(), nil)
	return had, err == nil, err
}

// serial asks a secondary for its serial; false if it does not answer, signed by the key.
func (t *target) serial(ctx context.Context, key Key, zone string) (serial uint32, ok bool) {
	client := dns.Client{Timeout: notifyTimeout, TsigSecret: map[string]string{key.Name: key.Secret}}
	for range askAttempts {
		m := new(dns.Msg).SetQuestion(zone, dns.TypeSOA)
		m.SetTsig(key.Name, key.Algorithm+".", fudge, time.Now().Unix())
		reply, _, err := client.ExchangeContext(ctx, m, t.address.String())
		if err != nil {
			continue
		}
		if reply.IsTsig() == nil || len(reply.Answer) == 0 {
			return 0, false
		}
		soa, is := reply.Answer[0].(*dns.SOA)
		if !is {
			return 0, false
		}
		return soa.Serial, true
	}
	return 0, false
}
