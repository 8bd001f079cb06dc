package authoritative

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider"
)

// Key is a secret that this server shares with others (TSIG, RFC 8945): whoever has it may transfer the zone.
type Key struct {
	// Name is canonical, and the same at both.
	Name string
	// Algorithm is hmac-sha256, hmac-sha384 or hmac-sha512.
	Algorithm string
	// Secret is in base64.
	Secret string
}

const (
	// minSecret is the least size of a secret in bytes.
	minSecret = 16
	// fudge is how many seconds two clocks may differ (RFC 8945, section 10).
	fudge = 300
)

var keyAlgorithms = []string{"hmac-sha256", "hmac-sha384", "hmac-sha512"}

// ParseKey reads a key as kdig and dig take it behind -y: ALGORITHM:NAME:SECRET. The error never has the secret in it.
func ParseKey(text string) (Key, error) {
	parts := strings.Split(strings.TrimSpace(text), ":")
	if len(parts) != 3 {
		return Key{}, errors.New("TSIG key: must be ALGORITHM:NAME:SECRET, as hmac-sha256:transfer:c2VjcmV0…")
	}
	name, err := dnsprovider.CanonicalName(parts[1])
	if err != nil {
		return Key{}, fmt.Errorf("TSIG key: %w", err)
	}
	k := Key{Name: name, Algorithm: strings.ToLower(parts[0]), Secret: parts[2]}
	if !slices.Contains(keyAlgorithms, k.Algorithm) {
		return Key{}, fmt.Errorf("TSIG key %s: algorithm %q: must be one of %s", name, parts[0], strings.Join(keyAlgorithms, ", "))
	}
	if secret, err := base64.StdEncoding.DecodeString(k.Secret); err != nil || len(secret) < minSecret {
		return Key{}, fmt.Errorf("TSIG key %s: secret: must be base64 of at least %d bytes", name, minSecret)
	}
	return k, nil
}

// signed is an exchange of messages that are signed with a key.
type signed struct {
	query *dns.Msg
	key   Key
	// mac is that of the last message; the first one of an answer covers more than those behind it.
	mac       string
	answering bool
}

// verifySignature checks the signature of a message. The code is that of RFC 8945, section 5.2; s can sign the response, unless
// the code is BADKEY or BADSIG.
func verifySignature(keys []Key, message []byte, query *dns.Msg) (s *signed, code uint16) {
	t := query.IsTsig()
	s = &signed{query: query, mac: t.MAC}
	i := slices.IndexFunc(keys, func(k Key) bool {
		return k.Name == strings.ToLower(t.Hdr.Name) && k.Algorithm+"." == strings.ToLower(t.Algorithm)
	})
	if i < 0 {
		s.key = Key{Name: t.Hdr.Name, Algorithm: strings.TrimSuffix(t.Algorithm, ".")}
		return s, dns.RcodeBadKey
	}
	s.key = keys[i]
	switch err := dns.TsigVerify(slices.Clone(message), s.key.Secret, "", false); err {
	case nil:
		return s, dns.RcodeSuccess
	case dns.ErrTime:
		return s, dns.RcodeBadTime
	default:
		return s, dns.RcodeBadSig
	}
}

// sign packs a message with a signature behind it.
func (s *signed) sign(m *dns.Msg, code uint16) ([]byte, error) {
	now := time.Now().Unix()
	m.SetTsig(s.key.Name, s.key.Algorithm+".", fudge, now)
	t := m.IsTsig()
	t.OrigId, t.Error = s.query.Id, code
	if code == dns.RcodeBadTime { // tells our time (RFC 8945, section 5.2.3)
		t.TimeSigned = s.query.IsTsig().TimeSigned
		t.OtherLen, t.OtherData = 6, fmt.Sprintf("%012x", now)
	}
	packed, mac, err := dns.TsigGenerate(m, s.key.Secret, s.mac, s.answering)
	s.mac, s.answering = mac, true
	return packed, err
}

// packRefusal packs the response to a message with an invalid signature.
func (s *signed) packRefusal(code uint16) ([]byte, error) {
	return s.sign(new(dns.Msg).SetRcode(s.query, dns.RcodeNotAuth), code)
}
