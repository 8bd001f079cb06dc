package authoritative

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/dchest/siphash"
)

const (
	// clientCookie and serverCookie are the sizes of the two parts (RFC 9018, section 3).
	clientCookie, serverCookie = 8, 16
	cookieSize                 = clientCookie + serverCookie
	// cookieAge is the lifetime of a cookie in seconds; after half of it a new one is sent. A cookie may be cookieAhead
	// in the future, because clocks of servers differ (RFC 9018, section 4.3).
	cookieAge, cookieAhead = 3600, 300
)

// CookieSecret is the key of the cookies. Servers that share an address share it.
type CookieSecret [16]byte

// cookieSecrets are the valid secrets; new cookies use the current one. previous is zero if there is none.
type cookieSecrets struct{ current, previous CookieSecret }

// cookieLifetime is how long a secret that is not shared makes cookies (RFC 9018, section 5).
const cookieLifetime = 24 * time.Hour

// cookieSecrets returns the current secrets.
func (s *service) cookieSecrets() *cookieSecrets {
	if now := s.cookies.Load(); now != nil {
		return now
	}
	return &cookieSecrets{s.CookieSecret, s.PreviousCookieSecret}
}

// rotateCookieSecret makes a new secret the current one. Cookies of the previous one stay valid until they expire.
func (s *service) rotateCookieSecret() {
	s.cookies.Store(&cookieSecrets{newCookieSecret(), s.cookieSecrets().current})
}

func (s *service) rotateCookieSecrets(ctx context.Context) {
	tick := time.NewTicker(cookieLifetime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.rotateCookieSecret()
		}
	}
}

func newCookieSecret() (secret CookieSecret) {
	_, _ = rand.Read(secret[:]) // it never fails
	return secret
}

// cookie is what a client sends to show that its address is its own (RFC 7873).
type cookie struct {
	sent bool
	// whole means that the server's part was sent too, in the form of ours.
	whole  bool
	client [clientCookie]byte
	server [serverCookie]byte
}

// parse reads the option. It returns false when its length is none that RFC 7873, section 5.2.2, allows.
func (c *cookie) parse(data []byte) bool {
	if n := len(data); n != clientCookie && (n < clientCookie+8 || n > clientCookie+32) {
		return false
	}
	*c = cookie{sent: true, whole: len(data) == cookieSize, client: [clientCookie]byte(data)}
	if c.whole {
		c.server = [serverCookie]byte(data[clientCookie:])
	}
	return true
}

// renew reports whether the server's part is ours and was made for the client, and replaces it by the next one. now is
// in seconds since 1970, and wraps.
func (c *cookie) renew(secrets *cookieSecrets, client netip.Addr, now uint32) (valid bool) {
	if !c.sent {
		return false
	}
	current := false
	age := int32(now - binary.BigEndian.Uint32(c.server[4:]))
	if c.whole && c.server[0] == 1 && age <= cookieAge && age >= -cookieAhead {
		made := binary.LittleEndian.Uint64(c.server[8:])
		current = c.hash(&secrets.current, client) == made
		valid = current || secrets.previous != CookieSecret{} && c.hash(&secrets.previous, client) == made
	}
	if !current || age > cookieAge/2 {
		c.server = [serverCookie]byte{0: 1}
		binary.BigEndian.PutUint32(c.server[4:], now)
		binary.LittleEndian.PutUint64(c.server[8:], c.hash(&secrets.current, client))
	}
	return valid
}

// hash returns SipHash-2-4 of both parts and the address (RFC 9018, section 4.4).
func (c *cookie) hash(secret *CookieSecret, client netip.Addr) uint64 {
	var input [clientCookie + 8 + 16]byte
	copy(input[:], c.client[:])
	copy(input[clientCookie:], c.server[:8])
	size := len(input)
	if client.Is4() {
		address := client.As4()
		size = clientCookie + 8 + copy(input[clientCookie+8:], address[:])
	} else {
		address := client.As16()
		copy(input[clientCookie+8:], address[:])
	}
	return siphash.Hash(binary.LittleEndian.Uint64(secret[:]), binary.LittleEndian.Uint64(secret[8:]), input[:size])
}
